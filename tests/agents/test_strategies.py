"""Laws of continual-learning strategies: closed forms, and nothing where their strength is zero."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from sojourn.agents import (
    EWC,
    Extras,
    L2Init,
    Learner,
    LifetimeReturns,
    MetaTrainer,
    PPOLoss,
    Restart,
    Rollout,
    Trajectory,
    fisher_information,
)
from sojourn.agents.strategy import quadratic
from sojourn.agents.task_clock import TaskClock, steps_of_ended_tasks

MakeRollout = Callable[..., Rollout]
Make = Callable[[Learner], object]


def trainer(rollout: Rollout, strategy: Make | None, num_epochs: int = 1) -> MetaTrainer:
    extras = Extras(strategy=strategy)  # type: ignore[arg-type]
    returns = LifetimeReturns(discount=0.9)
    return MetaTrainer(rollout.agent, returns, PPOLoss(), 1e-2, num_epochs, extras=extras)  # type: ignore[arg-type]


def flags(rollout: Rollout, task_end: list[list[bool]]) -> Trajectory:
    trajectory, _ = rollout.collect(len(task_end[0]))
    trajectory.steps["task_end"] = torch.tensor(task_end)
    return trajectory


def test_a_quadratic_penalty_by_hand() -> None:
    theta = {"w": torch.tensor([1.0, 3.0], requires_grad=True), "b": torch.tensor([2.0])}
    anchor = {"w": torch.tensor([0.0, 1.0]), "b": torch.tensor([5.0])}
    weight = {"w": torch.tensor([10.0, 0.5]), "b": torch.tensor([2.0])}
    assert float(quadratic(theta, anchor).detach()) == 1.0 + 4.0 + 9.0
    penalty = quadratic(theta, anchor, weight)
    assert float(penalty.detach()) == 10.0 + 0.5 * 4.0 + 2.0 * 9.0
    (gradient,) = torch.autograd.grad(penalty, theta["w"])
    torch.testing.assert_close(gradient, torch.tensor([2 * 10.0 * 1.0, 2 * 0.5 * 2.0]))


def test_the_fisher_information_of_the_policys_bias_by_hand(make_rollout: MakeRollout) -> None:
    rollout = make_rollout(num_lifetimes=3)
    trajectory = flags(rollout, [[False] * 4 + [True] + [False] * 2, [True] * 7, [False] * 7])
    found = fisher_information(rollout.agent, trajectory, num_lifetimes=3)  # type: ignore[arg-type]
    steps, expected, counted = trajectory.steps, torch.zeros(3), 0
    outputs = rollout.agent.unroll(steps["observation"], trajectory.state, steps["reset"])[0]  # type: ignore[attr-defined]
    for row, length in enumerate((5, 7, 7)):
        taken = torch.nn.functional.one_hot(steps["action"][row, :length], 3)
        score = (taken - outputs[row, :length].softmax(-1)).sum(0)
        expected, counted = expected + score.square(), counted + length
    torch.testing.assert_close(found["policy.project.bias"], (expected / counted).detach())
    assert not found["value.project.weight"].any()


def test_ewc_consolidates_and_fades(make_rollout: MakeRollout) -> None:
    rollout = make_rollout(num_lifetimes=2)
    learner = trainer(rollout, partial(EWC, at=1, strength=4.0, decay=0.5))
    strategy = learner.strategy
    assert isinstance(strategy, EWC)
    assert strategy.losses(0.0) == {}
    slices = [rollout.collect(5)[0] for _ in range(2)]
    single = [fisher_information(rollout.agent, s, 16) for s in slices]  # type: ignore[arg-type]
    for trajectory in slices:
        strategy.before(trajectory)
    for name, value in strategy.importance.items():
        torch.testing.assert_close(value, single[1][name] + 0.5 * single[0][name])
    assert float(strategy.losses(0.0)["ewc"].detach()) == 0.0
    bias = rollout.agent.policy.project.bias  # type: ignore[attr-defined]
    with torch.no_grad():
        bias += torch.tensor([0.5, 0.0, 0.0])
    expected = 0.5 * 4.0 * float(strategy.importance["policy.project.bias"][0]) * 0.25
    assert float(strategy.losses(0.0)["ewc"].detach()) == pytest.approx(expected)
    assert expected > 0.0


def test_l2_init_pulls_back_in_proportion(make_rollout: MakeRollout) -> None:
    rollout = make_rollout()
    strategy = trainer(rollout, partial(L2Init, strength=0.25)).strategy
    assert float(strategy.losses(0.0)["l2_init"].detach()) == 0.0
    bias = rollout.agent.policy.project.bias  # type: ignore[attr-defined]
    with torch.no_grad():
        bias += torch.tensor([1.0, -2.0, 0.0])
    (gradient,) = torch.autograd.grad(strategy.losses(0.0)["l2_init"], bias)
    torch.testing.assert_close(gradient, 2 * 0.25 * torch.tensor([1.0, -2.0, 0.0]))


@pytest.mark.parametrize("none", [partial(EWC, at=1, strength=0.0), partial(L2Init, strength=0.0)])
def test_without_strength_it_is_finetuning(make_rollout: MakeRollout, none: Make) -> None:
    def weights(strategy: Make | None) -> list[Tensor]:
        rollout = make_rollout(num_lifetimes=2)
        learner = trainer(rollout, strategy)
        for _ in range(3):
            learner.iterate(rollout, 5, 0.0)
        return [parameter.detach() for parameter in rollout.agent.parameters()]  # type: ignore[attr-defined]

    assert all(torch.equal(a, b) for a, b in zip(weights(None), weights(none), strict=True))


def test_a_restarted_agent_is_the_first_one(make_rollout: MakeRollout) -> None:
    rollout = make_rollout(num_lifetimes=2)  # two episodes of five pulls a task
    first = [p.detach().clone() for p in rollout.agent.parameters()]  # type: ignore[attr-defined]
    learner = trainer(rollout, partial(Restart, at="task_end"))

    def is_first() -> bool:
        now = rollout.agent.parameters()  # type: ignore[attr-defined]
        return all(torch.equal(a, b) for a, b in zip(first, now, strict=True))

    assert learner.iterate(rollout, 6, 0.0).episodes
    assert not is_first()
    assert not rollout.pending_reset.any()
    learner.iterate(rollout, 6, 0.0)  # the tasks end at step 10
    assert is_first()
    assert rollout.pending_reset.all()
    assert not learner.optimizer.state
    assert float(learner.returns.scale.weight) == 0.0
    metrics = learner.iterate(rollout, 6, 0.0).metrics
    assert metrics["losses/first_ratio_error"] < 1e-5
    assert not is_first()


def test_a_clock_waits_for_the_last_lifetime(make_rollout: MakeRollout) -> None:
    rollout, clock = make_rollout(num_lifetimes=2), TaskClock("task_end")
    struck = [
        clock.strikes(flags(rollout, ends))
        for ends in (
            [[True, False], [False, False]],
            [[True, False], [False, False]],
            [[False, False], [False, True]],
            [[False, False], [False, True]],
            [[True, True], [False, False]],
            [[True, True], [True, True]],
        )
    ]
    assert struck == [False, False, True, False, True, True]
    again = TaskClock("task_end")
    again.load_state_dict(clock.state_dict())
    assert not again.strikes(flags(rollout, [[True, False], [False, False]]))
    every = TaskClock(2)
    assert [every.strikes(flags(rollout, [[True], [True]])) for _ in range(4)] == [False, True] * 2


def test_steps_up_to_the_last_task_end_count(make_rollout: MakeRollout) -> None:
    ends = [[False, True, False, True, False], [False] * 5]
    counted = steps_of_ended_tasks(flags(make_rollout(num_lifetimes=2), ends))
    assert counted.tolist() == [[True] * 4 + [False], [True] * 5]


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (partial(EWC, at=0), "at"),
        (partial(EWC, at="task"), "at"),  # type: ignore[arg-type]
        (partial(EWC, at=1, decay=1.5), "decay"),
        (partial(EWC, at=1, strength=-1.0), "strength"),
        (partial(EWC, at=1, fisher_lifetimes=0), "fisher_lifetimes"),
        (partial(L2Init, strength=float("nan")), "strength"),
        (partial(Restart, at=-3), "at"),
    ],
)
def test_impossible_numbers_are_refused(make_rollout: MakeRollout, make: Make, key: str) -> None:
    with pytest.raises(ValueError, match=f"strategy.{key}: expected"):
        trainer(make_rollout(num_lifetimes=1), make)
