"""Which tasks return, and when."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from sojourn.envs import (
    BernoulliBandit,
    Independent,
    Length,
    MovingBandit,
    NeverRepeating,
    Recurring,
    Segment,
    Stream,
)

ARMS = [BernoulliBandit(2, 4), BernoulliBandit(3, 4)]


def facts(segment: Segment) -> tuple[Any, ...]:
    task: Any = segment.task
    return (task.name, segment.seed, segment.task_index, *task.before.tolist())


def segments(stream: Stream, num: int, lifetime: int = 0) -> list[tuple[Any, ...]]:
    return [facts(stream.segment(lifetime, k)) for k in range(num)]


def test_recurring_tasks_return_in_order_with_their_instances() -> None:
    seen = segments(Stream(Recurring(ARMS, num_tasks=4), Length(1), 0), 12)
    assert seen[:4] == seen[4:8] == seen[8:]
    assert len({instance for _, instance, *_ in seen}) == 4
    assert len({arms for _, _, _, *means in seen for arms in means}) == 2 + 3 + 2 + 3
    assert [name for name, *_ in seen[:4]] == ["bandit-2x4", "bandit-3x4"] * 2


def test_independent_tasks_return_at_random() -> None:
    stream = Stream(Independent(ARMS, num_tasks=4), Length(1), 0)
    seen = segments(stream, 400)
    counts = Counter(seen)
    assert len(counts) == 4 and min(counts.values()) > 70  # 100 expected, s.d. 8.7
    assert [s[2] for s in seen[:12]] != [0, 1, 2, 3] * 3
    followers = Counter(pairwise(seen))
    assert len(followers) == 16


def test_never_repeating_tasks_are_all_different() -> None:
    stream = Stream(NeverRepeating(ARMS), Length(1), 0)
    seen = segments(stream, 200)
    assert len(set(seen)) == 200 and [s[2] for s in seen] == list(range(200))
    assert len({s[1] for s in seen}) == 200
    assert not {s[1] for s in seen} & {s[1] for s in segments(stream, 200, lifetime=1)}


@pytest.mark.parametrize("schedule", [Recurring, Independent])
def test_a_pool_belongs_to_the_lifetime_or_to_the_stream(schedule: Any) -> None:
    own = Stream(schedule(ARMS, num_tasks=3), Length(1), 0)
    assert not set(segments(own, 9, 0)) & set(segments(own, 9, 1))
    shared = Stream(schedule(ARMS, num_tasks=3, pool="stream"), Length(1), 0)
    assert set(segments(shared, 30, 0)) == set(segments(shared, 30, 1))


def test_weights_choose_the_family() -> None:
    stream = Stream(NeverRepeating(ARMS, weights=[3, 1]), Length(1), 0)
    counts = Counter(name for name, *_ in segments(stream, 400))
    assert 260 < counts["bandit-2x4"] < 340  # 300 expected, s.d. 8.7
    only = Stream(Recurring(ARMS, num_tasks=5, weights=[0, 1]), Length(1), 0)
    assert {name for name, *_ in segments(only, 5)} == {"bandit-3x4"}


def test_the_interface_covers_every_family() -> None:
    stream = Stream(NeverRepeating([*ARMS, MovingBandit(7, 8)]), Length(1), 0)
    assert stream.interface.num_actions == 7 and set(stream.interface.channels) == {"discrete"}


@pytest.mark.parametrize("seed", [0, 1, np.int64(3), 2**40])
def test_valid_seeds(seed: Any) -> None:
    assert type(Stream(NeverRepeating(ARMS), Length(1), seed).seed) is int


@pytest.mark.parametrize("seed", [-1, "3", 1.5, None])
def test_other_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(ValueError, match="seed: expected an integer >= 0"):
        Stream(NeverRepeating(ARMS), Length(1), seed)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Recurring([]), "families: expected at least one"),
        (lambda: Recurring(["bandit"]), "expected Family objects, got 'bandit'"),
        (lambda: Recurring(ARMS, num_tasks=0), "num_tasks: expected at least 1, got 0"),
        (lambda: Recurring(ARMS, pool="all"), "expected one of lifetime, stream, got 'all'"),
        (lambda: NeverRepeating(ARMS, weights=[1]), "weights: expected 2 numbers"),
        (lambda: NeverRepeating(ARMS, weights=[0, 0]), "weights: expected 2 numbers"),
        (lambda: NeverRepeating(ARMS, weights=[2, -1]), "weights: expected 2 numbers"),
        (lambda: Length(0), "segment length: expected at least 1"),
        (lambda: Length(1, "hours"), "expected one of episodes, steps, got 'hours'"),
        (lambda: Stream(Recurring(ARMS), Length(1), 0, 0), "lifetime_segments"),
        (lambda: Stream(Recurring(ARMS), Length(1), 0, announce="yes"), "announce: .*'yes'"),
        (lambda: Stream(Recurring(ARMS), Length(1), 0, backend="jax"), "backend: .*'jax'"),
    ],
)
def test_invalid_arguments_are_named(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
