"""A curriculum by measured regret: what is costly is drawn more, and what was drawn stays drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sojourn.envs import (
    Crowd,
    EpisodeRecord,
    Length,
    MeasuredCurriculum,
    Nested,
    NeverRepeating,
    Stream,
    TMaze,
)

RECORD = EpisodeRecord(
    lifetime=0,
    segment=0,
    task="maze",
    task_index=0,
    unit="return",
    episode=0,
    start_step=0,
    num_steps=5,
    total_return=0.0,
    expected_return=float("nan"),
    optimal_return=1.0,
    floor_return=0.0,
    status="terminated",
)


def curriculum(**choices: Any) -> MeasuredCurriculum:
    return MeasuredCurriculum([TMaze(3, 12), TMaze(4, 12), TMaze(5, 12)], **choices)


def drawn(schedule: MeasuredCurriculum, index: int) -> int:
    """The family of a segment of lifetime 0, by the length of its corridor."""
    return int(schedule.assign(7, 0, index).task.name[-1]) - 3


def feed(schedule: MeasuredCurriculum, regrets: dict[int, list[float]]) -> None:
    """Episodes of such regret, each in a segment of its family."""
    segments = {drawn(schedule, k): k for k in range(40)}
    for family, costs in regrets.items():
        records = [replace(RECORD, segment=segments[family], total_return=1 - c) for c in costs]
        schedule.observe(records)


def test_without_a_measure_it_is_uniform_and_a_function_of_its_seed() -> None:
    one, other = curriculum(), curriculum()
    np.testing.assert_allclose(one.chances(), 1 / 3)
    backwards = [other.assign(3, 5, k) for k in reversed(range(30))][::-1]
    forwards = [one.assign(3, 5, k) for k in range(30)]
    assert [a.seed for a in forwards] == [a.seed for a in backwards]
    assert [a.task.name for a in forwards] == [a.task.name for a in backwards]
    assert len({a.task.name for a in forwards}) == 3


def test_families_are_drawn_by_their_regret() -> None:
    schedule = curriculum(window=8, explore=0.3)
    feed(schedule, {0: [0.0] * 8, 1: [0.2] * 8, 2: [0.6] * 8})
    np.testing.assert_allclose(schedule.chances(), 0.1 + 0.7 * np.array([0, 0.25, 0.75]))
    counts = np.bincount([drawn(schedule, k) for k in range(100, 1100)], minlength=3)
    expected = 1000 * schedule.chances()
    assert (abs(counts - expected) < 4.5 * np.sqrt(expected)).all()


def test_only_the_last_episodes_count_and_regret_is_held_within_0_and_1() -> None:
    schedule = curriculum(window=4, explore=0.01)
    feed(schedule, {0: [1.0] * 9 + [-3.0] * 4, 1: [5.0] * 4, 2: [0.0] * 9 + [0.5] * 4})
    np.testing.assert_allclose(schedule.chances(), 0.01 / 3 + 0.99 * np.array([0, 2, 1]) / 3)


def test_progress_is_how_fast_regret_changes() -> None:
    schedule = curriculum(by="progress", window=8, explore=0.5)
    feed(schedule, {0: [1.0] * 8, 1: [0.9] * 4 + [0.6] * 4, 2: [0.2] * 4 + [0.3] * 4})
    np.testing.assert_allclose(schedule.chances(), 1 / 6 + 0.5 * np.array([0, 0.75, 0.25]))


@pytest.mark.parametrize(
    "untold", [{"status": "cut"}, {"optimal_return": float("nan")}, {"segment": 4000}]
)
def test_episodes_that_tell_nothing_change_nothing(untold: dict[str, Any]) -> None:
    schedule = curriculum(window=2)
    schedule.assign(7, 0, 0)
    schedule.observe([replace(RECORD, **untold)] * 20)
    np.testing.assert_allclose(schedule.chances(), 1 / 3)


def test_a_segment_stays_what_it_was_and_the_log_is_restored() -> None:
    schedule = curriculum(window=4, explore=0.1)
    before = [drawn(schedule, k) for k in range(40)]
    feed(schedule, {0: [0.0] * 4, 1: [1.0] * 4, 2: [0.0] * 4})
    assert [drawn(schedule, k) for k in range(40)] == before
    saved = schedule.state_dict()
    later = [drawn(schedule, k) for k in range(40, 80)]
    assert later != [drawn(curriculum(), k) for k in range(40, 80)]
    fresh = curriculum(window=4, explore=0.1)
    fresh.load_state_dict(saved)
    assert [drawn(fresh, k) for k in range(80)] == before + later


def test_a_crowd_that_is_restored_after_its_curriculum_lives_on_alike() -> None:
    def crowd() -> Crowd:
        return Crowd(Stream(curriculum(window=4), Length(1), 0), 3)

    def live(crowd: Crowd, num_steps: int) -> list[Any]:
        seen = []
        for number in range(num_steps):
            lived = crowd.step(np.full(3, number % 4))
            crowd.stream.schedule.observe(lived.episodes)
            seen += [(r.task, r.segment, r.total_return) for r in lived.episodes]
        return seen

    one, other = crowd(), crowd()
    live(one, 100)
    other.stream.schedule.load_state_dict(one.stream.schedule.state_dict())
    other.load_state_dict(one.state_dict())
    assert live(one, 100) == live(other, 100)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"by": "luck"}, "by: expected one of regret, progress, got 'luck'"),
        ({"window": 1}, "window: expected at least 2, got 1"),
        ({"explore": 0.0}, "explore: expected 0 < explore <= 1, got 0.0"),
    ],
)
def test_invalid_arguments_are_named(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        curriculum(**choices)


def test_it_cannot_be_nested() -> None:
    with pytest.raises(ValueError, match="MeasuredCurriculum cannot be nested"):
        Nested([NeverRepeating([TMaze(3, 12)]), curriculum()], 2)
