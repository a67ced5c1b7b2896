"""Laws of transfer: pairs that differ in memory alone, credit kept within A, and silence at 0."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from sojourn.agents import (
    Extras,
    LifetimeReturns,
    MetaTrainer,
    PPOLoss,
    Rollout,
    Transfer,
)
from sojourn.agents.transfer import (
    Boundaries,
    boundaries,
    credit,
    in_both_branches,
    others_removed,
    utility,
)
from sojourn.envs import (
    BernoulliBandit,
    Crowd,
    EpisodeRecord,
    Length,
    NeverRepeating,
    Stream,
)
from sojourn.envs.episodes import Status
from sojourn.envs.task import Unit

from .conftest import bandit_stream, make_agent
from .test_evolution import RunningMeans
from .test_interventions import loud

MakeRollout = Callable[..., Rollout]
SEGMENT = 10  # steps: two episodes of five pulls


def trainer(rollout: Rollout, transfer: Transfer | None) -> MetaTrainer:
    returns = LifetimeReturns(discount=0.9, trace=0.8)
    extras = Extras(transfer=transfer)
    return MetaTrainer(rollout.agent, returns, PPOLoss(), num_epochs=1, extras=extras)  # type: ignore[arg-type]


def test_boundaries_are_the_last_task_ends_that_something_follows(
    make_rollout: MakeRollout,
) -> None:
    rollout = make_rollout(segments=3, num_lifetimes=2)
    trajectory, episodes = rollout.collect(23)
    found = boundaries(trajectory, episodes)
    assert found.row.tolist() == [0, 1]
    assert found.step.tolist() == [19, 19]
    assert found.start.tolist() == [10, 10]
    assert found.follows == [(0, 2), (1, 2)]
    trajectory, episodes = rollout.collect(20)  # steps 23 .. 42: the lifetimes end at step 29
    found = boundaries(trajectory, episodes)
    assert found.step.tolist() == [39 - 23, 39 - 23]
    assert found.start.tolist() == [30 - 23, 30 - 23]
    assert found.follows == [(2, 1), (3, 1)]


@pytest.mark.parametrize(("segments", "before"), [(2, SEGMENT), (None, 0)])
def test_a_slice_may_have_no_boundary_that_something_follows(
    make_rollout: MakeRollout, segments: int | None, before: int
) -> None:
    rollout = make_rollout(segments=segments)
    rollout.live(before)  # the slice then begins with the last task of a life
    trajectory, episodes = rollout.collect(SEGMENT if segments else SEGMENT - 1)
    assert len(boundaries(trajectory, episodes).row) == 0
    transfer = Transfer(weight=1.0, every=1)
    bonus, told = transfer.measure(rollout.agent, rollout, trajectory, episodes, 0.9)  # type: ignore[arg-type]
    assert bonus is None
    assert math.isnan(told["transfer/utility"])


def test_a_masked_reading_ends_with_the_memory_at_the_boundary(
    make_rollout: MakeRollout, core_name: str
) -> None:
    rollout, twin = make_rollout(core_name), make_rollout(core_name)
    trajectory, _ = rollout.collect(SEGMENT + 4)
    twin.collect(SEGMENT)
    steps = trajectory.steps
    lived = (torch.arange(SEGMENT + 4) < SEGMENT).expand(4, -1)
    with torch.no_grad():
        agent = rollout.agent
        found = agent.read(steps["observation"], trajectory.state, steps["reset"], lived)  # type: ignore[arg-type]
    for key in twin.state.keys(True, True):
        torch.testing.assert_close(found.state[key], twin.state[key], rtol=1e-3, atol=1e-4)


def test_branches_with_equal_memories_live_equal_lives(core_name: str) -> None:
    stream = bandit_stream()
    agent = make_agent(stream.interface, core_name)
    follows = [(0, 1), (7, 3), (2, 2)]
    found, lived = utility(
        agent, agent.init_state(3).detach(), stream, follows, 3 * SEGMENT, seed=4
    )
    assert lived == 2 * 3 * SEGMENT, "not a step after the last segment has ended"
    assert found.tolist() == [0.0, 0.0, 0.0]


def recurring_bandit() -> Stream:
    return Stream(NeverRepeating([BernoulliBandit(num_arms=3, num_pulls=20)]), Length(1), seed=1)


def informed(stream: Stream, follows: list[tuple[int, int]], sign: float = 1.0) -> TensorDict:
    """Memories that have pulled every arm a thousand times (or believe the opposite)."""
    count = 1000 * torch.ones(len(follows), 3)
    means = [stream.segment(*place).task.before for place in follows]  # type: ignore[attr-defined]
    total = sign * torch.tensor(np.stack(means), dtype=torch.float32) * count
    return TensorDict({"sum": total, "count": count}, batch_size=[len(follows)])


def test_knowing_the_task_helps_and_believing_the_opposite_hurts() -> None:
    stream, actor = recurring_bandit(), RunningMeans(3, forget=-20.0, boldness=3.0)
    follows = [(lifetime, 2) for lifetime in range(16)]
    helped, _ = utility(actor, informed(stream, follows), stream, follows, 20, seed=0)
    hurt, _ = utility(actor, informed(stream, follows, -1.0), stream, follows, 20, seed=0)
    assert helped.mean() > 0.05
    assert hurt.mean() < -0.05


@pytest.mark.parametrize("unit", ["return", "rate"])
def test_a_faster_branch_is_not_praised_for_the_episodes_that_the_other_never_reached(
    unit: Unit,
) -> None:
    def record(lifetime: int, episode: int, status: Status = "terminated") -> EpisodeRecord:
        return EpisodeRecord(
            lifetime, 0, "t", 0, unit, episode, 0, 5, 0.0, math.nan, 1.0, 0.0, status
        )

    carried = [record(0, 0), record(0, 1), record(0, 2), record(1, 0, "running")]
    fresh = [record(2, 0), record(2, 1, "cut"), record(3, 0)]
    lived = carried + fresh
    kept = [(r.lifetime, r.episode) for r in in_both_branches(lived, 2)]
    assert kept == (
        [(0, 0), (2, 0)] if unit == "return" else [(r.lifetime, r.episode) for r in lived]
    )


def test_luck_is_shared_within_a_pair_and_with_the_seed() -> None:
    stream, actor = recurring_bandit(), RunningMeans(3, forget=-20.0, boldness=1.0)
    follows = [(lifetime, 0) for lifetime in range(4)]
    memories = informed(stream, follows)
    one, again, other = (
        utility(actor, memories, stream, follows, 20, seed)[0] for seed in (3, 3, 4)
    )
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_credit_fades_backwards_within_a_and_nowhere_else() -> None:
    found = Boundaries(np.array([1]), np.array([4]), np.array([2]), [(0, 1)])
    bonus = credit((2, 6), found, np.array([3.0]), 0.5)
    assert bonus.tolist() == [[0.0] * 6, [0.0, 0.0, 0.75, 1.5, 3.0, 0.0]]
    assert credit((2, 6), found, np.array([3.0]), 0.0).sum() == 3.0


def test_the_baseline_of_a_lifetime_is_the_mean_of_the_others() -> None:
    gained = np.array([1.0, math.nan, 4.0, 10.0])
    found = others_removed(gained)
    assert found == pytest.approx([1.0 - 7.0, 0.0, 4.0 - 5.5, 10.0 - 2.5])
    assert others_removed(np.array([2.0])).tolist() == [2.0]
    assert others_removed(np.array([math.nan])).tolist() == [0.0]


def test_without_a_weight_it_is_only_logged(make_rollout: MakeRollout) -> None:
    def run(transfer: Transfer | None) -> tuple[list[torch.Tensor], dict[str, float]]:
        rollout = loud(make_rollout())
        learner = trainer(rollout, transfer)
        metrics = learner.iterate(rollout, 13, 0.0).metrics
        learner.iterate(rollout, 13, 0.0)
        return list(rollout.agent.parameters()), metrics  # type: ignore[attr-defined]

    plain, logged, signalled = run(None), run(Transfer(every=1)), run(Transfer(5.0, every=1))
    assert all(torch.equal(a, b) for a, b in zip(plain[0], logged[0], strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(plain[0], signalled[0], strict=True))
    told = {name: value for name, value in logged[1].items() if name.startswith("transfer/")}
    assert told["transfer/num_lifetimes"] == 4.0
    assert told["transfer/low"] <= told["transfer/utility"] <= told["transfer/high"]
    assert told["transfer/extra_steps"] == 2 * 4 * SEGMENT
    assert logged[1].keys() - plain[1].keys() == told.keys()


def test_it_is_measured_at_every_so_many_updates_and_resumes_with_its_count(
    make_rollout: MakeRollout,
) -> None:
    rollout = make_rollout()
    learner = trainer(rollout, Transfer(every=2))
    values = [learner.iterate(rollout, 12, 0.0).metrics["transfer/utility"] for _ in range(3)]
    assert [math.isnan(value) for value in values] == [False, True, False]
    other = trainer(make_rollout(), Transfer(every=2))
    other.load_state_dict(learner.state_dict())
    assert other.extras.transfer is not None
    assert other.extras.transfer.updates == 3


def test_the_bonus_reaches_advantages_and_not_values(make_rollout: MakeRollout) -> None:
    steps = make_rollout().collect(6)[0].steps
    bonus = torch.zeros(4, 6)
    bonus[2, 3] = 100.0
    plain, told = (LifetimeReturns().prepare(steps, 0.0, b) for b in (None, bonus))
    assert torch.equal(plain["value_target"], told["value_target"])
    assert told["advantage"].argmax() == 2 * 6 + 3


@pytest.mark.parametrize("memory_reset", ["episode", "task"])
def test_a_memory_that_forgets_at_the_boundary_is_refused(
    make_rollout: MakeRollout, memory_reset: str
) -> None:
    rollout = make_rollout(memory_reset=memory_reset)
    learner = trainer(rollout, Transfer())
    for refused in (lambda: learner.check(rollout), lambda: learner.iterate(rollout, 12, 0.0)):
        with pytest.raises(ValueError, match=f"transfer: memory_reset={memory_reset} forgets A"):
            refused()


def test_a_memory_that_grows_is_refused(make_rollout: MakeRollout) -> None:
    rollout = make_rollout("softmax_attention")
    with pytest.raises(ValueError, match="no fresh twin of its size"):
        trainer(rollout, Transfer()).check(rollout)
    trainer(rollout, None).check(rollout)


@pytest.mark.parametrize(
    ("name", "value"), [("weight", -1.0), ("weight", math.inf), ("every", 0), ("num_steps", 0)]
)
def test_impossible_numbers_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"transfer.{name}: expected"):
        Transfer(**{name: value})  # type: ignore[arg-type]


def test_the_branches_live_the_task_that_follows(make_rollout: MakeRollout) -> None:
    rollout = make_rollout(num_lifetimes=2)
    found = boundaries(*rollout.collect(SEGMENT + 1))
    playing = [segment.task.name for segment in rollout.crowd.segments]
    stream = rollout.crowd.stream
    assert [stream.segment(*place).task.name for place in found.follows] == playing
    crowd = Crowd(stream, 2)
    assert found.follows == [(0, 1), (1, 1)] and crowd.num_lifetimes == 2
