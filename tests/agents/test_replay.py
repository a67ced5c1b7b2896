"""Laws of replay: on-policy V-trace is the return, fair reservoirs, silent cloning."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch

from sojourn.agents import (
    Extras,
    LifetimeReturns,
    MetaTrainer,
    PPOLoss,
    Replay,
    Rollout,
    lifetime_advantages,
)

from .conftest import make_agent

MakeRollout = Callable[..., Rollout]


def replaying(rollout: Rollout, **keys: float) -> tuple[MetaTrainer, Replay]:
    returns = LifetimeReturns(discount=0.9, task_discount=0.5)
    extras = Extras(strategy=partial(Replay, **keys))  # type: ignore[arg-type]
    trainer = MetaTrainer(rollout.agent, returns, PPOLoss(), 1e-2, 1, 1, extras=extras)  # type: ignore[arg-type]
    assert isinstance(trainer.strategy, Replay)
    return trainer, trainer.strategy


@pytest.mark.parametrize("credit", ["lifetime", "task"])
def test_on_policy_v_trace_is_the_return(make_rollout: MakeRollout, credit: str) -> None:
    rollout = make_rollout(num_lifetimes=3, segments=1, credit=credit)
    steps = rollout.collect(23)[0].steps
    returns = LifetimeReturns(discount=0.9, trace=1.0, credit=credit, episode_discount=0.8)  # type: ignore[arg-type]
    advantage, target = returns.off_policy(steps, steps["value"], steps["log_prob"], 0.0)
    cut, worthless = returns._cut_points(steps)
    expected, value = lifetime_advantages(
        returns.training_reward(steps),
        steps["value"],
        steps["next_value"],
        cut,
        worthless,
        returns._discounts(steps, cut, 0.0),
        trace=1.0,
    )
    torch.testing.assert_close(target, value, rtol=1e-5, atol=1e-5)
    scaled = (expected - expected.mean()) / (expected.std(correction=0) + 1e-8)
    torch.testing.assert_close(advantage, scaled, rtol=1e-4, atol=1e-5)


def test_unlikely_actions_count_less(make_rollout: MakeRollout) -> None:
    steps = make_rollout(num_lifetimes=1).collect(4)[0].steps
    returns = LifetimeReturns(discount=0.0, reward_scale="none")
    value = torch.full_like(steps["value"], 0.25)
    for shift, weight in ((-1.0, np.exp(-1.0)), (2.0, 1.0)):  # the ratio is clipped at 1
        _, target = returns.off_policy(steps, value, steps["log_prob"] + shift, 0.0)
        torch.testing.assert_close(target, value + weight * (steps["reward"] - value))


def test_the_reservoir_holds_every_slice_with_equal_chance(make_rollout: MakeRollout) -> None:
    rollout = make_rollout("none", num_lifetimes=4)
    trajectory = rollout.collect(2)[0]
    held = np.zeros(12)
    for seed in range(160):
        _, strategy = replaying(rollout, capacity=3, seed=seed)
        for number in range(3):
            trajectory.steps["reward"][:] = torch.arange(4.0).unsqueeze(1) + 4 * number
            strategy.before(trajectory)
        assert strategy.slices is not None and strategy.num_seen == 12
        kept = strategy.slices["steps", "reward"][:, 0].long()
        assert len(set(kept.tolist())) == 3
        held[kept] += 1
    # Each of 12 slices is held by 1/4 of 160 reservoirs; 4 standard errors.
    np.testing.assert_allclose(held, 40.0, atol=4 * np.sqrt(160 * 0.25 * 0.75))


def test_cloned_values_are_missed_only_once_weights_have_moved(make_rollout: MakeRollout) -> None:
    rollout = make_rollout(num_lifetimes=2)
    trainer, strategy = replaying(rollout, batch=4, value_cloning=1.0)
    trainer.returns.scale.update(torch.tensor([3.0, 5.0]))
    strategy.before(rollout.collect(6)[0])
    assert float(strategy.losses(0.0)["value_cloning"].detach()) == pytest.approx(0.0, abs=1e-10)
    with torch.no_grad():
        rollout.agent.value.project.bias += 0.5  # type: ignore[attr-defined]
    assert float(strategy.losses(0.0)["value_cloning"].detach()) == pytest.approx(0.25, rel=1e-4)


def test_values_are_kept_while_their_scale_moves(make_rollout: MakeRollout) -> None:
    rollout = make_rollout(num_lifetimes=2)
    trainer, strategy = replaying(rollout, batch=8, value_cloning=1.0)
    trajectory = rollout.collect(6)[0]
    strategy.before(trajectory)
    raw = trajectory.steps["value"]
    scale = trainer.returns.scale
    scale.update(torch.tensor([1.0, 5.0]))
    wanted = (raw - scale.normalise(raw)).square()
    found = float(strategy.losses(0.0)["value_cloning"].detach())
    assert float(wanted.min()) <= found <= float(wanted.max())


def test_slices_of_another_length_start_a_new_reservoir(make_rollout: MakeRollout) -> None:
    rollout = make_rollout(num_lifetimes=2)
    trainer, strategy = replaying(rollout, capacity=8, batch=2)
    for num_steps, num_held in ((4, 2), (4, 4), (5, 2)):
        trainer.iterate(rollout, num_steps, 0.0)
        assert strategy.slices is not None and len(strategy.slices) == num_held


@pytest.mark.parametrize(
    ("key", "value"), [("capacity", 0), ("batch", 0), ("weight", -1.0), ("value_cloning", -1.0)]
)
def test_impossible_numbers_are_refused(make_rollout: MakeRollout, key: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"strategy.{key}: expected"):
        replaying(make_rollout(num_lifetimes=1), **{key: value})


def test_a_memory_that_grows_is_refused(make_rollout: MakeRollout) -> None:
    rollout = make_rollout(num_lifetimes=1)
    rollout.agent = make_agent(rollout.crowd.interface, "softmax_attention")
    with pytest.raises(ValueError, match="replay needs memory states of one size"):
        replaying(rollout)
