"""Measures of diagnostics against their definitions and against memories whose truth is known."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from sojourn.memory import (
    ConstantRate,
    DotProduct,
    FastWeightMemory,
    GradientStep,
    NoDecay,
    Normalised,
    Objective,
    SquaredError,
    capacity,
    effective_rank,
    half_life,
    random_pairs,
    recall_curve,
    stable_rank,
)
from sojourn.memory.diagnostics_gates import half_life_quantiles
from sojourn.memory.diagnostics_pairs import pair_measures, sample_times
from sojourn.memory.diagnostics_probe import Flags, Seen
from sojourn.memory.views import Tokens

WIDTH = 6
DOUBLE = torch.float64


def orthogonal(size: int) -> Tensor:
    return torch.linalg.qr(torch.randn(size, size, dtype=DOUBLE)).Q


def open_memory(objective: type[Objective], num_heads: int = 1) -> FastWeightMemory:
    """Writes at rate one and forgets nothing."""
    rule = partial(GradientStep, retention=NoDecay, write_rate=ConstantRate)
    return FastWeightMemory(WIDTH, num_heads, 8, 8, objective=objective, rule=rule).to(DOUBLE)


def stored(key: Tensor, value: Tensor) -> Seen:
    """A pass of one row and one head that stores `key` `[T, K]` with `value` `[T, V]`."""
    key, value = key[None, :, None], value[None, :, None]
    return Seen(torch.zeros(1, key.shape[1], WIDTH, dtype=DOUBLE), Tokens(key, key, value))


@torch.no_grad()
def measure(objective: type[Objective], key: Tensor, value: Tensor) -> dict[str, float]:
    """The measures of pairs that a memory without gates meets."""
    core = open_memory(objective)
    found = pair_measures(core, stored(key, value), core.init_state(1), Flags(), len(key))
    return {name: float(values) for name, values in found.items()}


@pytest.mark.parametrize("rank", range(5))
def test_ranks_count_equal_singular_values(rank: int) -> None:
    matrices = 3.0 * torch.stack([orthogonal(6)[:, :rank] @ orthogonal(6)[:rank] for _ in "ab"])
    expected = torch.full((2,), float(rank), dtype=DOUBLE)
    torch.testing.assert_close(effective_rank(matrices), expected)
    torch.testing.assert_close(stable_rank(matrices), expected)


def test_ranks_follow_their_definitions() -> None:
    matrix = torch.randn(4, 5, 3, dtype=DOUBLE)
    for of, effective, stable in zip(
        matrix, effective_rank(matrix), stable_rank(matrix), strict=True
    ):
        values = torch.linalg.eigvalsh(of.mT @ of).sqrt().tolist()
        shares = [value / sum(values) for value in values]
        assert effective.item() == pytest.approx(math.exp(-sum(p * math.log(p) for p in shares)))
        assert stable.item() == pytest.approx(sum(v * v for v in values) / max(values) ** 2)
    assert (stable_rank(matrix) <= effective_rank(matrix)).all()


def test_ranks_of_nothing_and_of_nan() -> None:
    for rank in (effective_rank, stable_rank):
        assert rank(torch.zeros(2, 0, 3)).tolist() == [0.0, 0.0]
        broken = torch.stack([torch.full((2, 2), torch.nan), torch.eye(2)])
        assert rank(broken).isnan().tolist() == [True, False]


@pytest.mark.parametrize("tokens", [0.5, 1.0, 16.0, 1000.0])
def test_half_life_of_its_own_retention(tokens: float) -> None:
    log_retention = torch.tensor(2.0 ** (-1.0 / tokens), dtype=DOUBLE).log()
    assert half_life(log_retention).item() == pytest.approx(tokens)


def test_half_life_quantiles_bear_gates_that_never_forget() -> None:
    gates = torch.tensor([[-0.5, 0.0]] * 6 + [[0.0, 0.0]] * 4, dtype=DOUBLE)
    found = half_life_quantiles(gates)
    assert found["half_life_10"].tolist() == [2 * math.log(2), math.inf]
    assert found["half_life_90"].tolist() == [math.inf, math.inf]
    assert half_life_quantiles(gates[:0])["half_life_50"].isnan().all()


def test_a_delta_memory_keeps_orthonormal_pairs_and_knows_nothing_of_the_next() -> None:
    key, value = orthogonal(8), torch.randn(8, 8, dtype=DOUBLE)
    found = measure(SquaredError, key, value)
    for name in ("after", "back_1", "back_4"):
        assert found[f"loss_{name}"] == pytest.approx(0.0, abs=1e-20)
        assert found[f"cosine_{name}"] == pytest.approx(1.0)
    for name in ("before", "ahead_4"):
        assert found[f"loss_{name}"] == pytest.approx(1.0)
        assert found[f"cosine_{name}"] == pytest.approx(0.0, abs=1e-6)


def test_a_hebbian_memory_adds_to_what_a_key_held_and_a_delta_memory_replaces_it() -> None:
    key, value = orthogonal(8)[:1].expand(2, -1), orthogonal(8)[:2]
    hebbian, delta = (
        measure(DotProduct, key, value),
        measure(SquaredError, key, value),
    )
    assert hebbian["loss_back_1"] == pytest.approx(1.0)  # v_1 + v_2 - v_1
    assert hebbian["loss_after"] == pytest.approx(0.5)  # 0 at the first write, then |v_1|^2
    assert delta["loss_back_1"] == pytest.approx(2.0)  # v_2 - v_1
    assert delta["loss_after"] == pytest.approx(0.0, abs=1e-20)


def test_gains_are_over_predictors_that_remember_nothing() -> None:
    key = torch.randn(40, 8, dtype=DOUBLE)
    key = nn.functional.normalize(key, dim=-1)
    of_map = measure(SquaredError, key, key @ torch.randn(8, 8, dtype=DOUBLE))
    assert of_map["loss_before"] > 1e-3
    assert of_map["gain_over_linear"] == pytest.approx(-of_map["loss_before"], rel=1e-6)
    constant = measure(SquaredError, key, torch.ones(40, 8, dtype=DOUBLE))
    # The mean is wrong about the first value only.
    assert constant["gain_over_mean"] == pytest.approx(1 / 40 - constant["loss_before"])


def test_a_memory_beats_every_fixed_map_where_the_map_changes() -> None:
    key = orthogonal(8).repeat(16, 1)
    value = torch.cat([orthogonal(8).repeat(8, 1) for _ in "ab"])
    found = measure(SquaredError, key, value)
    difference = (value[0:8] - value[-8:]).square().sum().item() / 8
    assert found["loss_before"] == pytest.approx((1.0 + difference) / 16)
    best_fixed = difference / 4  # the mean of both maps
    assert found["gain_over_linear"] == pytest.approx(best_fixed - found["loss_before"], rel=1e-4)
    assert found["gain_over_linear"] > 0.1


def test_recall_is_that_of_the_nearest_value() -> None:
    core, counts = open_memory(DotProduct, num_heads=2), [1, 3, 10]
    seen = random_pairs(core, 5, 12, torch.Generator().manual_seed(0))
    _, key, value = seen.tokens
    for count, recall in zip(counts, recall_curve(core, seen, counts), strict=True):
        right = torch.zeros(2)
        for row in range(5):
            for head in range(2):
                stored = value[row, :count, head]
                weights = stored.mT @ key[row, :count, head]
                for index in range(count):
                    right[head] += (stored @ weights @ key[row, index, head]).argmax() == index
        torch.testing.assert_close(recall, (right / (5 * count)).to(DOUBLE))


def test_recall_of_orthonormal_and_of_too_many_pairs() -> None:
    core, counts = open_memory(SquaredError), [4, 8, 32]
    key, value = orthogonal(8).repeat(4, 1), torch.randn(32, 8, dtype=DOUBLE)
    recall = recall_curve(core, stored(key, value), counts)
    assert recall[:, 0].tolist() == [1.0, 1.0, 0.25]  # each key answers with its last value
    assert capacity(counts, recall).item() == pytest.approx(8 + 24 * 0.1 / 0.75)


def test_capacity_by_hand() -> None:
    recall = torch.tensor([[1.0, 0.8, 1.0], [0.95, 1.0, 1.0], [0.85, 1.0, 1.0]])
    expected = torch.tensor([15.0, 5 * 0.5, 20.0])
    torch.testing.assert_close(capacity([5, 10, 20], recall), expected)


@pytest.mark.parametrize(("counts", "message"), [([2, 2], "must rise"), ([1, 9], "at most 4")])
def test_bad_counts_are_refused(counts: list[int], message: str) -> None:
    core = open_memory(SquaredError)
    seen = random_pairs(core, 1, 4, torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match=message):
        recall_curve(core, seen, counts)


def test_keys_suit_a_normalised_read() -> None:
    core = FastWeightMemory(WIDTH, objective=DotProduct, solver=Normalised)
    assert (random_pairs(core, 2, 5, torch.Generator()).tokens.key >= 0).all()


@pytest.mark.parametrize(("steps", "count"), [(1, 8), (5, 8), (64, 8), (64, 1)])
def test_samples_are_spread_and_hold_the_last_token(steps: int, count: int) -> None:
    times = sample_times(steps, count)
    assert len(times) == min(steps, count) and times[-1] == steps - 1 and min(times) >= 0
    gaps = torch.tensor([-1, *times]).diff()
    assert gaps.max() - gaps.min() <= 1
