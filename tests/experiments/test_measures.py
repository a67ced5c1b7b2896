"""Laws of the measures: identities, invariances, and lives by hand with known answers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sojourn.envs import Windows, split_regret
from sojourn.experiments.episodes import Episodes
from sojourn.experiments.measures.lifetimes import (
    mean_regret,
    regret_of_index,
    reward_per_step,
    step_regret,
    theil_sen,
    trend,
    worst_score,
)
from sojourn.experiments.measures.lives import Lives, gaps_of
from sojourn.experiments.measures.paired import paired_regret, visits_of
from sojourn.experiments.measures.segments import adaptation, episodes_to, segments_of, split_scores
from sojourn.experiments.tables import write_table

Columns = dict[str, NDArray[np.generic]]

# Tasks A B A of two episodes each; scores by episode of two lifetimes.
TASKS = (0, 1, 0)
SCORES = [[[0.0, 0.5], [0.2, 0.4], [0.6, 0.8]], [[0.1, 0.9], [0.0, 0.6], [1.0, 1.0]]]


def columns_of(
    scores: Sequence[Sequence[Sequence[float]]],
    tasks: Sequence[int] = TASKS,
    floor: float = 0.2,
    best: float = 1.2,
    steps: int = 4,
) -> Columns:
    """A table of lives whose episodes all last `steps` steps and have these scores."""
    rows: list[Mapping[str, object]] = []
    for lifetime, segments in enumerate(scores):
        step = 0
        for segment, episodes in enumerate(segments):
            for episode, score in enumerate(episodes):
                rows.append(
                    {
                        "lifetime": lifetime,
                        "segment": segment,
                        "task": f"task {tasks[segment]}",
                        "task_index": tasks[segment],
                        "unit": "return",
                        "episode": episode,
                        "start_step": step,
                        "num_steps": steps,
                        "total_return": floor + score * (best - floor),
                        "expected_return": np.nan,
                        "optimal_return": best,
                        "floor_return": floor,
                        "status": "terminated",
                        "ends_segment": int(episode == len(episodes) - 1),
                    }
                )
                step += steps
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def lives_of(scores: Sequence[Sequence[Sequence[float]]] = SCORES, **kwargs: object) -> Lives:
    return Lives.from_columns(columns_of(scores, **kwargs))  # type: ignore[arg-type]


def test_by_hand_every_segment_is_split_exactly() -> None:
    found = segments_of(lives_of())
    assert found.lifetime.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.visit.tolist() == [0, 0, 1, 0, 0, 1]
    np.testing.assert_allclose(found.regret, [0.75, 0.7, 0.3, 0.5, 0.7, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.residual, [0.5, 0.6, 0.2, 0.1, 0.4, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.transient + found.residual, found.regret, atol=1e-12)
    np.testing.assert_allclose(found.jump_start, [0.0, 0.2, 0.6, 0.1, 0.0, 1.0], atol=1e-12)


@pytest.mark.parametrize("length", [1, 2, 7, 40])
def test_the_split_is_an_identity_and_that_of_single_segments(length: int) -> None:
    scores = 3.0 * np.random.default_rng(0).standard_normal((3, length))
    transient, residual = split_scores(scores)
    np.testing.assert_allclose(transient + residual, (1.0 - scores).mean(axis=1), atol=1e-12)
    for u, fast, stays in zip(scores, transient, residual, strict=True):
        ones, zeros = np.ones(length), np.zeros(length, np.int64)
        windows = Windows(u, ones, zeros, zeros.astype(bool))
        slow = split_regret(windows, u, max(1, round(0.1 * length)))
        assert slow.transient[0] / length == pytest.approx(fast, abs=1e-12)
        assert slow.residual[0] / length == pytest.approx(stays, abs=1e-12)


def test_reward_per_step_counts_episodes_and_rates_by_their_steps() -> None:
    lives = replace(lives_of([[[0.2, 1.0]] * 3]), num_steps=np.array([1, 9] * 3))
    assert reward_per_step(lives)[0] == pytest.approx((0.4 + 1.2) / 10)
    assert reward_per_step(replace(lives, by_rate=lives.num_steps > 0))[0] == pytest.approx(1.12)


def test_a_perfect_life_loses_nothing_and_a_random_one_all() -> None:
    assert mean_regret(lives_of([[[1.0, 1.0]] * 3])).tolist() == pytest.approx([0.0])
    assert mean_regret(lives_of([[[0.0, 0.0]] * 3])).tolist() == pytest.approx([1.0])
    assert step_regret(lives_of([[[1.0, 1.0]] * 3])).tolist() == pytest.approx([0.0])


@pytest.mark.parametrize(("floor", "best"), [(0.0, 1.0), (-50.0, 300.0), (1e-3, 2e-3)])
def test_the_scale_of_rewards_changes_nothing(floor: float, best: float) -> None:
    plain, scaled = segments_of(lives_of()), segments_of(lives_of(floor=floor, best=best))
    np.testing.assert_allclose(plain.regret, scaled.regret, atol=1e-9)
    np.testing.assert_allclose(plain.transient, scaled.transient, atol=1e-9)


def test_regret_is_that_of_the_other_tables(tmp_path: Path) -> None:
    columns = columns_of(SCORES)
    columns["optimal_return"] = np.asarray(columns["optimal_return"]) + np.arange(12) / 10
    write_table(tmp_path / "lives.csv", columns | {"step": np.arange(12)})  # type: ignore[arg-type]
    lives = Lives.from_table(tmp_path / "lives.csv")
    pooled = Episodes.from_table(tmp_path / "lives.csv").regret()
    assert lives.regret().mean() == pytest.approx(pooled.normalised, abs=1e-12)


def test_what_a_segment_cut_short_counts_nowhere_and_rates_do() -> None:
    columns = columns_of(SCORES)
    columns["status"] = np.where(np.arange(12) == 1, "cut", columns["status"])
    cut = Lives.from_columns(columns)
    assert np.isnan(cut.regret()[1])
    assert segments_of(cut).num_episodes.tolist() == [1, 2, 2, 2, 2, 2]
    rates = Lives.from_columns(columns | {"unit": np.full(12, "rate")})
    assert np.isfinite(rates.regret()).all()


def test_no_life_at_all_is_no_number(tmp_path: Path) -> None:
    nothing = Lives.from_table(tmp_path / "missing.csv")
    assert len(nothing) == len(segments_of(nothing)) == 0
    for measure in (mean_regret, worst_score, step_regret):
        assert len(measure(nothing)) == 0
    assert len(paired_regret(nothing, lives_of()).difference) == 0
    assert np.isnan(adaptation(nothing, 0.5).median)
    assert gaps_of([nothing]) == {}


def test_running_episodes_and_unfinished_segments_are_left_out(tmp_path: Path) -> None:
    columns = columns_of(SCORES)
    columns["status"] = np.where(np.arange(12) == 11, "running", columns["status"])
    columns["ends_segment"] = np.where(np.arange(12) == 11, 0, columns["ends_segment"])
    write_table(tmp_path / "lives.csv", columns)  # type: ignore[arg-type]
    lives = Lives.from_table(tmp_path / "lives.csv")
    assert len(lives) == 11
    assert len(segments_of(lives)) == 5


def test_utility_by_hand() -> None:
    twin = lives_of([[[0.0, 0.5], [0.2, 0.6], [0.1, 0.5]], [[0.1, 0.9], [0.0, 0.5], [0.2, 0.9]]])
    paired = paired_regret(lives_of(), twin)
    expected = [0.0, -0.1, 0.4, 0.0, 0.05, 0.45]
    np.testing.assert_allclose(paired.difference, expected, atol=1e-12)
    later = paired.where(paired.segment > 0)
    np.testing.assert_allclose(later.per_lifetime(), [0.15, 0.25], atol=1e-12)
    np.testing.assert_allclose(later.of_segment(2), [0.4, 0.45], atol=1e-12)


def test_regret_of_the_carried_life_is_that_of_the_twin_minus_utility() -> None:
    rng = np.random.default_rng(1)
    carried, twin = (lives_of(rng.random((5, 3, 4)).tolist()) for _ in range(2))
    paired = paired_regret(carried, twin)
    lost = segments_of(carried).regret.sum(), segments_of(twin).regret.sum()
    assert abs(lost[0] - (lost[1] - paired.difference.sum())) < 1e-12


def test_a_pair_needs_the_segment_in_both() -> None:
    shorter = lives_of([SCORES[0][:2], SCORES[1]])
    paired = paired_regret(lives_of(), shorter)
    assert paired.segment.tolist() == [0, 1, 0, 1, 2]
    assert (paired.difference == 0).all()


def test_first_visits_and_revisits_by_hand() -> None:
    visits = visits_of(segments_of(lives_of()))
    np.testing.assert_allclose(visits.first_transient, [0.1, 0.3], atol=1e-12)
    np.testing.assert_allclose(visits.again_transient, [0.1, 0.0], atol=1e-12)
    np.testing.assert_allclose(visits.first_residual, [0.6, 0.4], atol=1e-12)
    np.testing.assert_allclose(visits.again_residual, [0.2, 0.0], atol=1e-12)
    never = visits_of(segments_of(lives_of(tasks=(0, 1, 2))))
    assert len(never.first_transient) == 0, "where nothing returns there is nothing to compare"


def test_adaptation_by_hand() -> None:
    lives = lives_of([[[0.0, 0.5], [0.2, 0.4], [0.6, 0.8]]])
    found = adaptation(lives, 0.5)
    assert (found.median, found.num_segments) == (2.0, 3)
    assert found.censored == pytest.approx(1 / 3)
    assert adaptation(lives, 0.95).median == np.inf, "most segments never got there"
    u = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    assert episodes_to(u, 1.0, 1) == 1.0
    assert episodes_to(u, 1.0, 3) == 6.0
    assert episodes_to(u, 2.0, 1) == np.inf


def test_trend_and_tail_by_hand() -> None:
    assert theil_sen(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 1.0, 2.0, 90.0])) == 15.5
    assert theil_sen(np.array([0.0, 2.0]), np.array([1.0, 0.0])) == -0.5
    slopes = trend(segments_of(lives_of()), "residual")
    np.testing.assert_allclose(slopes, [-0.15, -0.05], atol=1e-12)
    np.testing.assert_allclose(worst_score(lives_of()), [0.0, 0.0], atol=1e-12)
    assert len(trend(segments_of(lives_of([s[:2] for s in SCORES])), "regret")) == 0


def test_the_curve_by_episode_of_a_task() -> None:
    np.testing.assert_allclose(regret_of_index(lives_of(), 0), [2.2 / 3, 1.9 / 3], atol=1e-12)
    np.testing.assert_allclose(regret_of_index(lives_of(), 1), [1.3 / 3, 0.5 / 3], atol=1e-12)
    assert len(regret_of_index(lives_of(), 2)) == 0


def test_by_steps_slow_episodes_weigh_more_where_a_task_is_measured_by_rate() -> None:
    columns = columns_of([[[0.0, 1.0]]], tasks=(0,))
    columns["num_steps"] = np.array([3, 1])
    columns["start_step"] = np.array([0, 3])
    lost = Lives.from_columns(columns | {"unit": np.full(2, "rate")})
    assert step_regret(lost).tolist() == pytest.approx([0.75])
    windows = Lives.from_columns(columns)  # windows of two steps: the first has no episode
    assert step_regret(windows).tolist() == pytest.approx([0.5])
    mixed = Lives.from_columns(columns | {"unit": np.array(["rate", "return"])})
    assert np.isnan(step_regret(mixed)).all()


def test_more_lives_change_no_other_number() -> None:
    few, more = lives_of(SCORES[:1]), lives_of(SCORES)
    assert mean_regret(more)[:1].tolist() == mean_regret(few).tolist()
    assert segments_of(more).regret[:3].tolist() == segments_of(few).regret.tolist()


def test_relabelling_tasks_changes_no_measure_of_segments() -> None:
    one, other = segments_of(lives_of()), segments_of(lives_of(tasks=(7, 3, 7)))
    np.testing.assert_array_equal(one.visit, other.visit)
    np.testing.assert_allclose(one.regret, other.regret, atol=1e-12)


def test_lives_against_informed_play_are_the_episodes_that_hide_something() -> None:
    columns = columns_of(SCORES)
    told = columns["task"] == "task 0"
    informed = np.where(told, 0.7, np.nan)
    lives = Lives.from_columns(columns | {"informed_return": informed})
    against = lives.against_informed()
    assert set(against.task) == {"task 0"} and len(against) == told.sum()
    expected = (0.7 - lives.achieved[told]) / (0.7 - 0.2)
    np.testing.assert_allclose(against.regret(), expected)
    np.testing.assert_array_equal(lives.regret(), Lives.from_columns(columns).regret())
    assert len(Lives.from_columns(columns).against_informed()) == 0
