"""Laws of the meta-trainer: same seed same bits, first ratio 1, loud on NaN, and it learns."""

import math
import warnings
from collections.abc import Callable

import pytest
import torch
from tensordict import TensorDict

from sojourn.agents import LifetimeReturns, MetaTrainer, PPOLoss, Rollout

MakeRollout = Callable[..., Rollout]


def make_trainer(rollout: Rollout, **kwargs: object) -> MetaTrainer:
    returns = LifetimeReturns(discount=0.9)
    return MetaTrainer(rollout.agent, returns, PPOLoss(), **kwargs)  # type: ignore[arg-type]


def test_the_first_ratio_is_one_for_every_core(make_rollout: MakeRollout, core_name: str) -> None:
    rollout = make_rollout(core_name, segments=2)
    trainer = make_trainer(rollout)
    for _ in range(3):
        metrics = trainer.update(rollout.collect(13)[0], progress=0.0)
        assert metrics["losses/first_ratio_error"] < 1e-5
        assert all(math.isfinite(v) for k, v in metrics.items() if "variance" not in k)


def test_same_seed_same_bits(make_rollout: MakeRollout, core_name: str) -> None:
    def weights() -> list[torch.Tensor]:
        rollout = make_rollout(core_name)
        trainer = make_trainer(rollout)
        for _ in range(2):
            trainer.update(rollout.collect(8)[0], progress=0.5)
        return [parameter.detach() for parameter in rollout.agent.parameters()]

    assert all(torch.equal(a, b) for a, b in zip(weights(), weights(), strict=True))


def test_every_outer_parameter_learns(make_rollout: MakeRollout, core_name: str) -> None:
    rollout = make_rollout(core_name, segments=1)
    trainer = make_trainer(rollout)
    for _ in range(3):  # output projections that start at zero wake up after the first update
        trainer.update(rollout.collect(10)[0], progress=0.0)
    still = [
        name
        for name, parameter in rollout.agent.named_parameters()
        if parameter not in trainer.optimizer.state
        or not trainer.optimizer.state[parameter]["exp_avg"].any()
    ]
    assert still == []


def test_acting_that_disagrees_with_training_raises_the_alarm(make_rollout: MakeRollout) -> None:
    rollout = make_rollout()
    trajectory, _ = rollout.collect(8)
    trajectory.steps["log_prob"] += 0.01
    with pytest.warns(UserWarning, match="first PPO ratio is off by 1.0e-02"):
        make_trainer(rollout).update(trajectory, progress=0.0)


def test_a_non_finite_gradient_stops_the_run_and_names_its_place(
    make_rollout: MakeRollout,
) -> None:
    rollout = make_rollout()
    trajectory, _ = rollout.collect(8)
    trajectory.steps["reward"][0, 3] = math.inf
    before = [p.detach().clone() for p in rollout.agent.parameters()]
    with pytest.raises(FloatingPointError, match="non-finite gradient in"):
        make_trainer(rollout).update(trajectory, progress=0.0)
    assert all(torch.equal(a, b) for a, b in zip(before, rollout.agent.parameters(), strict=True))


@pytest.mark.parametrize("num_lifetimes", [1, 3])
def test_more_minibatches_than_lifetimes_and_single_steps_work(
    make_rollout: MakeRollout, num_lifetimes: int
) -> None:
    rollout = make_rollout(num_lifetimes=num_lifetimes)
    trainer = make_trainer(rollout, num_minibatches=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metrics = trainer.update(rollout.collect(1)[0], progress=0.0)
    assert math.isfinite(metrics["losses/total"])


def test_task_wise_advantages_let_rare_tasks_be_heard() -> None:
    returns = LifetimeReturns(advantage_scale="task")
    advantage = torch.tensor([[1.0, 3.0, 100.0, 300.0]])
    steps = TensorDict({"task": torch.tensor([[0, 0, 1, 1]])}, batch_size=[1, 4])
    scaled = returns._scale_advantage(advantage, steps)
    torch.testing.assert_close(scaled, torch.tensor([[-1.0, 1.0, -1.0, 1.0]]))


def test_expected_reward_is_used_where_it_is_known() -> None:
    steps = TensorDict(
        {
            "reward": torch.tensor([[1.0, 0.0]]),
            "expected_reward": torch.tensor([[0.3, math.nan]]),
            "reward_scale": torch.tensor([[2.0, 2.0]]),
        },
        batch_size=[1, 2],
    )
    reward = LifetimeReturns(reward="expected").training_reward(steps)
    torch.testing.assert_close(reward, torch.tensor([[0.6, 0.0]]))
    reward = LifetimeReturns(reward="sampled", reward_scale="none").training_reward(steps)
    torch.testing.assert_close(reward, torch.tensor([[1.0, 0.0]]))


def test_it_learns_a_bandit(make_rollout: MakeRollout) -> None:
    rollout = make_rollout(num_lifetimes=32, segments=1, pulls=10)
    returns = LifetimeReturns(discount=0.95, reward="expected")
    trainer = MetaTrainer(rollout.agent, returns, PPOLoss(), learning_rate=3e-3)
    rewards = []
    for _ in range(60):
        trajectory, _ = rollout.collect(20)
        rewards.append(float(trajectory.steps["expected_reward"].mean()))
        trainer.update(trajectory, progress=0.0)
    # Three arms with p ~ U(0, 1): random earns .50 a pull (s.e. .01 here), knowing the best .75.
    assert sum(rewards[:5]) / 5 < 0.53
    assert sum(rewards[-10:]) / 10 > 0.56
