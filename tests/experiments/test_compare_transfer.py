"""What a comparison says of transfer, forgetting and the split of regret is what runs hold."""

from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from sojourn.experiments import report
from sojourn.experiments.command import main
from sojourn.experiments.comparisons.evaluated import (
    SHOWN,
    Evaluated,
    Scores,
    evaluations,
    matrix_grids,
    transfer_table,
)
from sojourn.experiments.comparisons.figures import matrix_pictures
from sojourn.experiments.comparisons.groups import Group, group_runs
from sojourn.experiments.drawing.panels import Grid
from sojourn.experiments.measures.trained import TrainedSegments
from sojourn.experiments.pages.heat import heat_map
from sojourn.experiments.results import RunResult
from sojourn.experiments.tables import Cell, read_table, write_table

from .conftest import AGENT

Train = Callable[..., Path]
ROOMS = ["stream=dark_room_recurring", "stream.schedule.families.0.horizon=4", *AGENT]
LIVED = ["num_lifetimes=4", "slice_steps=8", "num_steps=320", "checkpoint_every=160", "quiet=true"]
ASKED = ["num_lifetimes=3", "segments=4", "conditions=carried,reset_task", "probe_episodes=1"]
PLACES = {"older": [], "zz-newer": ["checkpoints=all"]}  # folder of an evaluation -> more words


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two seeds of one memory, each with two evaluations, and one run without any."""
    folder = tmp_path_factory.mktemp("evaluated")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(report, "draw_regret", lambda _: None)
        for seed in (1, 2):
            assert main(["train", *ROOMS, *LIVED, f"seed={seed}", f"folder=runs/{seed}"]) == 0
            for place, more in PLACES.items():
                output = f"output=runs/{seed}/evaluations/{place}"
                words = [*ASKED, *more, f"seed={len(place)}", output]
                assert main(["evaluate", f"runs/{seed}", *words]) == 0
        words = ["memory_reset=never", "folder=runs/other"]
        assert main(["train", *ROOMS, *LIVED, *words]) == 0
        yield folder


@pytest.fixture
def groups(evaluated: Path, monkeypatch: pytest.MonkeyPatch) -> list[Group]:
    monkeypatch.chdir(evaluated)
    return group_runs([RunResult.read(Path("runs", name)) for name in ("1", "2", "other")])


def test_the_table_has_the_newest_evaluation_of_every_run(groups: list[Group]) -> None:
    table = transfer_table(groups, evaluations(groups))
    assert table.data["group"] == [groups[0].label], "who was not evaluated is not in the table"
    assert table.data["n"] == [2]
    for name in ("held-out regret", "utility U", "ACC", "BWT", "FWT"):
        expected = []
        for seed in (1, 2):
            rows = read_table(Path(f"runs/{seed}/evaluations/zz-newer/measures.csv"))
            measure, condition = SHOWN[name]
            chosen = (rows["measure"] == measure) & (rows["condition"] == condition)
            (value,) = rows["mean"][chosen]
            expected.append(value)
        assert table.data[f"{name}: mean"] == pytest.approx([np.mean(expected)], nan_ok=True)
        assert table.data[f"{name}: num_runs"] == [2]
    assert "frozen-copy gap" not in table.header, "half_life was not lived"
    (kind,) = Evaluated.read(Path("runs/1/evaluations/zz-newer")).comparators.values()
    assert f"comparator: {kind}" in table.notes[0]


def test_heat_maps_are_means_over_runs(groups: list[Group]) -> None:
    memory, outer = matrix_pictures(groups, evaluations(groups))
    for picture, shape in ((memory, (5, 2)), (outer, None)):
        (grid,) = picture.grids
        read = [Evaluated.read(Path(f"runs/{seed}/evaluations/zz-newer")) for seed in (1, 2)]
        matrices = [one.matrices[picture.name].values for one in read]
        np.testing.assert_allclose(grid.mean, np.mean(np.stack(matrices), axis=0), rtol=1e-12)
        assert (grid.num_runs == 2).all() and shape in (None, grid.mean.shape)
        assert f"{grid.title}: n = 2" in picture.caption


def test_rows_that_not_all_runs_have_are_left_out(groups: list[Group]) -> None:
    one, other = (
        Evaluated({}, {"outer_matrix": Scores(rows, np.array(values))}, "", {})
        for rows, values in (
            (("0", "8k", "16k"), [[0.0, 1.0], [0.2, 1.0], [0.4, 1.0]]),
            (("0", "16k"), [[0.2], [0.8]]),
        )
    )
    (grid,) = matrix_grids("outer_matrix", groups[:1], [[one, other]])
    assert list(grid.rows) == ["0", "16k"] and list(grid.columns) == ["1"]
    np.testing.assert_allclose(grid.mean, [[0.1], [0.6]])


def test_the_folder_has_table_map_and_data(evaluated: Path, groups: list[Group]) -> None:
    del groups
    assert main(["compare", "runs/*", "output=out"]) == 0
    cells = read_table(Path("out/memory_matrix.csv"))
    assert len(cells["mean"]) == 10
    assert Path("out/memory_matrix.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in Path("out/memory_matrix.svg").read_text()
    assert "utility U" in Path("out/transfer.tex").read_text()
    text = Path("out/report.html").read_text()
    num_cells = 10 + len(read_table(Path("out/outer_matrix.csv"))["mean"])
    assert text.count('class="cell"') == num_cells
    assert "sojourn evaluate RUN" in text


def test_without_an_evaluation_there_is_no_map(groups: list[Group]) -> None:
    alone = [groups[1]]
    assert evaluations(alone) == [[]]
    assert matrix_pictures(alone, evaluations(alone)) == []
    assert not transfer_table(alone, evaluations(alone)).rows


@pytest.mark.parametrize("value", [-0.5, 0.0, 0.55, 1.0, 1.5, np.nan])
def test_a_cell_says_its_number_and_never_more_than_full_colour(value: float) -> None:
    one = np.array([[value]])
    grid = Grid("<b> & c", "x", "y", ["1"], ["0"], one, one - 0.1, one + 0.1, np.array([[3]]))
    svg = ElementTree.fromstring(heat_map(grid, "name"))
    cells = [found for found in svg.iter("rect")]
    assert len(cells) == int(np.isfinite(value))
    for cell in cells:
        assert 0.0 <= float(cell.attrib["fill-opacity"]) <= 1.0
        assert any(text.text == f"{value:.2f}" for text in svg.iter("text"))
        assert any("n = 3" in (title.text or "") for title in svg.iter("title"))


ROWS = [  # step, lifetime, segment, episode, score
    (10, 0, 0, 0, 0.0),
    (10, 1, 0, 0, 0.2),
    (20, 0, 0, 1, 1.0),
    (20, 1, 0, 1, 0.4),
    (30, 0, 1, 0, 0.5),
    (30, 3, 0, 0, 0.9),  # row 1 went on to lifetime 3: segment 0 of lifetime 1 has ended
    (40, 0, 1, 1, 0.5),
]


def test_segments_of_training_end_where_something_follows(tmp_path: Path) -> None:
    columns: dict[str, list[Cell]] = {
        "step": [row[0] for row in ROWS],
        "lifetime": [row[1] for row in ROWS],
        "segment": [row[2] for row in ROWS],
        "episode": [row[3] for row in ROWS],
        "task": ["a"] * len(ROWS),
        "task_index": [0] * len(ROWS),
        "status": [*["terminated"] * (len(ROWS) - 1), "running"],
        "unit": ["episode"] * len(ROWS),
        "start_step": [0] * len(ROWS),
        "num_steps": [1] * len(ROWS),
        "total_return": [row[4] for row in ROWS],
        "expected_return": [np.nan] * len(ROWS),
        "optimal_return": [1.0] * len(ROWS),
        "floor_return": [0.0] * len(ROWS),
        "informed_return": [np.nan] * len(ROWS),
    }
    write_table(tmp_path / "episodes.csv", columns)
    found = TrainedSegments.from_table(tmp_path / "episodes.csv", num_lifetimes=2)
    assert found.segments.lifetime.tolist() == [0, 1], "the last segments still run"
    assert found.step.tolist() == [20, 20]
    np.testing.assert_allclose(found.segments.residual, [0.0, 0.6])
    np.testing.assert_allclose(found.segments.transient, [0.5, 0.1])
    assert found.split(10, 20) == pytest.approx((0.3, 0.3))
    assert np.isnan(found.split(20, 40)).all()
    assert len(TrainedSegments.from_table(tmp_path / "none.csv", 2).step) == 0


def test_the_split_adds_up_to_the_regret_of_whole_segments(groups: list[Group]) -> None:
    (run, *_) = groups[0].runs
    transient, residual = run.final_split(1.0 - 1e-9)
    found = run.segments.segments
    assert len(found) > 5
    assert transient + residual == pytest.approx(found.regret.mean())
    both = np.stack(groups[0].stack_split())
    assert both.shape == (2, 2, len(groups[0].step)) and np.isfinite(both).any()
