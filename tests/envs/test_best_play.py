"""Laws of best play: the oracle loses nothing where the ceiling is exact, on every kind of task."""

from collections.abc import Callable

import numpy as np
import pytest

from sojourn.envs import (
    Autoencode,
    BernoulliBandit,
    CartPole,
    Crowd,
    DarkRoom,
    EpisodeRecord,
    Family,
    GymnasiumFamily,
    HiddenReactions,
    KeyDoor,
    Length,
    MinigridFamily,
    MovingBandit,
    Oracle,
    Recurring,
    RepeatPrevious,
    Stream,
    TabularMDP,
    TMaze,
    unknown_best_play,
)

EMPTY = {"id": "MiniGrid-Empty-Random-5x5-v0", "kwargs": {"max_steps": 40}}
EXACT: dict[str, Callable[[], Family]] = {
    "dark room": lambda: DarkRoom(3, 6),
    "key and door": lambda: KeyDoor(5, 20),
    "t-maze": lambda: TMaze(4, 12),
    "recall": lambda: RepeatPrevious(1, 4),
    "autoencode": lambda: Autoencode(1),
    "cart pole": lambda: CartPole(),
    "empty grid": lambda: MinigridFamily(**EMPTY),  # type: ignore[arg-type]
    "hidden actions": lambda: MinigridFamily(
        **EMPTY,
        action_meaning="permuted",
        num_actions=3,  # type: ignore[arg-type]
    ),
    "hidden rules": lambda: HiddenReactions(),
}


def stream_of(family: Family, episodes: int = 2) -> Stream:
    return Stream(Recurring([family], num_tasks=2), Length(episodes), seed=5)


def played(stream: Stream, num_rows: int, num_episodes: int) -> list[EpisodeRecord]:
    crowd, oracle = Crowd(stream, num_rows), Oracle(stream, num_rows)
    records: list[EpisodeRecord] = []
    while len(records) < num_episodes:
        at = crowd.state_dict()["counters"]
        starts = np.equal(at["episode_step"], 0)
        actions = oracle.actions(at["lifetime"], at["segment"], at["episode"], starts)
        assert (actions >= 0).all()
        records += crowd.step(actions).episodes
    oracle.close()
    crowd.close()
    return records


@pytest.mark.parametrize("name", EXACT)
def test_the_oracle_reaches_the_ceiling_of_every_instance(name: str) -> None:
    for record in played(stream_of(EXACT[name]()), 3, 8):
        assert record.total_return == pytest.approx(record.optimal_return, abs=1e-6)


@pytest.mark.parametrize("family", [BernoulliBandit(3, 20), MovingBandit(4, 20)])
def test_the_oracle_has_no_pseudo_regret(family: Family) -> None:
    for record in played(stream_of(family), 3, 8):
        assert record.expected_return == pytest.approx(record.optimal_return, abs=1e-5)


def test_the_oracle_reaches_the_value_of_a_random_process_on_average() -> None:
    records = played(stream_of(TabularMDP(4, 3, 6), 300), 2, 500)
    lost = np.array([r.optimal_return - r.expected_return for r in records])
    assert abs(lost.mean()) < 4.5 * lost.std(ddof=1) / np.sqrt(len(lost))


def test_what_nobody_knows_is_named_and_not_played() -> None:
    stream = stream_of(GymnasiumFamily("FrozenLake-v1"))
    assert unknown_best_play(stream) == ["FrozenLake-v1"]
    assert unknown_best_play(stream_of(DarkRoom(3, 6))) == []
    oracle, zero = Oracle(stream, 2), np.zeros(2, np.int64)
    for starts in (True, False):
        assert oracle.actions(zero, zero, zero, np.array([starts] * 2)).tolist() == [-1, -1]
    oracle.close()
