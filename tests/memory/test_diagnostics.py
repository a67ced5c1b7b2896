"""Diagnostics measure what they say, of every memory, and touch nothing."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from sojourn.memory import (
    ConstantRate,
    FastWeightMemory,
    GradientStep,
    NextValue,
    NoDecay,
    diagnose,
    diagnostics_probe,
    layers_of,
    observe,
    random_pairs,
    recall_curve,
)

BATCH, STEPS, WIDTH = 3, 20, 6
DOUBLE = torch.float64


def make_input(steps: int = STEPS, batch: int = BATCH) -> Tensor:
    return torch.randn(batch, steps, WIDTH, dtype=DOUBLE)


def make_flags() -> dict[str, Tensor]:
    reset, mask = torch.rand(BATCH, STEPS) < 0.1, torch.rand(BATCH, STEPS) < 0.8
    mask[2] = False
    return {"reset": reset, "mask": mask, "commit": torch.rand(BATCH, STEPS) < 0.5}


@pytest.mark.parametrize("flagged", [False, True])
def test_every_memory_is_diagnosed(case, flagged: bool) -> None:
    core = case.core()
    found = diagnose(core, make_input(), core.init_state(BATCH), **make_flags() if flagged else {})
    assert found.keys() == layers_of(core).keys()
    for path, layer in layers_of(core).items():
        measures = found[path]
        num_heads = layer.views.token_heads.num_heads if hasattr(layer, "views") else 1
        for name, values in measures.items():
            assert values.shape in ((1,), (num_heads,)), name
            distant = "ahead" in name or "back" in name
            if distant and flagged:  # all of them may lie across a reset
                assert not values.isinf().any(), name
            elif name.startswith("half_life"):  # infinite where nothing is forgotten
                assert (values > 0).all(), name
            else:
                assert values.isfinite().all(), name
        assert ("loss_back_16" in measures) == hasattr(layer, "views")
        assert ("write_strength" in measures) == hasattr(layer, "rule")
        assert "loss_back_64" not in measures


def test_diagnosing_changes_nothing(case, tools) -> None:
    core = case.core()
    x, state, flags = make_input(), core.init_state(BATCH), make_flags()
    before = {name: leaf.detach().clone() for name, leaf in tools.flatten(state).items()}
    y, after = core(x, state, **flags)
    y.sum().backward()
    gradients = [None if p.grad is None else p.grad.clone() for p in core.parameters()]
    parameters = [p.detach().clone() for p in core.parameters()]
    generator = torch.get_rng_state()

    diagnose(core, x, state, **flags)

    assert torch.equal(torch.get_rng_state(), generator)
    for name, leaf in tools.flatten(state).items():
        assert torch.equal(leaf, before[name]), name
    for parameter, value, gradient in zip(core.parameters(), parameters, gradients, strict=True):
        assert torch.equal(parameter, value) and parameter.requires_grad
        assert parameter.grad is gradient or torch.equal(parameter.grad, gradient)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in core.modules())
    y_again, after_again = core(x, state, **flags)
    assert torch.equal(y_again, y)
    tools.assert_same_state(after_again, after, tolerance=0.0)


def map_of(core: nn.Module, leaves: dict[str, Tensor], key: Tensor) -> Tensor:
    """What the weights of a state say to keys `[B, H, n, K]`, without any read of the solver."""
    if core.anchored:
        return core.solver.net.read(key, lambda layer, x: x @ leaves[f"weights_{layer}"].mT)
    if "key_moments" in leaves:
        system = leaves["key_moments"] + torch.diag_embed(core.solver.ridges())
        return torch.linalg.solve(system, key.mT).mT @ leaves["value_moments"].mT
    return key @ leaves["weights"].mT


MAPS = ["gated_delta_net", "delta_product", "titans_linear", "omega_linear", "falcon1", "mesa_net"]
MAPS += ["gla", "kda", "gdn2", "rwkv7", "titans", "yaad"]


@pytest.mark.parametrize("name", MAPS)
def test_losses_are_those_of_the_weights_at_every_token(name: str, tools) -> None:
    core = tools.build(
        name, WIDTH, num_heads=2, key_width=4, value_width=3, solver__chunk_size=4
    ).to(DOUBLE)
    tools.randomise(core)
    x, state, flags = make_input(), core.init_state(BATCH), make_flags()
    tokens = observe(core, x, state, **flags)[0]["memory"].tokens
    key, value = (view.unflatten(2, (-1, 2)) for view in (tokens.key, tokens.value))
    found = diagnose(core, x, state, **flags, num_samples=STEPS)["memory"]

    sums = {distance: [0.0, 0.0] for distance in ("before", "after", 4, -1, -16)}
    segment = flags["reset"].long().cumsum(1)
    for t in range(STEPS):
        flag = {name: one[:, t] for name, one in flags.items()}
        fresh = core.reset_rows(state, flag["reset"])
        state = core.step(x[:, t], state, **flag)[1]
        for distance, total in sums.items():
            j = t if isinstance(distance, str) else t + distance
            if not 0 <= j < STEPS:
                continue
            leaves = dict((fresh if distance == "before" else state).items())
            asked, wanted = key[:, j].transpose(1, 2), value[:, j].transpose(1, 2)
            counts = flags["mask"][:, j] & (segment[:, j] == segment[:, t])
            counts = counts[:, None, None] & (asked != 0).any(-1)
            error = (map_of(core, leaves, asked) - wanted).square().sum(-1)
            total[0] += (error * counts).sum((0, 2))
            total[1] += (wanted.square().sum(-1) * counts).sum((0, 2))
    for distance, (error, size) in sums.items():
        label = {4: "ahead_4", -1: "back_1", -16: "back_16"}.get(distance, distance)
        torch.testing.assert_close(found[f"loss_{label}"], error / size, equal_nan=True)


def test_softmax_attention_is_asked_at_the_scale_of_its_queries(tools) -> None:
    core = tools.build("softmax_attention", WIDTH, num_heads=1, key_width=4, positions="none")
    core, x = core.to(DOUBLE), make_input()
    state = core.init_state(BATCH)
    _, key, value = observe(core, x, state)[0]["memory"].tokens
    key, value = key[:, :, 0], value[:, :, 0]
    scores = (key @ key.mT / 2.0).masked_fill(~torch.ones(STEPS, STEPS).tril().bool(), -torch.inf)
    error = (scores.softmax(-1) @ value - value).square().sum() / value.square().sum()
    torch.testing.assert_close(diagnose(core, x, state)["memory"]["loss_after"][0], error)


@pytest.mark.parametrize("rate", [0.25, 1.0])
def test_write_strength_is_the_rate(rate: float) -> None:
    rule = partial(GradientStep, retention=NoDecay, write_rate=partial(ConstantRate, rate=rate))
    core = FastWeightMemory(WIDTH, views=NextValue, rule=rule).to(DOUBLE)
    found = diagnose(core, make_input(), core.init_state(BATCH))["memory"]
    assert found["write_strength"].tolist() == pytest.approx([rate, rate])
    assert found["half_life_50"].tolist() == [math.inf, math.inf]
    assert not any(name.endswith("saturated") for name in found)


def test_saturated_gates_are_found(tools) -> None:
    core = tools.build("gated_delta_net", WIDTH).to(DOUBLE)
    with torch.no_grad():
        core.rule.write_rate.bias.copy_(torch.tensor([9.0, 0.0]))
    found = diagnose(core, make_input(), core.init_state(BATCH))["memory"]
    assert found["write_rate_saturated"].tolist() == [1.0, 0.0]
    assert found["retention_saturated"].tolist() == [0.0, 1.0]  # half-lives 16 and 128


def test_rows_with_nan_are_left_out(tools) -> None:
    core = tools.build("kda", WIDTH).to(DOUBLE)
    x, state = make_input(), core.init_state(BATCH).clone()
    x[1, 3, 0] = torch.nan
    found = diagnose(core, x, state)["memory"]
    expected = diagnose(core, x[[0, 2]], state[[0, 2]])["memory"]
    assert found.pop("finite_rows").item() == pytest.approx(2 / 3)
    assert expected.pop("finite_rows").item() == 1.0
    torch.testing.assert_close(found, expected, rtol=0.0, atol=0.0)
    state["weights"][:] = torch.inf
    assert diagnose(core, x, state) == {"memory": {"finite_rows": torch.zeros(1, dtype=DOUBLE)}}


def test_questionnaires_may_be_cut_anywhere(
    name: str, tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = tools.build(name, WIDTH, key_width=4, value_width=4).to(DOUBLE)
    x, state, flags = make_input(), core.init_state(BATCH), make_flags()
    whole = diagnose(core, x, state, **flags)
    monkeypatch.setattr(diagnostics_probe, "PART", 7)
    parts = diagnose(core, x, state, **flags)
    torch.testing.assert_close(parts, whole, equal_nan=True)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_short_passes(name: str, tools, steps: int) -> None:
    core = tools.build(name, WIDTH, key_width=4, value_width=4).to(DOUBLE)
    x, state = make_input(steps, batch=1), core.init_state(1)
    seen, found = observe(core, x, state)[0], diagnose(core, x, state)
    for path, measures in found.items():
        assert ("loss_before" in measures) == (path in seen) == ("cosine_after" in measures)
        if path in seen and seen[path].tokens.key[:, 0].any():
            assert not any(values.isnan().any() for values in measures.values())
        if steps == 0 and path in seen:
            assert not any(name.startswith("half_life") for name in measures)


def test_states_are_measured_against_their_start(tools) -> None:
    core = tools.build("titans_linear", WIDTH).to(DOUBLE)
    tools.randomise(core)
    found = diagnose(core, make_input(0), core.init_state(BATCH))["memory"]
    assert (found["weights_norm"] > 0).all()
    for name in ("drift", "effective_rank", "stable_rank"):
        assert (found[f"weights_{name}"] == 0).all()


def test_every_memory_recalls_one_pair(name: str, tools) -> None:
    for layer in layers_of(tools.build(name, WIDTH)).values():
        if hasattr(layer, "views"):
            seen = random_pairs(layer, 4, 2, torch.Generator().manual_seed(0))
            assert (recall_curve(layer, seen, [1, 2])[0] == 1.0).all()


def test_pairs_in_a_pass_can_be_recalled(tools) -> None:
    core = tools.build("delta_product", WIDTH).to(DOUBLE)
    seen = observe(core, make_input(), core.init_state(BATCH))[0]["memory"]
    recall = recall_curve(core, seen, [1, 4])
    assert recall.shape == (2, 2) and (recall > 0).all()
    with pytest.raises(ValueError, match="smallest count must be at least 1"):
        recall_curve(core, seen, [0, 4])
