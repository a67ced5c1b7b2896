"""Laws of the R-matrix: known forgetters read as what they are, and labels mean nothing."""

import numpy as np
import pytest

from sojourn.experiments.measures.forgetting import (
    Matrix,
    accuracy,
    backward_transfer,
    boundary_forgetting,
    forward_transfer,
    learned,
    mean_known,
)
from sojourn.experiments.statistics import interval

ORDER = np.array([[0, 1, 2], [0, 1, 2]])


def total_forgetter(num_tasks: int = 3, lives: int = 2) -> Matrix:
    """Knows the task it has just played and no other."""
    scores = np.zeros((lives, num_tasks + 1, num_tasks))
    for segment in range(num_tasks):
        scores[:, segment + 1, segment] = 1.0
    return Matrix.in_order(scores, np.tile(np.arange(num_tasks), (lives, 1)))


@pytest.mark.parametrize("num_tasks", [2, 3, 7])
def test_a_total_forgetter_forgets_all_and_keeps_one(num_tasks: int) -> None:
    matrix = total_forgetter(num_tasks)
    assert accuracy(matrix).tolist() == pytest.approx([1 / num_tasks] * 2)
    assert backward_transfer(matrix).tolist() == [-1.0, -1.0]
    assert forward_transfer(matrix).tolist() == [0.0, 0.0]
    found = boundary_forgetting(matrix)
    assert found.per_lifetime.tolist() == [1.0, 1.0]
    assert found.num_cells == num_tasks * (num_tasks - 1) // 2
    assert found.num_known == num_tasks - 1, "what is lost is not lost again"


def test_how_often_it_is_evaluated_changes_no_number_of_the_total_forgetter() -> None:
    twice = Matrix.in_order(
        np.repeat(total_forgetter().scores, [1, 2, 2, 2], axis=1), np.repeat(ORDER, 2, axis=1)
    )
    assert accuracy(twice).tolist() == accuracy(total_forgetter()).tolist()
    assert backward_transfer(twice).tolist() == backward_transfer(total_forgetter()).tolist()


def test_a_perfect_keeper_loses_nothing() -> None:
    scores = np.zeros((2, 4, 3))
    for segment in range(3):
        scores[:, segment + 1 :, segment] = 1.0
    matrix = Matrix.in_order(scores, ORDER)
    assert accuracy(matrix).tolist() == [1.0, 1.0]
    assert backward_transfer(matrix).tolist() == [0.0, 0.0]
    assert boundary_forgetting(matrix).per_lifetime.tolist() == [0.0, 0.0]


def test_three_tasks_by_hand() -> None:
    scores = np.array([[[0.1, 0.2, 0.3], [0.9, 0.4, 0.3], [0.6, 0.8, 0.5], [0.5, 0.7, 1.0]]])
    matrix = Matrix.in_order(scores, ORDER[:1])
    assert accuracy(matrix) == pytest.approx([(0.5 + 0.7 + 1.0) / 3])
    assert backward_transfer(matrix) == pytest.approx([((0.5 - 0.9) + (0.7 - 0.8)) / 2])
    assert forward_transfer(matrix) == pytest.approx([((0.4 - 0.2) + (0.5 - 0.3)) / 2])
    twice = boundary_forgetting(Matrix.in_order(np.tile(scores, (2, 1, 1)), ORDER[:2]))
    assert twice.per_lifetime == pytest.approx([(0.3 + 0.1 + 0.1) / 3] * 2)


def test_a_task_that_returns_is_measured_from_its_last_visit() -> None:
    scores = np.array([[[0.0, 0.0], [0.5, 0.1], [0.2, 0.6], [0.9, 0.4], [0.3, 0.8]]])
    matrix = Matrix.in_order(scores, np.array([[0, 1, 0, 1]]))
    assert matrix.visits(last=True).tolist() == [[2, 3]]
    assert matrix.visits(last=False).tolist() == [[0, 1]]
    assert backward_transfer(matrix) == pytest.approx([0.3 - 0.9])
    assert forward_transfer(matrix) == pytest.approx([0.1])


def test_relabelling_the_tasks_permutes_the_matrix_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random((5, 5, 3))
    played = rng.integers(3, size=(5, 4))
    order = np.array([2, 0, 1])  # column i of the new matrix is column order[i] of the old
    renamed = Matrix.in_order(scores[:, :, order], np.argsort(order)[played])
    for measure in (accuracy, backward_transfer, forward_transfer):
        np.testing.assert_allclose(
            measure(Matrix.in_order(scores, played)), measure(renamed), atol=1e-12
        )
    one, other = boundary_forgetting(Matrix.in_order(scores, played)), boundary_forgetting(renamed)
    np.testing.assert_allclose(one.per_lifetime, other.per_lifetime, atol=1e-12)
    assert one.num_known == other.num_known


def test_a_part_may_play_several_tasks() -> None:
    scores = np.array([[[0.0, 0.0, 0.0], [0.6, 0.8, 0.1], [0.2, 0.9, 0.7]]])
    played = np.array([[[True, True, False], [False, True, True]]])
    matrix = Matrix(scores, played)
    assert matrix.visits(last=False).tolist() == [[0, 0, 1]]
    assert matrix.visits(last=True).tolist() == [[0, 1, 1]]
    assert backward_transfer(matrix) == pytest.approx([0.2 - 0.6])
    twice = boundary_forgetting(Matrix(*(np.tile(part, (2, 1, 1)) for part in (scores, played))))
    assert twice.per_lifetime == pytest.approx([0.4] * 2)
    np.testing.assert_allclose(learned(matrix), [[0.7, 0.8]])


def test_what_is_known_right_after_playing_by_hand() -> None:
    scores = np.array([[[0.0, 0.0], [0.9, 0.4], [0.6, 0.7]]])
    np.testing.assert_allclose(learned(Matrix.in_order(scores, np.array([[0, 1]]))), [[0.9, 0.7]])
    assert np.isnan(learned(Matrix.in_order(scores, np.array([[0, -1]])))[0, 1])


def test_twenty_times_fewer_evaluations_change_forgetting_only_within_noise() -> None:
    """n probe episodes of a task are right with probability 0.8 before and 0.5 after."""
    rng = np.random.default_rng(5)
    found = []
    for episodes in (40, 2):
        scores = np.zeros((400, 3, 2))
        scores[:, 1, 0] = rng.binomial(episodes, 0.8, 400) / episodes
        scores[:, 2, 0] = rng.binomial(episodes, 0.5, 400) / episodes
        found.append(boundary_forgetting(Matrix.in_order(scores, np.tile([0, 1], (400, 1)))))
    errors = [one.per_lifetime.std(ddof=1) / np.sqrt(400) for one in found]
    assert errors[1] > 3 * errors[0]
    for one, error in zip(found, errors, strict=True):
        assert abs(one.per_lifetime.mean() - 0.3) < 4.5 * error


def test_scores_of_zero_count() -> None:
    scores = np.zeros((1, 3, 2))
    scores[0, 1, 0] = 1.0
    matrix = Matrix.in_order(scores, np.array([[0, 1]]))
    assert accuracy(matrix).tolist() == [0.0]
    assert backward_transfer(matrix).tolist() == [-1.0]


def test_what_was_not_probed_is_missing_and_not_zero() -> None:
    scores = np.full((1, 3, 2), np.nan)
    scores[0, 2, 0] = 0.5
    matrix = Matrix.in_order(scores, np.array([[0, -1]]))
    assert accuracy(matrix).tolist() == [0.5]
    assert np.isnan(backward_transfer(matrix)).all()
    assert np.isnan(boundary_forgetting(matrix).per_lifetime).all()
    assert np.isnan(mean_known(np.zeros((2, 0)))).all()


def test_tasks_at_the_floor_have_nothing_to_forget() -> None:
    noise = 0.01 * np.random.default_rng(3).standard_normal((50, 3, 2))
    noise -= noise.mean(axis=0)
    found = boundary_forgetting(Matrix.in_order(noise, np.tile([0, 1], (50, 1))))
    assert (found.num_known, found.num_cells) == (0, 1)


def test_one_lifetime_cannot_tell_knowledge_from_luck() -> None:
    scores = np.array([[[0.0, 0.0], [0.9, 0.1], [0.2, 0.8]]])
    order = np.array([[0, 1]])
    alone = boundary_forgetting(Matrix.in_order(scores, order))
    assert (alone.num_known, alone.num_cells) == (0, 1) and np.isnan(alone.per_lifetime).all()
    two = boundary_forgetting(Matrix.in_order(np.tile(scores, (2, 1, 1)), np.tile(order, (2, 1))))
    assert two.per_lifetime == pytest.approx([0.7, 0.7])


def test_a_matrix_and_its_order_must_fit() -> None:
    with pytest.raises(ValueError, match=r"played: expected \(1, 2, 2\)"):
        Matrix(np.zeros((1, 3, 2)), np.zeros((1, 3, 2), bool))


@pytest.mark.parametrize("count", [2, 5, 9, 10, 40])
def test_intervals_are_never_negative_and_hold_the_mean(count: int) -> None:
    found = interval(np.random.default_rng(count).standard_normal(count))
    assert found.low <= found.mean <= found.high
    assert found.num_runs == count
