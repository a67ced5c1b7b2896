"""Laws of the memory horizon: lags by hand, and a memory that fades at a known rate."""

import numpy as np
import pytest

from sojourn.experiments.measures.forgetting import Matrix
from sojourn.experiments.measures.horizon import horizon, retained, score_at_age, score_at_lag
from sojourn.experiments.measures.segments import segments_of

from .test_measures import SCORES, lives_of


def test_lags_by_hand() -> None:
    scores = np.array([[[0.1, 0.2], [0.9, 0.4], [0.6, 0.8], [0.5, 0.7]]])
    found = retained(Matrix.in_order(scores, np.array([[0, 1, 1]])))
    assert found[0] == pytest.approx([(0.9 + 0.8 + 0.7) / 3, 0.6, 0.5])


def test_a_visit_starts_the_lag_anew() -> None:
    scores = np.array([[[0.0, 0.0], [1.0, 0.0], [0.4, 1.0], [1.0, 0.4]]])
    found = retained(Matrix.in_order(scores, np.array([[0, 1, 0]])))
    assert found[0, :2] == pytest.approx([1.0, 0.4])
    assert np.isnan(found[0, 2]), "no task was left alone for two segments"


@pytest.mark.parametrize("rate", [0.9, 0.6, 0.3])
def test_a_memory_that_fades_geometrically_has_the_horizon_of_its_half_life(rate: float) -> None:
    parts = 12
    scores = np.zeros((2, parts + 1, parts))
    for task in range(parts):
        scores[:, task + 1 :, task] = rate ** np.arange(parts - task)
    matrix = Matrix.in_order(scores, np.tile(np.arange(parts), (2, 1)))
    found = retained(matrix)
    np.testing.assert_allclose(found, np.tile(rate ** np.arange(parts), (2, 1)))
    assert horizon(found) == np.floor(np.log(0.5) / np.log(rate))


def test_what_never_falls_below_half_has_no_end_and_what_was_not_known_no_horizon() -> None:
    assert horizon(np.array([[0.8, 0.6, np.nan]] * 2)) == np.inf
    assert horizon(np.array([[0.8, 0.1]] * 2)) == 0.0
    assert horizon(np.array([[0.8, np.nan, 0.7, 0.1]] * 2)) == 2.0, "an unseen lag keeps its place"
    assert np.isnan(horizon(np.zeros((2, 2))))
    assert np.isnan(horizon(np.zeros((2, 0))))
    assert retained(Matrix(np.zeros((2, 1, 3)), np.zeros((2, 0, 3), bool))).shape == (2, 0)


def test_half_of_noise_is_no_horizon() -> None:
    noise = np.random.default_rng(2).standard_normal((8, 3))
    noise += 0.2 - noise.mean(axis=0)  # as much as chance gives eight lives of unit spread
    assert np.isnan(horizon(noise))
    assert np.isnan(horizon(np.array([[0.8, 0.6]]))), "one life has no error to be clear of"


def test_the_score_by_age_is_that_of_the_segments() -> None:
    segments = segments_of(lives_of())
    np.testing.assert_allclose(score_at_age(segments, 0), [0.25, 0.5])
    np.testing.assert_allclose(score_at_age(segments, 2), [0.7, 1.0])
    assert len(score_at_age(segments, 3)) == 0


def test_the_score_by_lag_is_that_of_the_tasks_that_have_it() -> None:
    lives = lives_of()
    lags = {"task 0": 8, "task 1": 16}
    np.testing.assert_allclose(score_at_lag(lives, lags, 16), [0.3, 0.3])
    means = [np.mean([*life[0], *life[2]]) for life in SCORES]
    np.testing.assert_allclose(score_at_lag(lives, lags, 8), means)
    assert len(score_at_lag(lives, {}, 8)) == 0
