"""Advantages against a slow loop, and the four boundaries where credit may stop."""

import itertools

import pytest
import torch
from torch import Tensor

from sojourn.agents import RunningScale, cut_points, lifetime_advantages
from sojourn.agents.lifetime_returns import standardise
from sojourn.agents.returns import Credit


def loop_advantages(
    reward: Tensor,
    value: Tensor,
    next_value: Tensor,
    cut: Tensor,
    worthless: Tensor,
    discount: float,
    trace: float,
) -> Tensor:
    """The definition, one step at a time from the end."""
    advantage = torch.zeros_like(reward)
    for b in range(reward.shape[0]):
        following = 0.0
        for t in reversed(range(reward.shape[1])):
            ahead = 0.0 if worthless[b, t] else float(next_value[b, t])
            if cut[b, t]:
                following = 0.0
            delta = float(reward[b, t]) + discount * ahead - float(value[b, t])
            following = delta + discount * trace * following
            advantage[b, t] = following
    return advantage


def random_flags(shape: tuple[int, int], generator: torch.Generator) -> tuple[Tensor, ...]:
    terminated, truncated, task_end, lifetime_end = (
        torch.rand(shape, generator=generator) < p for p in (0.2, 0.2, 0.1, 0.05)
    )
    ended = terminated | truncated
    return terminated, truncated, task_end & ended, lifetime_end & ended


@pytest.mark.parametrize("credit", ["episode", "task", "lifetime", "never"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (4, 33)])
def test_advantages_equal_the_loop(credit: Credit, shape: tuple[int, int]) -> None:
    generator = torch.Generator().manual_seed(3)
    cut, worthless = cut_points(credit, *random_flags(shape, generator))
    reward, value, next_value = (
        torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(3)
    )
    advantage, target = lifetime_advantages(reward, value, next_value, cut, worthless, 0.9, 0.8)
    expected = loop_advantages(reward, value, next_value, cut, worthless, 0.9, 0.8)
    torch.testing.assert_close(advantage, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(target, expected + value, rtol=1e-12, atol=1e-12)


def test_an_empty_slice_has_no_advantages() -> None:
    empty = torch.zeros(3, 0)
    flags = torch.zeros(3, 0, dtype=torch.bool)
    advantage, target = lifetime_advantages(empty, empty, empty, flags, flags, 0.9, 0.95)
    assert advantage.shape == target.shape == (3, 0)


@pytest.mark.parametrize(
    ("terminated", "expected"),
    [(False, [3.4436075, 2.9165, 2.3]), (True, [2.1277625, 1.3775, 0.5])],
)
def test_a_time_limit_bootstraps_from_the_true_final_observation(
    terminated: bool, expected: list[float]
) -> None:
    # Three steps, then another episode whose values must not leak backwards.
    reward = torch.tensor([[1.0, 1.0, 1.0, 9.0, 9.0]], dtype=torch.float64)
    value = torch.full((1, 5), 0.5, dtype=torch.float64)
    next_value = torch.tensor([[0.5, 0.5, 2.0, 7.0, 7.0]], dtype=torch.float64)
    end = torch.tensor([[False, False, True, False, False]])
    none = torch.zeros_like(end)
    flags = (end, none) if terminated else (none, end)
    cut, worthless = cut_points("episode", *flags, none, none)
    advantage, _ = lifetime_advantages(reward, value, next_value, cut, worthless, 0.9, 0.95)
    torch.testing.assert_close(advantage[0, :3], torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("endings", list(itertools.product([False, True], repeat=2)))
def test_credit_by_episode_cuts_on_any_end_and_bootstraps_unless_terminated(
    endings: tuple[bool, bool],
) -> None:
    terminated, truncated = (torch.tensor([[flag]]) for flag in endings)
    none = torch.zeros_like(terminated)
    cut, worthless = cut_points("episode", terminated, truncated, none, none)
    assert cut.item() == any(endings)
    assert worthless.item() == endings[0]


def test_credit_by_lifetime_crosses_episode_and_task_ends() -> None:
    yes, no = torch.tensor([[True]]), torch.tensor([[False]])
    cut, worthless = cut_points("lifetime", yes, yes, yes, no)
    assert not cut.item() and not worthless.item()
    cut, worthless = cut_points("lifetime", yes, yes, yes, yes)
    assert cut.item() and worthless.item()


@pytest.mark.parametrize("values", [torch.tensor([3.0]), torch.full((8,), 2.5), torch.zeros(0)])
def test_standardising_one_or_equal_values_gives_zeros(values: Tensor) -> None:
    assert torch.equal(standardise(values), torch.zeros_like(values))


def test_the_first_update_of_a_running_scale_counts_in_full() -> None:
    scale = RunningScale(decay=0.99)
    values = torch.tensor([1.0, 3.0, 5.0])
    assert torch.equal(scale.normalise(values), values)  # nothing known yet
    scale.update(values)
    assert float(scale.mean) == pytest.approx(3.0)
    assert float(scale.spread) == pytest.approx(float(values.std(correction=0)))
    torch.testing.assert_close(scale.denormalise(scale.normalise(values)), values)
    before = {name: value.clone() for name, value in scale.state_dict().items()}
    scale.update(torch.zeros(0))
    assert all(torch.equal(before[name], scale.state_dict()[name]) for name in before)
