"""Every measure of an evaluation on lives of three tasks whose answers are worked out by hand."""

import numpy as np
import pytest

from sojourn.experiments.evaluations.conditions import Half
from sojourn.experiments.evaluations.matrix import matrix_rows
from sojourn.experiments.evaluations.measures import Row, condition_rows, paired_rows
from sojourn.experiments.measures.forgetting import Matrix

from .test_measures import lives_of

# Tasks A B C A, two episodes each; the second lifetime is as the first.
TASKS = (0, 1, 2, 0)
CARRIED = [[[0.0, 0.4], [0.2, 0.6], [0.1, 0.5], [0.6, 0.8]]] * 2
TWIN = [[[0.0, 0.4], [0.1, 0.5], [0.1, 0.5], [0.0, 0.4]]] * 2
SINGLE = [[[0.0, 0.4], [0.1, 0.5], [0.1, 0.5], [0.4, 0.8]]] * 2
FROZEN = [[[0.0, 0.4], [0.2, 0.6], [0.0, 0.4], [0.3, 0.5]]] * 2
# R[r, i] after 0 .. 4 segments.
MATRIX = np.array(
    [[[0.0, 0.1, 0.0], [0.6, 0.2, 0.1], [0.4, 0.8, 0.2], [0.3, 0.5, 0.9], [0.7, 0.4, 0.6]]] * 2
)
EXPECTED = {
    ("M1", "return per episode"): 0.2 + 0.4,  # floor 0.2, gap 1, mean score 3.2 / 8
    ("M1", "reward per step"): 0.6 / 4,  # episodes of four steps
    ("M2", "regret, all episodes"): 0.6,
    ("M2", "regret, 1st episode"): 1 - 0.9 / 4,
    ("M2", "regret, 2nd episode"): 1 - 2.3 / 4,
    ("M2", "regret by steps"): 0.6,
    ("M3", "transient regret"): (0.2 + 0.2 + 0.2 + 0.1) / 4,
    ("M3", "residual regret"): (0.6 + 0.4 + 0.5 + 0.2) / 4,
    ("M4", "transient regret, first visits"): 0.2,
    ("M4", "transient regret, revisits"): 0.1,
    ("M4", "residual regret, first visits"): 0.45,
    ("M4", "residual regret, revisits"): 0.2,
    ("pair", "regret minus carried"): (0.0 + 0.1 + 0.0 + 0.5) / 4,
    ("M5", "utility U of having lived"): (0.1 + 0.0 + 0.5) / 3,
    ("M5", "utility U, first visits"): 0.05,
    ("M5", "utility U, revisits"): 0.5,
    ("M6", "forgetting at a boundary"): (0.2 + 0.1 + 0.3 + 0.1 + 0.3) / 5,
    ("M7", "ACC, score on all tasks met"): (0.7 + 0.4 + 0.6) / 3,
    ("M7", "BWT, backward transfer"): ((0.4 - 0.8) + (0.6 - 0.9)) / 2,
    ("M8", "area over the single-task twin"): (0.1 / 2 + 0.1 + 0.0) / 3,
    ("M9", "jump start score"): (0.2 + 0.1 + 0.6) / 3,
    ("M9", "FWT, zero-shot minus untrained memory"): ((0.2 - 0.1) + (0.2 - 0.0)) / 2,
    ("M10", "episodes to score 0.5, median over segments"): 2.0,
    ("M10", "episodes to score 0.95, median over segments"): np.inf,
    ("M11", "trend of transient regret per segment"): (-0.1 / 3 + 0.0) / 2,
    ("M11", "trend of residual regret per segment"): (-0.4 / 3 - 0.1) / 2,
    ("M12", "score, worst tenth of episodes"): 0.0,
    ("M15", "frozen-copy gap, second half"): (0.1 + 0.3) / 2,
    ("M16", "score in segment 1 of life"): 0.2,
    ("M16", "score in segment 4 of life"): 0.7,
    ("M16", "score at a lag of 9 steps"): 0.3,
    ("M16", "score, 0 segments after the last visit"): (0.6 + 0.8 + 0.9 + 0.7) / 4,
    ("M16", "score, 1 segment after the last visit"): (0.4 + 0.5 + 0.6) / 3,
    ("M16", "score, 2 segments after the last visit"): (0.3 + 0.4) / 2,
    ("M16", "memory horizon, segments"): 1.0,
}


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, str], Row]:
    lived = {"carried": CARRIED, "reset_task": TWIN, "single_task": SINGLE, "half_life": FROZEN}
    tables = {name: lives_of(scores, tasks=TASKS) for name, scores in lived.items()}
    found = [*condition_rows("carried", tables["carried"], {"task 2": 9})]
    found += paired_rows(tables, Half(2, in_segments=True))
    found += matrix_rows(Matrix.in_order(MATRIX, np.tile(TASKS, (2, 1))))
    named: dict[tuple[str, str], Row] = {}
    for row in found:
        named.setdefault((row.code, row.measure), row)  # of the pairs the first is the twin's
    return named


@pytest.mark.parametrize("key", EXPECTED, ids=lambda key: key[1])
def test_it_is_what_it_is_by_hand(rows: dict[tuple[str, str], Row], key: tuple[str, str]) -> None:
    assert rows[key].value.mean == pytest.approx(EXPECTED[key], abs=1e-12)


def test_no_code_is_forgotten(rows: dict[tuple[str, str], Row]) -> None:
    apart = {"M13", "M14"}  # of agents, not of tables: test_evaluate_state
    codes = {f"M{number}" for number in range(1, 17)} | {"pair"}
    assert {code for code, _ in rows} == codes - apart == {code for code, _ in EXPECTED}
