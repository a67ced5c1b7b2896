"""Laws of probing memories: the right memory on the right task, and the life is not touched."""

import numpy as np
import pytest
import torch

from sojourn.agents import Agent, RandomPolicy, SharedLuck, Snapshots, Watch
from sojourn.envs import (
    BernoulliBandit,
    DarkRoom,
    Family,
    GymnasiumFamily,
    Length,
    MovingBandit,
    Recurring,
    Split,
    Stream,
    replay,
)
from sojourn.experiments.evaluations.conditions import Half, learners, left_out, segments_lived
from sojourn.experiments.evaluations.frozen_lives import (
    Budget,
    Condition,
    ending_row,
    frozen_copy,
    lives,
)
from sojourn.experiments.evaluations.probe import Probes, probe
from sojourn.experiments.measures.lifetimes import mean_regret
from sojourn.experiments.measures.lives import Lives
from sojourn.memory import GRU, Stack

FAMILIES: list[Family] = [DarkRoom(3, 4)]


def stream_of(families: list[Family] = FAMILIES, segments: int | None = None) -> Stream:
    schedule = Recurring(families, num_tasks=2)
    return Stream(schedule, Length(2), seed=3, lifetime_segments=segments)


def agent_of(stream: Stream) -> Agent:
    torch.manual_seed(0)
    return frozen_copy(Agent(stream.interface, Stack([GRU(8)])))


def lived(condition: Condition, stream: Stream, budget: Budget, luck: SharedLuck) -> Lives:
    rows = [
        ending_row(ending, step)
        for step, endings in lives(condition, stream, budget, luck)
        for ending in endings
    ]
    return Lives.from_columns({name: np.array([row[name] for row in rows]) for name in rows[0]})


def watched(agent: Agent, stream: Stream) -> Snapshots:
    snapshots = Snapshots()
    condition = Condition(agent, intervene=lambda: Watch(snapshots))
    lived(condition, stream, Budget(3, 100, 3), SharedLuck(5))
    return snapshots


def test_every_task_of_a_life_is_a_place_once() -> None:
    probes = Probes.of(stream_of(), 2, 3)
    assert probes.places == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert list(probes.column) == [0, 1, 0, 1]
    assert probes.played.tolist() == [[0, 1, 0], [0, 1, 0]]
    assert probes.count == 16


def test_memories_are_those_of_the_place_and_the_age() -> None:
    stream = stream_of()
    agent = agent_of(stream)
    snapshots = watched(agent, stream)
    probes = Probes.of(stream, 2, 3)
    found = probes.memories(agent, snapshots, range(16))
    expected = torch.cat(
        [
            agent.init_state(4),
            *(snapshots.stack([(b, age) for b in (0, 0, 1, 1)]) for age in (1, 2, 3)),
        ]
    )
    for key in found.keys(True, True):
        assert torch.equal(found[key], expected[key]), key
    later = probes.memories(agent, snapshots, range(4, 6))
    for key in later.keys(True, True):
        assert torch.equal(later[key], expected[key][4:6]), key


def test_the_memory_before_life_is_that_of_an_agent_reset_at_every_episode() -> None:
    stream = stream_of()
    agent = agent_of(stream)
    probes = Probes.of(stream, 2, 2)
    snapshots = watched(agent, stream)
    endings = [e for _, part in probe(probes, agent, snapshots, 3, "episode", 9) for e in part]
    again = replay(stream, probes.places, Length(3))
    luck = SharedLuck(9, period=4)
    plain = lived(Condition(agent, "episode"), again, Budget(4, 100), luck)
    mine = sorted((e.record.lifetime, e.record.episode, e.record.total_return) for e in endings)
    theirs = zip(plain.lifetime, plain.episode, plain.achieved, strict=True)
    assert mine[:12] == sorted((int(b), int(e), float(x)) for b, e, x in theirs)
    assert len(mine) == probes.count * 3


def test_the_matrix_puts_every_score_in_its_cell() -> None:
    stream = stream_of()
    probes = Probes.of(stream, 2, 2)
    agent = agent_of(stream)
    rows = [
        ending_row(ending, 0)
        for _, part in probe(probes, agent, watched(agent, stream), 2, "frozen", 9)
        for ending in part
    ]
    table = Lives.from_columns({n: np.array([row[n] for row in rows]) for n in rows[0]})
    matrix = probes.matrix(table)
    assert matrix.scores.shape == (2, 3, 2) and np.isfinite(matrix.scores).all()
    number = 2 * 4 + 3  # age 2, lifetime 1, its second task
    expected = 1.0 - table.regret()[table.lifetime == number].mean()
    assert matrix.scores[1, 2, 1] == pytest.approx(expected)


def test_half_of_a_life_is_counted_in_segments_where_they_are_known() -> None:
    assert Half.of(stream_of(), Budget(1, 100)) == Half(50, in_segments=False)
    assert Half.of(stream_of(), Budget(1, 100, 5)) == Half(3, in_segments=True)
    assert Half.of(stream_of(segments=4), Budget(1, 100)) == Half(2, in_segments=True)


def test_what_cannot_be_lived_is_named() -> None:
    agent = agent_of(stream_of())
    assert left_out(["carried", "shuffled"], agent, stream_of(), Budget(2, 10)) == {}
    assert "two lifetimes" in left_out(["shuffled"], agent, stream_of(), Budget(1, 10))["shuffled"]
    short, budget = stream_of(segments=1), Budget(2, 10, 2)
    assert segments_lived(short, budget) == 1, "a life may be shorter than what is asked for"
    assert "no second half" in left_out(["half_life"], agent, short, budget)["half_life"]
    assert left_out(["half_life"], agent, stream_of(segments=2), budget) == {}


def test_the_oracle_is_left_out_where_nobody_knows_the_best_play() -> None:
    agent, budget = agent_of(stream_of()), Budget(2, 10)
    assert left_out(["oracle"], agent, stream_of(), budget) == {}
    strange = stream_of([GymnasiumFamily("FrozenLake-v1")])
    assert "FrozenLake-v1" in left_out(["oracle"], agent, strange, budget)["oracle"]
    other = stream_of()
    other.backend = "envpool"
    assert "layouts of EnvPool" in left_out(["oracle"], agent, other, budget)["oracle"]


def test_players_are_offered_where_they_know_the_bandit() -> None:
    one = BernoulliBandit(2, 8)
    assert learners(stream_of()) == {}
    assert set(learners(stream_of([one]))) == {"thompson", "posterior_mean", "ucb"}
    single = Stream(Recurring([one], num_tasks=2), Length(1), seed=3)
    assert set(learners(single)) == {"thompson", "posterior_mean", "ucb", "gittins"}
    assert learners(stream_of([Split(one, "train")])).keys() == learners(stream_of([one])).keys()
    assert learners(stream_of([one, BernoulliBandit(3, 8)])) == {}
    assert "sliding_window_ucb" in learners(stream_of([MovingBandit(3, 8)]))
    absent = left_out(["ucb"], agent_of(stream_of()), stream_of(), Budget(2, 10))
    assert "not one kind of bandit" in absent["ucb"]


def test_a_life_ends_with_its_last_segment() -> None:
    stream = stream_of(segments=3)
    table = lived(Condition(agent_of(stream)), stream, Budget(2, 1000), SharedLuck(0))
    assert sorted(set(table.lifetime.tolist())) == [0, 1]
    assert table.segment.max() == 2 and table.ends_segment.sum() == 6
    cut = lived(Condition(agent_of(stream)), stream, Budget(2, 10), SharedLuck(0))
    assert cut.segment.max() == 0 and cut.ends_segment.sum() == 2


def test_an_episode_that_does_not_end_leaves_a_row() -> None:
    stream = stream_of()
    *_, (_, rest) = lives(Condition(agent_of(stream)), stream, Budget(2, 6), SharedLuck(0))
    assert [e.record.status for e in rest] == ["running", "running"]
    assert not any(e.ends_segment for e in rest)


def test_the_random_policy_has_regret_one() -> None:
    stream = stream_of([DarkRoom(5, 16)])
    policy = Condition(RandomPolicy(stream.interface))
    regret = mean_regret(lived(policy, stream, Budget(300, 100, 2), SharedLuck(1)))
    assert len(regret) == 300
    assert abs(regret.mean() - 1.0) < 4.5 * regret.std() / np.sqrt(300)
