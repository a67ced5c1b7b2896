"""Regret from records: the definition of the envs room, pooled gaps, and what is not known."""

import math
from dataclasses import replace

import numpy as np
import pytest

from sojourn.agents import episode_regrets, grouped_regret
from sojourn.agents.student import student_interval, student_quantile
from sojourn.envs import EpisodeRecord, pooled_regret


def record(
    total: float, optimal: float, floor: float, task: str = "a", **changes: object
) -> EpisodeRecord:
    plain = EpisodeRecord(
        lifetime=0,
        segment=0,
        task=task,
        task_index=0,
        unit="return",
        episode=0,
        start_step=0,
        num_steps=5,
        total_return=total,
        expected_return=math.nan,
        optimal_return=optimal,
        floor_return=floor,
        status="terminated",
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_the_mean_over_a_task_is_its_pooled_regret() -> None:
    a = [record(0.5, 1.0, 0.2), record(0.7, 0.9, 0.85), record(0.1, 0.4, 0.0)]
    b = [record(10.0, 30.0, 0.0, "b"), record(25.0, 20.0, 5.0, "b")]
    found = episode_regrets([a[0], b[0], a[1], b[1], a[2]])
    assert found[[0, 2, 4]].mean() == pytest.approx(
        pooled_regret([1.0, 0.9, 0.4], [0.5, 0.7, 0.1], [0.2, 0.85, 0.0])
    )
    assert found[[1, 3]].mean() == pytest.approx(pooled_regret([30, 20], [10, 25], [0, 5]))
    assert found[3] < 0, "better than the reference is a negative regret"


def test_the_expected_return_takes_the_place_of_the_sampled_one() -> None:
    assert episode_regrets([record(0.0, 1.0, 0.0, expected_return=0.75)]) == [0.25]


@pytest.mark.parametrize("status", ["cut", "running"])
def test_part_of_an_episode_counts_only_where_it_is_measured_by_rate(status: str) -> None:
    whole = record(0.5, 1.0, 0.0)
    part = record(0.0, 1.0, 0.0, status=status)
    found = episode_regrets([whole, part, replace(part, unit="rate")])
    assert found[0] == 0.5 and math.isnan(found[1]) and found[2] == 1.0


def test_without_a_reference_nothing_is_known() -> None:
    assert np.isnan(episode_regrets([record(0.5, math.nan, 0.0), record(0.5, 1.0, 1.0)])).all()
    assert episode_regrets([]).shape == (0,)


def test_groups_are_measured_against_the_same_gap() -> None:
    records = [record(0.0, 1.0, 0.0), record(0.0, 3.0, 0.0), record(3.0, 3.0, 0.0)]
    found = grouped_regret(records, np.array([0, 1, 1]), 3)
    gap = (1.0 + 3.0 + 3.0) / 3
    assert found[0] == pytest.approx(1.0 / gap)
    assert found[1] == pytest.approx(1.5 / gap)
    assert math.isnan(found[2])


@pytest.mark.parametrize("degrees", [1, 2, 3, 5, 10, 100])
def test_the_quantile_is_students(degrees: int) -> None:
    exact = {1: 12.70620, 2: 4.302653, 3: 3.182446, 5: 2.570582, 10: 2.228139, 100: 1.983972}
    assert student_quantile(degrees) == pytest.approx(exact[degrees], rel=2e-3)


def test_an_interval_holds_its_mean_and_needs_two_values() -> None:
    mean, low, high = student_interval(np.array([1.0, 2.0, 3.0]))
    assert (mean, low) == (2.0, pytest.approx(2.0 - 4.302653 / math.sqrt(3)))
    assert low < mean < high
    assert student_interval(np.array([4.0]))[0] == 4.0
    assert all(math.isnan(end) for end in student_interval(np.array([4.0]))[1:])
    assert math.isnan(student_interval(np.zeros(0))[0])
