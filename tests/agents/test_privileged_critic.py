"""Laws of the privileged critic: it moves no action, it is no part of the agent, it knows more."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from sojourn.agents import (
    Extras,
    LifetimeReturns,
    MetaTrainer,
    PPOLoss,
    PrivilegedCritic,
    Rollout,
    Trajectory,
    slice_loss,
)

MakeRollout = Callable[..., Rollout]


def trainer(rollout: Rollout, extras: Extras, credit: str = "lifetime") -> MetaTrainer:
    returns = LifetimeReturns(discount=0.9, credit=credit)  # type: ignore[arg-type]
    return MetaTrainer(rollout.agent, returns, PPOLoss(), 1e-2, 1, 2, extras=extras)  # type: ignore[arg-type]


def knowing(rollout: Rollout, credit: str = "lifetime") -> MetaTrainer:
    torch.manual_seed(1)
    return trainer(rollout, Extras(critic=PrivilegedCritic), credit)


def test_actions_and_memories_are_the_same_bit_for_bit(
    make_rollout: MakeRollout, core_name: str
) -> None:
    plain, informed = (make_rollout(core_name, num_lifetimes=2) for _ in range(2))
    assert_same_life(plain, informed, knowing(informed).critic)


def test_so_they_are_where_credit_is_cut(make_rollout: MakeRollout) -> None:
    plain, informed = (make_rollout(num_lifetimes=2, credit="episode") for _ in range(2))
    assert_same_life(plain, informed, knowing(informed, "episode").critic)


def assert_same_life(plain: Rollout, informed: Rollout, critic: PrivilegedCritic | None) -> None:
    lived: list[Trajectory] = [plain.collect(12)[0], informed.collect(12, critic)[0]]
    for name in ("action", "log_prob", "reward", "reset"):
        assert torch.equal(lived[0].steps[name], lived[1].steps[name]), name
    assert not torch.equal(lived[0].steps["value"], lived[1].steps["value"])
    assert "knowledge" not in lived[0].steps
    for key in plain.state.keys(True, True):
        assert torch.equal(plain.state[key], informed.state[key])


def test_acting_values_are_those_of_training(make_rollout: MakeRollout) -> None:
    rollout = make_rollout(segments=1)
    learner = knowing(rollout)
    steps = (lived := rollout.collect(13, learner.critic)[0]).steps
    features = learner.agent.read(steps["observation"], lived.state, steps["reset"]).features
    values = learner.learner.values(features, steps).detach()
    torch.testing.assert_close(values, steps["value"], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(values[:, 1:], steps["next_value"][:, :-1], rtol=1e-4, atol=1e-5)


def test_the_critic_learns_and_is_no_part_of_the_agent(make_rollout: MakeRollout) -> None:
    rollout = make_rollout()
    before = [p.detach().clone() for p in rollout.agent.value.parameters()]  # type: ignore[attr-defined]
    learner = knowing(rollout)
    assert learner.critic is not None
    old = [parameter.detach().clone() for parameter in learner.critic.parameters()]
    for _ in range(2):
        metrics = learner.iterate(rollout, 8, 0.0).metrics
        assert metrics["losses/first_ratio_error"] < 1e-5
    assert not any(torch.equal(a, b) for a, b in zip(old, learner.critic.parameters(), strict=True))
    own = rollout.agent.value.parameters()  # type: ignore[attr-defined]
    assert all(torch.equal(a, b) for a, b in zip(before, own, strict=True))
    assert not any("critic" in name for name in rollout.agent.state_dict())  # type: ignore[attr-defined]


def test_another_slice_loss_is_that_of_the_update(make_rollout: MakeRollout) -> None:
    rollout = make_rollout()
    learner = knowing(rollout)
    trajectory = rollout.collect(8, learner.critic)[0]
    told = slice_loss(learner, trajectory, 0.0)()
    learner.num_minibatches, learner.learning_rate = 1, lambda _: 0.0
    assert float(told.detach()) == pytest.approx(
        learner.update(trajectory, 0.0)["losses/total"], rel=1e-5
    )


def test_knowledge_tells_the_value_of_hidden_arms(make_rollout: MakeRollout) -> None:
    """A pull of arms p ~ U(0, 1) is worth what its task hides: only who knows it can tell."""
    rollout = make_rollout("none", num_lifetimes=64, pulls=4)
    errors = []
    for extras in (Extras(), Extras(critic=PrivilegedCritic)):
        torch.manual_seed(0)
        learner = trainer(rollout, extras, "lifetime")
        learner.returns.discount = lambda _: 0.0
        learner.returns.reward = "expected"
        explained = [
            learner.iterate(rollout, 8, 0.0).metrics["losses/explained_variance"] for _ in range(25)
        ]
        errors.append(1.0 - np.mean(explained[-5:]))
    assert errors[1] < 0.85 * errors[0]
