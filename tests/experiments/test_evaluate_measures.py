"""The rows of an evaluation: which segments count where, and who is compared with whom."""

import numpy as np
import pytest

from sojourn.experiments.build import build_stream
from sojourn.experiments.config import compose_config, parse
from sojourn.experiments.evaluations.conditions import CONDITIONS, Half
from sojourn.experiments.evaluations.in_short import in_short
from sojourn.experiments.evaluations.living import as_trained, scales
from sojourn.experiments.evaluations.matrix import matrix_rows
from sojourn.experiments.evaluations.measures import (
    Row,
    condition_rows,
    doubling,
    paired_rows,
)
from sojourn.experiments.evaluations.report import lines, markdown, rich_table
from sojourn.experiments.measures.forgetting import Matrix
from sojourn.experiments.measures.lives import Lives
from sojourn.experiments.statistics import interval

from .test_measures import SCORES, columns_of, lives_of

WORSE = [[[u - 0.1 for u in segment] for segment in life] for life in SCORES]
WORSE[0][2] = [u - 0.5 for u in SCORES[0][2]]


HALF = Half(1, in_segments=True)


def value(rows: list[Row], measure: str) -> float:
    return next(row.value.mean for row in rows if row.measure == measure)


@pytest.mark.parametrize(
    ("half", "expected"),
    [
        (Half(2, in_segments=True), (0.5 + 0.1) / 2),
        (Half(1, in_segments=True), (0.3 + 0.1) / 2),
        (Half(9, in_segments=False), (0.5 + 0.1) / 2),  # segments of eight steps begin at 0, 8, 16
        (Half(8, in_segments=False), (0.3 + 0.1) / 2),
    ],
)
def test_the_frozen_copy_is_compared_over_the_second_half(half: Half, expected: float) -> None:
    tables = {"carried": lives_of(), "half_life": lives_of(WORSE)}
    rows = list(paired_rows(tables, half))
    assert value(rows, "frozen-copy gap, second half") == pytest.approx(expected)


def test_utility_leaves_the_first_segment_out() -> None:
    tables = {"carried": lives_of(), "reset_task": lives_of(WORSE)}
    rows = list(paired_rows(tables, Half(1, in_segments=True)))
    assert value(rows, "utility U of having lived") == pytest.approx((0.3 + 0.1) / 2)
    assert value(rows, "utility U, first visits") == pytest.approx(0.1)
    assert value(rows, "utility U, revisits") == pytest.approx((0.5 + 0.1) / 2)


def test_without_a_reference_pairs_are_differences_in_return() -> None:
    def unknown(scores: list[list[list[float]]]) -> Lives:
        columns = columns_of(scores, floor=0.0, best=1.0)
        return Lives.from_columns(columns | {"optimal_return": np.full(12, np.nan)})

    tables = {"carried": unknown(SCORES), "reset_task": unknown(WORSE)}
    found = list(paired_rows(tables, HALF))
    assert [row.measure for row in found] == ["return minus carried"]
    known = {"carried": lives_of(), "reset_task": lives_of(WORSE)}
    regret = value(list(paired_rows(known, HALF)), "regret minus carried")
    assert found[0].value.mean == pytest.approx(-regret)
    rows = [*condition_rows("carried", tables["carried"]), *found]
    shown = [str(column.header) for column in rich_table(rows).columns]
    assert shown == ["condition", "return per episode", "return minus carried"]


def test_what_was_not_measured_is_a_dash_and_no_row() -> None:
    never = lives_of(tasks=(0, 1, 2))
    rows = list(condition_rows("carried", never))
    page = markdown(rows, "title", ["note"])
    assert "revisits" not in page, "no task came back in any condition"
    assert "| M2 | regret, all episodes |" in page
    assert "n = 2 lifetimes" in lines(rows)[0]


def test_a_median_that_most_never_reach_says_so() -> None:
    page = markdown(list(condition_rows("carried", lives_of())), "t", [])
    assert "| 2 (17% never) |" in page
    assert "| never (83% never) |" in page


def test_the_matrix_says_how_many_cells_count() -> None:
    scores = np.zeros((2, 4, 3))
    for segment in range(3):
        scores[:, segment + 1, segment] = 1.0
    rows = list(matrix_rows(Matrix.in_order(scores, np.array([[0, 1, 2]] * 2))))
    assert [row.code for row in rows] == ["M6", "M7", "M7", "M9", *["M16"] * 4]
    assert value(rows, "score, 0 segments after the last visit") == 1.0
    assert value(rows, "score, 1 segment after the last visit") == 0.0
    assert value(rows, "memory horizon, segments") == 0.0
    assert "2 of 3" in rows[0].note
    assert value(rows, "ACC, score on all tasks met") == pytest.approx(interval([1 / 3] * 2).mean)


def test_the_area_over_the_single_task_twin_is_a_row_of_that_condition() -> None:
    rows = list(paired_rows({"carried": lives_of(), "single_task": lives_of(WORSE)}, HALF))
    tasks = {0: (0.1 * 2 + 0.5 * 2) / 4, 1: 0.1}  # of life 0; life 1 lost a tenth everywhere
    assert value(rows, "area over the single-task twin") == pytest.approx(
        ((tasks[0] + tasks[1]) / 2 + 0.1) / 2
    )


def test_scores_by_age_and_by_lag_are_rows() -> None:
    rows = list(condition_rows("carried", lives_of(), {"task 1": 12}))
    assert value(rows, "score in segment 3 of life") == pytest.approx(0.85)
    assert value(rows, "score at a lag of 12 steps") == pytest.approx(0.3)
    assert not any("lag" in row.measure for row in condition_rows("carried", lives_of()))


def test_what_was_found_is_said_in_short() -> None:
    said = []
    for change in (-0.1, 0.0, 0.1):
        twin = [[[u + change for u in segment] for segment in life] for life in SCORES]
        tables = {"carried": lives_of(), "reset_task": lives_of(twin)}
        rows = [*condition_rows("carried", tables["carried"]), *paired_rows(tables, HALF)]
        regret, parts, transfer = in_short(rows)
        assert "0.492" in regret and regret.endswith("in their order: 0.683, 0.300.")
        assert "0.192" in parts and "0.300" in parts
        said.append(transfer.split("(transfer) ")[1].split(":")[0])
    assert said == ["helps", "makes no difference that can be seen", "hurts"]
    assert in_short([]) == []


def test_an_age_that_few_lives_reached_is_no_row() -> None:
    lives = lives_of([SCORES[0], SCORES[1][:2], SCORES[1][:2]])
    shown = {row.measure for row in condition_rows("carried", lives)}
    assert "score in segment 2 of life" in shown and "score in segment 3 of life" not in shown


@pytest.mark.parametrize(("most", "ages"), [(0, []), (1, [1]), (2, [1, 2]), (7, [1, 2, 4, 7])])
def test_ages_double_up_to_the_last(most: int, ages: list[int]) -> None:
    assert doubling(most) == ages


def test_what_zero_and_one_are_is_said() -> None:
    def said(*words: str) -> list[str]:
        return scales(build_stream(compose_config(parse(words)), 0))

    known, informed = said("stream=hidden_rules")
    assert "0 = reference (planner)" in known and "as the oracle does, lies below 0" in informed
    assert len(said("stream=bandit")) == 1
    (none,) = said("stream=tasks", "stream.tasks=[FrozenLake-v1]")
    assert "no task has a reference" in none


def test_the_condition_of_training_is_named_where_carried_is_another() -> None:
    assert as_trained("lifetime") == as_trained("never") == []
    for boundary in ("episode", "task"):
        (said,) = as_trained(boundary)
        assert f"reset_{boundary} is the agent as it was trained" in said
        assert f"reset_{boundary}" in CONDITIONS
