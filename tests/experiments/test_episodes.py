"""Regret of groups of episodes: the definition of `sojourn.envs`, task by task."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sojourn.envs import EpisodeRecord
from sojourn.experiments.episodes import (
    Episodes,
    carried_forward,
    cumulative_regret,
    record_row,
    regret_by_window,
    window_edges,
)
from sojourn.experiments.tables import Table
from sojourn.experiments.tracker import RegretTracker

RECORD = EpisodeRecord(
    lifetime=0,
    segment=0,
    task="a",
    task_index=0,
    unit="return",
    episode=0,
    start_step=0,
    num_steps=10,
    total_return=0.5,
    expected_return=float("nan"),
    optimal_return=1.0,
    floor_return=0.2,
    status="terminated",
)


def records(rng: np.random.Generator, count: int) -> list[EpisodeRecord]:
    """Episodes of two tasks with rewards on very different scales."""
    found = []
    for number in range(count):
        scale = 1.0 if number % 3 else 100.0
        found.append(
            replace(
                RECORD,
                lifetime=number,
                task="small" if number % 3 else "large",
                episode=number % 4,
                total_return=scale * rng.random(),
                optimal_return=scale * (1 + rng.random()),
                floor_return=0.0,
            )
        )
    return found


def slow_regret(found: Sequence[EpisodeRecord]) -> float:
    """Ratio of means in every task, averaged over tasks by their number of episodes."""
    total = 0.0
    for task in {record.task for record in found}:
        own = [record for record in found if record.task == task]
        lost = sum(r.optimal_return - r.total_return for r in own)
        gap = sum(r.optimal_return - r.floor_return for r in own)
        total += len(own) * lost / gap
    return total / len(found)


def test_regret_is_the_slow_and_obvious_one() -> None:
    found = records(np.random.default_rng(0), 50)
    episodes = Episodes.from_records(found, 7)
    assert episodes.regret().normalised == pytest.approx(slow_regret(found), abs=1e-12)
    for index in range(4):
        own = [record for record in found if record.episode == index]
        assert episodes.of_index(index).regret().normalised == pytest.approx(slow_regret(own))


def test_the_scale_of_a_tasks_rewards_changes_nothing() -> None:
    found = records(np.random.default_rng(1), 30)
    fields = ("total_return", "optimal_return", "floor_return")
    scaled = [
        replace(r, **{f: 9.0 * getattr(r, f) for f in fields}) if r.task == "large" else r
        for r in found
    ]
    before, after = (Episodes.from_records(each, 0).regret() for each in (found, scaled))
    assert after.normalised == pytest.approx(before.normalised)


def test_the_expected_return_takes_the_place_of_the_sampled_one() -> None:
    lucky = replace(RECORD, total_return=1.0, expected_return=0.6)
    assert Episodes.from_records([lucky], 0).regret().normalised == pytest.approx(0.5)


def test_without_a_reference_there_is_no_regret() -> None:
    unknown = replace(RECORD, floor_return=float("nan"))
    regret = Episodes.from_records([unknown], 0).regret()
    assert np.isnan(regret.normalised) and regret.count == 0
    assert np.isnan(Episodes.from_records([], 0).regret().raw)


def test_what_a_segment_cut_short_has_no_regret() -> None:
    cut = replace(RECORD, status="cut", total_return=0.0, num_steps=3)
    whole = Episodes.from_records([RECORD, cut], 0)
    assert len(whole) == 2 and whole.regret() == Episodes.from_records([RECORD], 0).regret()
    by_rate = Episodes.from_records([replace(cut, unit="rate")], 0)
    assert by_rate.regret().normalised == pytest.approx(1.25), "its reference shrank with it"


def test_a_table_gives_back_finished_episodes_once(tmp_path: Path) -> None:
    table = Table(tmp_path / "episodes.csv")
    running = replace(RECORD, status="running", total_return=0.0)
    other = replace(RECORD, lifetime=1, status="running")
    table.append(record_row(record, 8) for record in (running, other))
    table.append([record_row(RECORD, 16)])
    table.close()
    episodes = Episodes.from_table(tmp_path / "episodes.csv")
    assert episodes.step.tolist() == [16]
    assert episodes.achieved.tolist() == [0.5]


def test_windows_hold_the_episodes_recorded_in_them() -> None:
    episodes = Episodes.from_records([RECORD] * 3, 0)
    stepped = Episodes(np.array([1, 10, 11]), *list(vars(episodes).values())[1:])
    normalised, raw = regret_by_window(stepped, np.array([0, 10, 20, 30]))
    np.testing.assert_allclose(normalised, [0.625, 0.625, np.nan])
    np.testing.assert_allclose(raw, [0.5, 0.5, np.nan])


def test_windows_are_no_narrower_than_asked() -> None:
    assert window_edges(100, 50, 30).tolist() == pytest.approx([0, 100 / 3, 200 / 3, 100])
    assert len(window_edges(10_000, 50, 30)) == 51
    assert window_edges(5, 50, 30).tolist() == [0, 5]


def test_the_sum_carries_the_last_known_window() -> None:
    values = np.array([np.nan, 1.0, np.nan, 0.5])
    np.testing.assert_array_equal(carried_forward(values), [np.nan, 1.0, 1.0, 0.5])
    np.testing.assert_allclose(cumulative_regret(values, np.full(4, 10.0)), [0, 10, 20, 25])


def test_a_random_policy_climbs_by_one_per_step() -> None:
    np.testing.assert_allclose(cumulative_regret(np.ones(5), np.full(5, 3.0))[-1], 15.0)


def test_the_tracker_sums_what_the_windows_sum() -> None:
    rng = np.random.default_rng(2)
    updates = [records(rng, count) for count in (0, 3, 0, 5)]
    tracker, values = RegretTracker(), []
    for found in updates:
        metrics = tracker.update(found, 8)
        values.append(Episodes.from_records(found, 0).regret().normalised)
    expected = cumulative_regret(np.array(values), np.full(4, 8.0))[-1]
    assert metrics["continual/cumulative_regret"] == pytest.approx(expected)
    again = RegretTracker()
    again.load_state_dict(tracker.state_dict())
    assert again.update(updates[1], 8) == tracker.update(updates[1], 8)


def test_regret_against_informed_play_is_a_second_number_and_never_mixed() -> None:
    hidden = replace(RECORD, task="b", informed_return=0.7)
    mixed = [RECORD, hidden, replace(hidden, total_return=0.7, episode=1)]
    found = Episodes.from_records(mixed, 0)
    plain = Episodes.from_records([replace(r, informed_return=np.nan) for r in mixed], 0)
    assert found.regret().normalised == plain.regret().normalised
    assert found.regret().raw == plain.regret().raw and np.isnan(plain.regret().informed)
    assert found.regret().informed == pytest.approx((0.2 / 0.5 + 0.0) / 2), "of task b alone"
    metrics = RegretTracker().update(mixed, 10)
    assert metrics["continual/regret_informed"] == pytest.approx(0.2)
    assert metrics["continual/regret_informed_episode_2"] == pytest.approx(0.0)
    assert not any("informed" in name for name in RegretTracker().update([RECORD], 10))


def test_tables_of_older_runs_have_no_informed_returns(tmp_path: Path) -> None:
    row = record_row(RECORD, 3)
    del row["informed_return"]
    table = Table(tmp_path / "episodes.csv")
    table.append([row])
    table.close()
    assert np.isnan(Episodes.from_table(tmp_path / "episodes.csv").informed).all()
