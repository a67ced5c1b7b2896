"""Three clocks: advantages against the definition, step by step, and no change where they stand."""

from collections.abc import Callable

import pytest
import torch
from tensordict import TensorDict
from torch import Tensor

from sojourn.agents import (
    LifetimeReturns,
    Linear,
    Rollout,
    boundary_discounts,
    cut_points,
    lifetime_advantages,
)

from .test_returns import random_flags


def loop(
    reward: Tensor,
    value: Tensor,
    ahead: Tensor,
    flags: tuple[Tensor, ...],
    clocks: tuple[float, float, float],
    trace: float,
) -> Tensor:
    """Generalised advantages of whole lifetimes with a discount of its own for every step."""
    step, episode, task = clocks
    terminated, truncated, task_end, lifetime_end = flags
    advantage = torch.zeros_like(reward)
    for b in range(reward.shape[0]):
        following = 0.0
        for t in reversed(range(reward.shape[1])):
            discount = step
            if terminated[b, t] or truncated[b, t]:
                discount *= episode
            if task_end[b, t]:
                discount *= task
            if lifetime_end[b, t]:
                discount = following = 0.0
            delta = reward[b, t] + discount * ahead[b, t] - value[b, t]
            following = float(delta + discount * trace * following)
            advantage[b, t] = following
    return advantage


@pytest.mark.parametrize("clocks", [(0.9, 0.5, 0.25), (1.0, 1.0, 0.0), (0.8, 0.7, 1.0)])
@pytest.mark.parametrize("shape", [(1, 1), (4, 33)])
def test_advantages_with_three_clocks_equal_the_loop(
    clocks: tuple[float, float, float], shape: tuple[int, int]
) -> None:
    generator = torch.Generator().manual_seed(5)
    flags = random_flags(shape, generator)
    cut, worthless = cut_points("lifetime", *flags)
    reward, value, ahead = (
        torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(3)
    )
    discount = boundary_discounts(*clocks, flags[0] | flags[1], flags[2], cut, reward)
    advantage, _ = lifetime_advantages(reward, value, ahead, cut, worthless, discount, 0.8)
    expected = loop(reward, value, ahead, flags, clocks, 0.8)
    torch.testing.assert_close(advantage, expected, rtol=1e-12, atol=1e-12)


def test_a_reward_weighs_the_product_of_the_three_clocks() -> None:
    # Steps 0 .. 5; an episode ends at 1 and 3, a task ends at 3 too. The only reward is the last.
    episode_end = torch.tensor([[False, True, False, True, False, False]])
    task_end = torch.tensor([[False, False, False, True, False, False]])
    none = torch.zeros_like(task_end)
    reward = torch.zeros(1, 6, dtype=torch.float64)
    reward[0, 5] = 1.0
    zeros = torch.zeros_like(reward)
    discount = boundary_discounts(0.9, 0.5, 0.1, episode_end, task_end, none, reward)
    returns, _ = lifetime_advantages(reward, zeros, zeros, none, none, discount, 1.0)
    expected = [0.9**5 * 0.5**2 * 0.1, 0.9**4 * 0.5**2 * 0.1, 0.9**3 * 0.5 * 0.1]
    expected += [0.9**2 * 0.5 * 0.1, 0.9, 1.0]
    torch.testing.assert_close(returns, torch.tensor([expected], dtype=torch.float64))


def test_clocks_that_stand_still_leave_the_discount_as_it_is() -> None:
    flags = torch.tensor([[True, False]])
    assert boundary_discounts(0.97, 1.0, 1.0, flags, flags, ~flags, torch.zeros(1, 2)) == 0.97


def test_the_value_of_a_truncated_episode_itself_is_discounted_by_its_step_alone() -> None:
    end = torch.tensor([[True, True]])
    cut = torch.tensor([[True, False]])
    found = boundary_discounts(0.9, 0.5, 0.5, end, ~end, cut, torch.zeros(1, 2))
    assert isinstance(found, Tensor)
    torch.testing.assert_close(found, torch.tensor([[0.9, 0.45]]))


@pytest.mark.parametrize("name", ["episode_discount", "task_discount"])
def test_an_impossible_clock_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"returns.{name}: expected a number in"):
        LifetimeReturns(**{name: 1.5})


def test_independent_tasks_are_worth_what_they_are_alone(
    make_rollout: Callable[..., Rollout],
) -> None:
    steps = make_rollout(segments=2).collect(20)[0].steps  # two tasks of ten steps
    whole = LifetimeReturns(task_discount=0.0, reward_scale="none").prepare(steps, 0.0)
    alone = LifetimeReturns(credit="task", reward_scale="none").prepare(steps, 0.0)
    assert torch.equal(whole["advantage"], alone["advantage"])
    assert steps["task_end"].any() and not steps["lifetime_end"].all()


def test_clocks_may_be_schedules() -> None:
    returns = LifetimeReturns(episode_discount=Linear(0.0, 1.0), reward_scale="none")
    flags = dict.fromkeys(("truncated", "task_end", "lifetime_end"), torch.zeros(1, 2).bool())
    columns = flags | {
        "terminated": torch.tensor([[True, False]]),
        "reward": torch.tensor([[0.0, 1.0]]),
        "value": torch.zeros(1, 2),
        "next_value": torch.zeros(1, 2),
    }
    steps = TensorDict(columns, batch_size=[1, 2])
    targets = [returns.prepare(steps, progress)["value_target"] for progress in (0.0, 1.0)]
    returns.scale.load_state_dict(LifetimeReturns().scale.state_dict())
    assert targets[0][0, 0] < targets[1][0, 0]
