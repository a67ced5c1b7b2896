"""Laws of stale memories: what a slice starts from under new weights, and how far that is."""

import math
from collections.abc import Callable

import pytest
import torch
from tensordict import TensorDict

from sojourn.agents import Extras, LifetimeReturns, MetaTrainer, PPOLoss, Rollout, staleness
from sojourn.agents.slice_start import SliceStart, renew

from .test_interventions import loud

MakeRollout = Callable[..., Rollout]


def trainer(rollout: Rollout, **extras: object) -> MetaTrainer:
    made = Extras(**extras)  # type: ignore[arg-type]
    return MetaTrainer(rollout.agent, LifetimeReturns(), PPOLoss(), 3e-2, 1, 1, extras=made)  # type: ignore[arg-type]


def same(one: TensorDict, other: TensorDict) -> bool:
    return all(torch.equal(one[key], other[key]) for key in one.keys(True, True))


def test_a_replayed_memory_is_that_of_the_new_weights(
    make_rollout: MakeRollout, core_name: str
) -> None:
    rollout = make_rollout(core_name)
    trajectory, _ = rollout.collect(7)
    with torch.no_grad():
        for parameter in rollout.agent.parameters():  # type: ignore[attr-defined]
            parameter.add_(0.05)
    renew("replay", rollout.agent, rollout, trajectory, measured=False)  # type: ignore[arg-type]
    twin = make_rollout(core_name)
    with torch.no_grad():
        for parameter in twin.agent.parameters():  # type: ignore[attr-defined]
            parameter.add_(0.05)
        state = twin.agent.init_state(4)
        for t in range(7):  # the same life, step by step, under the new weights
            seen = {name: column[:, t] for name, column in trajectory.steps["observation"].items()}
            state = twin.agent.act(seen, state, trajectory.steps["reset"][:, t]).state
    for key in state.keys(True, True):
        torch.testing.assert_close(rollout.state[key], state[key], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("choice", ["keep", "replay", "reset"])
def test_acting_still_equals_training_after_each_choice(
    make_rollout: MakeRollout, choice: SliceStart
) -> None:
    rollout = loud(make_rollout())
    learner = trainer(rollout, slice_start=choice, staleness_every=1)
    for _ in range(3):
        metrics = learner.iterate(rollout, 7, 0.0).metrics
        assert metrics["losses/first_ratio_error"] < 1e-5
        assert 1e-4 < metrics["memory/staleness"] < 10.0


def test_without_an_update_nothing_is_stale(make_rollout: MakeRollout) -> None:
    rollout = loud(make_rollout())
    trajectory, _ = rollout.collect(7)
    before = rollout.state.clone()
    distance = renew("keep", rollout.agent, rollout, trajectory, measured=True)  # type: ignore[arg-type]
    assert distance < 1e-5
    assert same(rollout.state, before)
    assert math.isnan(renew("keep", rollout.agent, rollout, trajectory, measured=False))  # type: ignore[arg-type]


def test_a_reset_slice_starts_from_the_learned_memory_with_blank_inputs(
    make_rollout: MakeRollout,
) -> None:
    rollout = make_rollout()
    learner = trainer(rollout, slice_start="reset")
    learner.iterate(rollout, 7, 0.0)
    trajectory, _ = rollout.collect(2)
    assert trajectory.steps["reset"].tolist() == [[True, False]] * 4
    none_yet = rollout.crowd.interface.num_actions
    assert (trajectory.steps["observation"]["previous_action"][:, 0] == none_yet).all()


def test_measuring_changes_no_bits(make_rollout: MakeRollout) -> None:
    def run(**extras: object) -> list[torch.Tensor]:
        rollout = make_rollout()
        learner = trainer(rollout, **extras)
        for _ in range(2):
            learner.iterate(rollout, 7, 0.0)
        return list(rollout.agent.parameters())  # type: ignore[attr-defined]

    assert all(torch.equal(a, b) for a, b in zip(run(), run(staleness_every=1), strict=True))


def test_staleness_is_measured_at_every_so_many_updates(make_rollout: MakeRollout) -> None:
    rollout = make_rollout()
    learner = trainer(rollout, staleness_every=2)
    found = [learner.iterate(rollout, 5, 0.0).metrics["memory/staleness"] for _ in range(3)]
    assert [math.isnan(value) for value in found] == [False, True, False]
    assert "memory/staleness" not in trainer(rollout).iterate(rollout, 5, 0.0).metrics


def test_the_distance_is_relative_and_zero_between_equals() -> None:
    one = TensorDict({"a": torch.tensor([[3.0, 4.0], [0.0, 0.0]])}, batch_size=[2])
    other = TensorDict({"a": torch.tensor([[3.0, 1.0], [0.0, 0.0]])}, batch_size=[2])
    torch.testing.assert_close(staleness(other, one), torch.tensor([0.6, 0.0]))
    empty = TensorDict({"clock": torch.zeros(2, dtype=torch.int64)}, batch_size=[2])
    assert staleness(empty, empty).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("name", "value"),
    [("slice_start", "stale"), ("staleness_every", -1), ("gradient_window", 0)],
)
def test_impossible_choices_are_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"extras.{name}: expected"):
        Extras(**{name: value})  # type: ignore[arg-type]
