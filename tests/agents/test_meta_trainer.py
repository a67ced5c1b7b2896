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


@pytest.mark.parametrize(("num_lifetimes", "num_minibatches"), [(4, 2), (5, 4), (6, 4), (2, 5)])
def test_every_lifetime_is_in_one_of_the_asked_minibatches(
    make_rollout: MakeRollout, num_lifetimes: int, num_minibatches: int
) -> None:
    rollout = make_rollout(num_lifetimes=num_lifetimes)
    trainer = make_trainer(rollout, num_epochs=1, num_minibatches=num_minibatches)
    entropies: list[float] = []
    rows: list[int] = []

    def watch(_: object, inputs: tuple[torch.Tensor, ...], out: dict[str, torch.Tensor]) -> None:
        rows.append(len(inputs[0]))
        entropies.append(float(out["entropy"]))

    trainer.loss.register_forward_hook(watch)
    metrics = trainer.update(rollout.collect(6)[0], progress=0.0)
    assert sum(rows) == num_lifetimes
    assert len(rows) == min(num_lifetimes, num_minibatches)
    assert max(rows) - min(rows) <= 1
    assert metrics["losses/entropy"] == pytest.approx(sum(entropies) / len(entropies))


def test_everything_of_the_trainer_lives_where_the_agent_does(make_rollout: MakeRollout) -> None:
    rollout = make_rollout()
    rollout.agent.to("meta")
    trainer = make_trainer(rollout)
    for module in (trainer.loss, trainer.returns):
        devices = {buffer.device.type for buffer in module.buffers()}
        assert devices == {"meta"}


def test_a_trajectory_with_another_cut_of_credit_is_refused(make_rollout: MakeRollout) -> None:
    rollout = make_rollout(credit="episode")
    trajectory, _ = rollout.collect(3)
    with pytest.raises(ValueError, match="the rollout cuts at 'episode', the returns at 'lifetime"):
        make_trainer(rollout).update(trajectory, progress=0.0)


@pytest.mark.parametrize("name", ["discount", "trace"])
@pytest.mark.parametrize("value", [-0.1, 1.5, math.nan])
def test_an_impossible_discount_or_trace_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"returns.{name}: expected a number in"):
        LifetimeReturns(**{name: value})


def test_values_that_are_right_explain_everything_also_while_their_scale_moves() -> None:
    returns = LifetimeReturns(discount=0.0, reward_scale="none")
    returns.scale.update(torch.tensor([10.0, 14.0]))
    reward = torch.randn(2, 5)
    flags = dict.fromkeys(("terminated", "truncated", "task_end", "lifetime_end"))
    columns = {name: torch.zeros(2, 5, dtype=torch.bool) for name in flags} | {
        "reward": reward,
        "value": returns.scale.normalise(reward),
        "next_value": torch.randn(2, 5),
    }
    prepared = returns.prepare(TensorDict(columns, batch_size=[2, 5]), progress=0.0)
    torch.testing.assert_close(prepared["value"], prepared["value_target"])
    assert returns.explained_variance(prepared) == pytest.approx(1.0)


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
