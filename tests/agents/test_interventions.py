"""Laws of interventions: equal conditions live equal lives, and each one does what it says."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from sojourn.agents import (
    Ending,
    Exchanged,
    Frozen,
    Inherited,
    Intervention,
    Moment,
    RandomPolicy,
    Restored,
    Rollout,
    SharedLuck,
    Snapshots,
    Treatment,
    Watch,
)
from sojourn.envs import Channel, Crowd, Interface

from .conftest import bandit_stream, make_agent

MakeRollout = Callable[..., Rollout]
SEGMENT = 10  # steps: two episodes of five pulls


def loud(rollout: Rollout) -> Rollout:
    """Let the memory be heard: the reads of a fresh core hardly move the policy."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in rollout.agent.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    rollout.state = rollout.agent.init_state(rollout.crowd.num_lifetimes).detach().clone()
    return rollout


def live(rollout: Rollout, steps: int, intervention: Intervention | None = None) -> list[Ending]:
    return rollout.live(steps, SharedLuck(7), intervention)


def same_state(one: Rollout, other: Rollout, rows: slice = slice(None)) -> bool:
    pairs = [(one.state[rows][key], other.state[rows][key]) for key in one.state.keys(True, True)]
    return all(torch.equal(a, b) for a, b in pairs)


def test_a_life_is_lived_alike_with_and_without_a_trajectory(make_rollout: MakeRollout) -> None:
    one, other = make_rollout(), make_rollout()
    _, records = one.collect(23)
    endings = other.live(23)
    assert repr([ending.record for ending in endings]) == repr(records)
    assert same_state(one, other)
    assert [e.ends_segment for e in endings] == [e.record.episode == 1 for e in endings]


def test_equal_conditions_live_equal_lives(make_rollout: MakeRollout) -> None:
    one, other = loud(make_rollout()), loud(make_rollout())
    assert repr(live(one, 24)) == repr(live(other, 24))
    assert same_state(one, other)


def test_a_carried_life_and_its_reset_twin_part_at_the_first_boundary(
    make_rollout: MakeRollout,
) -> None:
    carried, twin = loud(make_rollout()), loud(make_rollout(memory_reset="task"))
    assert repr(live(carried, SEGMENT)) == repr(live(twin, SEGMENT))
    assert same_state(carried, twin)
    live(carried, 1)
    live(twin, 1)
    assert not same_state(carried, twin)


def test_luck_belongs_to_the_lifetime_and_not_to_the_crowd() -> None:
    agent = make_agent(bandit_stream().interface)
    many = Rollout(agent, Crowd(bandit_stream(), 5))
    few = Rollout(agent, Crowd(bandit_stream(), 2, first_lifetime=3))
    last = [e.record for e in live(many, 20) if e.record.lifetime >= 3]
    assert repr(last) == repr([e.record for e in live(few, 20)])


def test_luck_is_uniform_and_shared_by_place() -> None:
    rows = np.arange(20_000)
    zero = np.zeros_like(rows)
    luck = SharedLuck(3, period=10_000).draw(Moment(rows, zero, zero, zero, zero, zero), (2,))
    assert luck.shape == (20_000, 2)
    assert luck.dtype == torch.float32
    assert luck.min() >= 0 and luck.max() < 1
    assert torch.equal(luck[:10_000], luck[10_000:])
    assert abs(float(luck[:10_000].mean()) - 0.5) < 0.01
    assert abs(np.corrcoef(luck[:10_000].T.numpy())[0, 1]) < 0.03
    later = SharedLuck(3).draw(Moment(rows, zero, zero, zero, zero, zero + 1), (2,))
    assert not torch.isin(later, luck).all()
    with pytest.raises(ValueError, match="period: expected at least 1, got 0"):
        SharedLuck(0, period=0)


def test_a_frozen_memory_never_changes(make_rollout: MakeRollout, core_name: str) -> None:
    rollout = loud(make_rollout(core_name))
    live(rollout, 4)
    before = rollout.state.clone()
    live(rollout, 3, Frozen())
    for key in before.keys(True, True):
        assert torch.equal(rollout.state[key], before[key]), key


@pytest.mark.parametrize(("clock", "start"), [("steps", 20), ("segments", 2)])
def test_a_memory_frozen_later_lives_like_the_carried_one_until_then(
    make_rollout: MakeRollout, clock: str, start: int
) -> None:
    carried, frozen = loud(make_rollout()), loud(make_rollout())
    treatment = Frozen(start, clock)  # type: ignore[arg-type]
    assert repr(live(carried, 20)) == repr(live(frozen, 20, treatment))
    assert same_state(carried, frozen)
    before = frozen.state.clone()
    assert repr(live(carried, 30)) != repr(live(frozen, 30, treatment))
    assert all(torch.equal(frozen.state[key], before[key]) for key in before.keys(True, True))


def test_snapshots_are_the_memories_at_the_ends_of_tasks(make_rollout: MakeRollout) -> None:
    rollout, snapshots = loud(make_rollout(segments=2)), Snapshots()
    kept, watch = {}, Watch(snapshots)
    for age in range(1, 6):
        live(rollout, SEGMENT, watch)
        kept[age] = rollout.state.clone()
    watch.treat(rollout.state, Moment.of(rollout.crowd))  # seen when the next one starts
    found = snapshots.stack([(1, 2), (0, 1), (5, 1)])
    for key in found.keys(True, True):  # lives of two tasks: row 1 lives lifetimes 1, 5, 9
        expected = [kept[2][key][1], kept[1][key][0], kept[3][key][1]]
        assert torch.equal(found[key], torch.stack(expected)), key
    assert snapshots.oldest(1) == 2
    assert (0, 3) not in snapshots
    with pytest.raises(KeyError, match="lifetime 99"):
        snapshots.oldest(99)


def test_watching_changes_nothing(make_rollout: MakeRollout) -> None:
    plain, watched = loud(make_rollout()), loud(make_rollout())
    assert repr(live(plain, 24)) == repr(live(watched, 24, Watch(Snapshots())))
    assert same_state(plain, watched)


def test_exchanged_memories_come_from_another_life_of_the_same_age(
    make_rollout: MakeRollout,
) -> None:
    snapshots = Snapshots()
    live(loud(make_rollout()), 2 * SEGMENT + 1, Watch(snapshots))
    rollout = loud(make_rollout())
    exchange = Exchanged(snapshots, range(4))
    assert repr(live(rollout, SEGMENT, exchange)) == repr(live(loud(make_rollout()), SEGMENT))
    treatment = exchange.treat(rollout.state, Moment.of(rollout.crowd))
    donors = snapshots.stack([(1, 1), (2, 1), (3, 1), (0, 1)])
    for key in donors.keys(True, True):
        assert torch.equal(treatment.state[key], donors[key]), key
    assert treatment.replaced is not None and treatment.replaced.all()
    observation, reset = rollout._next_input()
    assert reset is None, "the life itself goes on"
    assert (observation["previous_action"] < rollout.crowd.interface.num_actions).all()
    with pytest.raises(ValueError, match="lifetimes: expected at least 2"):
        Exchanged(snapshots, [0])


def test_restoring_the_first_memory_is_a_reset(make_rollout: MakeRollout) -> None:
    reset = loud(make_rollout(memory_reset="episode"))
    restored = loud(make_rollout(memory_reset="episode"))
    first = restored.agent.init_state(4).detach()
    assert repr(live(reset, 22)) == repr(live(restored, 22, Restored(first)))
    assert same_state(reset, restored)


def test_a_restored_memory_is_what_an_episode_starts_from(make_rollout: MakeRollout) -> None:
    rollout = loud(make_rollout(memory_reset="episode"))
    live(rollout, 8)
    memories = rollout.state[:2].clone()
    treatment = Restored(memories, first=1, writes=False).treat(
        rollout.state, Moment(np.arange(4), *(np.zeros(4, np.int64) for _ in range(5)))
    )
    assert treatment.replaced is not None and treatment.writes is not None
    assert treatment.replaced.tolist() == [False, True, True, False]
    assert not treatment.writes.any()


def test_an_heir_begins_with_an_old_memory_and_blank_inputs(make_rollout: MakeRollout) -> None:
    plain, heir = (loud(make_rollout(segments=2)) for _ in range(2))
    first = heir.agent.init_state(3).detach()
    assert repr(live(plain, 3 * SEGMENT)) == repr(live(heir, 3 * SEGMENT, Inherited(first)))
    assert same_state(plain, heir), "the learned first memory is worth a reset, in every life"
    old = loud(make_rollout(num_lifetimes=3))
    live(old, SEGMENT)
    born = Moment(np.array([0, 3, 4, 5]), *(np.array([0, 0, 1, 0]) for _ in range(5)))
    treatment = Inherited(old.state).treat(heir.state, born)
    assert treatment.replaced is not None and treatment.writes is None
    assert treatment.replaced.tolist() == [True, True, False, True]
    for key in old.state.keys(True, True):
        assert torch.equal(treatment.state[key][[0, 1, 3]], old.state[key][[0, 0, 2]]), key
        assert torch.equal(treatment.state[key][2], heir.state[key][2]), key


def test_the_random_policy_is_uniform_over_what_a_task_has() -> None:
    interface = Interface({"x": Channel("vector", (1,))}, 3, (2,), 2)
    policy = RandomPolicy(interface)
    mask = torch.tensor([True, False, True, True, True, True, False]).expand(4000, 7)
    uniform = torch.rand(4000, 4, generator=torch.Generator().manual_seed(0))
    state = policy.init_state(4000)
    action = policy.act({"action_mask": mask}, state, uniform=uniform).action
    assert set(action[:, 0].tolist()) == {0.0, 2.0}
    assert abs(float((action[:, 0] == 0).double().mean()) - 0.5) < 0.03
    assert abs(float(action[:, 1].mean()) - 0.5) < 0.03
    assert abs(float(action[:, 2].mean())) < 0.04 and abs(float(action[:, 2].std()) - 0.577) < 0.02
    assert (action[:, 3] == 0).all(), "a real that the task does not have"
    with pytest.raises(ValueError, match="uniform: a random policy"):
        policy.act({"action_mask": mask}, state)


def test_the_random_policy_can_live() -> None:
    stream = bandit_stream()
    one, other = (Rollout(RandomPolicy(stream.interface), Crowd(stream, 3)) for _ in range(2))
    assert repr(live(one, 20)) == repr(live(other, 20))


def test_an_unknown_clock_is_refused() -> None:
    with pytest.raises(ValueError, match="clock: expected 'steps' or 'segments', got 'hours'"):
        Frozen(3, "hours")  # type: ignore[arg-type]


def test_a_treatment_does_nothing_by_default(make_rollout: MakeRollout) -> None:
    class Nothing:
        def treat(self, state: object, moment: Moment) -> Treatment:
            return Treatment(state)  # type: ignore[arg-type]

    plain, treated = loud(make_rollout()), loud(make_rollout())
    assert repr(live(plain, 12)) == repr(live(treated, 12, Nothing()))
