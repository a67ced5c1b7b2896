"""Curricula, blurred boundaries, paths, streams of streams, and switches at hidden times."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from sojourn.envs import (
    BernoulliBandit,
    Blurry,
    Crowd,
    Curriculum,
    Drifting,
    DriftingBandit,
    Length,
    Nested,
    NeverRepeating,
    RandomCount,
    RandomLength,
    Recurring,
    Schedule,
    Shuffled,
    Stream,
)

ARMS = [BernoulliBandit(2, 4), BernoulliBandit(3, 4), BernoulliBandit(4, 4)]


def arms(schedule: Schedule, num: int, lifetime: int = 0) -> list[int]:
    """How many arms the bandits of the first segments have."""
    tasks: list[Any] = [schedule.assign(0, lifetime, k).task for k in range(num)]
    return [len(task.before) for task in tasks]


def test_curriculum_follows_its_list() -> None:
    assert arms(Curriculum(ARMS, [1, 3, 2]), 9) == [2, 3, 3, 3, 4, 4, 4, 4, 4]
    assert arms(Curriculum(ARMS, [1, 1, 2], then="again"), 9) == [2, 3, 4, 4, 2, 3, 4, 4, 2]
    drawn = [Curriculum(ARMS, [9, 1, 1]).assign(0, 0, k) for k in range(9)]
    assert len({task.before.tobytes() for task, *_ in drawn}) == 9  # type: ignore[attr-defined]
    assert [task_index for *_, task_index in drawn] == list(range(9))


def test_shuffled_rounds_play_everything_once() -> None:
    schedule = Shuffled(ARMS, num_tasks=4)
    entries = [schedule.assign(0, 0, k).task_index for k in range(400)]
    rounds = [tuple(entries[k : k + 4]) for k in range(0, 400, 4)]
    assert {tuple(sorted(turn)) for turn in rounds} == {(0, 1, 2, 3)}
    assert len(set(rounds)) > 20
    instances = {
        (entry.task_index, entry.seed) for entry in (schedule.assign(0, 0, k) for k in range(40))
    }
    assert len(instances) == 4


def test_blurred_boundary_mixes_linearly() -> None:
    sharp = [Blurry(ARMS, stay=3, width=0).assign(0, 0, k).task_index for k in range(12)]
    assert sharp == [0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 0, 0]
    schedule = Blurry(ARMS, stay=4, width=4)
    drawn = np.array(
        [[schedule.assign(0, b, k).task_index for k in range(12)] for b in range(2000)]
    )
    share = (drawn == 1).mean(0)
    expected = np.array([0, 0, 1, 3, 5, 7, 7, 5, 3, 1, 0, 0]) / 8
    error = np.sqrt(expected * (1 - expected) / 2000)
    assert (np.abs(share - expected) <= 4.5 * error).all()
    assert (drawn[:, :2] == 0).all()


def test_drift_is_small_closed_and_returns_after_a_period() -> None:
    schedule = Drifting(DriftingBandit(4, 8, period=40.0))
    means = np.array([schedule.assign(1, 2, k).task.before for k in range(90)])  # type: ignore[attr-defined]
    assert np.abs(np.diff(means, axis=0)).max() <= np.pi / 40.0 + 1e-12
    np.testing.assert_allclose(means[40:], means[:50])
    assert means.max() > 0.95 and means.min() < 0.05
    assert not np.allclose(means[0], schedule.assign(1, 3, 0).task.before)  # type: ignore[attr-defined]
    assert len({schedule.assign(1, 2, k).seed for k in range(90)}) == 90


@pytest.mark.parametrize("num_arms", [2, 5])
def test_best_drifting_arm_is_known_exactly(num_arms: int) -> None:
    family = DriftingBandit(num_arms, 8)
    rng = np.random.default_rng(0)
    best = np.sort((1 + np.sin(2 * np.pi * rng.random((40_000, num_arms)))) / 2)[:, -1]
    assert abs(best.mean() - family.reference.ceiling) < 4.5 * best.std() / 200
    if num_arms == 2:  # E max = 1/2 + E|difference| / 2 = 1/2 + 2 / pi^2
        assert family.reference.ceiling == pytest.approx(0.5 + 2 / np.pi**2, abs=1e-6)


def test_nested_streams_go_on_where_they_stopped() -> None:
    inner = Recurring(ARMS[:2], num_tasks=3), NeverRepeating(ARMS[2:])
    schedule = Nested(inner, stay=2)
    assert arms(schedule, 12) == [2, 3, 4, 4, 2, 2, 4, 4, 3, 2, 4, 4]
    assigned = [schedule.assign(0, 0, k) for k in range(12)]
    assert [a.task_index for a in assigned] == [0, 2, 1, 3, 4, 0, 5, 7, 2, 4, 9, 11]
    assert assigned[0].seed == assigned[5].seed and assigned[1].seed == assigned[8].seed
    assert schedule.families == (*ARMS[:2], ARMS[2])
    twice = Nested([NeverRepeating(ARMS), NeverRepeating(ARMS)], stay=1)
    assert twice.assign(0, 0, 0).seed != twice.assign(0, 0, 1).seed


def test_segments_end_at_hidden_random_times() -> None:
    stream = Stream(Recurring(ARMS), RandomLength(3, 7), seed=0)
    lengths = [stream.segment(b, k).length.amount for b in range(20) for k in range(50)]
    counts = Counter(lengths)
    assert set(counts) == {3, 4, 5, 6, 7} and min(counts.values()) > 150  # 200 expected, s.d. 13
    assert len({length for pair in pairwise(lengths) for length in [pair]}) == 25
    crowd = Crowd(stream, 2)
    ends = np.array([crowd.step(np.zeros(2, int)).task_end for _ in range(60)])
    for row in range(2):
        lived = np.diff(np.flatnonzero(ends[:, row]), prepend=-1)
        assert lived.tolist() == [stream.segment(row, k).length.amount for k in range(len(lived))]


def test_lifetimes_have_lengths_of_their_own() -> None:
    stream = Stream(Recurring(ARMS), Length(1), seed=0, lifetime_segments=RandomCount(1, 4))
    counts = [stream.num_segments(b) for b in range(400)]
    assert Counter(counts).keys() == {1, 2, 3, 4}
    crowd = Crowd(stream, 1)
    ends = [step for step in range(200) if crowd.step(np.zeros(1, int)).lifetime_end[0]]
    lived = np.diff(np.array(ends), prepend=-1) // 4  # pulls per segment
    assert lived.tolist() == counts[: len(lived)]
    assert Stream(Recurring(ARMS), Length(1), 0).num_segments(3) is None


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Curriculum(ARMS, [1, 2]), r"stays: expected 3 numbers >= 1, got \[1, 2\]"),
        (lambda: Curriculum(ARMS, [1, 0, 2]), "stays: expected 3 numbers >= 1"),
        (lambda: Curriculum(ARMS, [1, 1, 2], then="stop"), "then: .*'stop'"),
        (lambda: Blurry(ARMS, 0, 0), "stay: expected at least 1, got 0"),
        (lambda: Blurry(ARMS, 4, 5), "width: expected 0 to 4, got 5; nearest is 4"),
        (lambda: Drifting(ARMS[0]), "family: expected a DriftingFamily"),
        (lambda: DriftingBandit(period=0), "period: expected more than 0 episodes, got 0"),
        (lambda: Nested([Recurring(ARMS)], 0), "stay: expected at least 1, got 0"),
        (lambda: Nested(ARMS, 1), "schedules: expected Schedule objects"),
        (lambda: Nested([], 1), "families: expected at least one"),
        (lambda: RandomLength(0, 4), "segment length: expected 1 <= low <= high, got 0 and 4"),
        (lambda: RandomLength(1, 2, "days"), "expected one of episodes, steps, got 'days'"),
        (lambda: RandomCount(3, 2), "lifetime_segments: expected 1 <= low <= high, got 3 and 2"),
    ],
)
def test_invalid_arguments_are_named(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
