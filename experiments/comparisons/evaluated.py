"""What the evaluations of runs say of transfer and forgetting: a table and heat maps over runs.

Of every run the newest evaluation in its folder counts. Its numbers are means over lifetimes of one
agent; here a run is one replicate, so that intervals tell how training runs differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from omegaconf import OmegaConf

from ..drawing.panels import Array, Grid
from ..folder import read_json
from ..report import regret_scale
from ..results import CONFIG_FILE, RunResult
from ..statistics import Interval, band, interval
from ..tables import Cell, read_table
from .comparison import Comparison
from .groups import Group

FOLDER, MEASURES = "evaluations", "measures.csv"

# File of an evaluation -> what its columns and rows are.
MATRICES = {
    "memory_matrix": ("task, by first visit", "segments lived"),
    "outer_matrix": ("task", "environment step"),
}

# Column of the table -> (measure, condition) in the table of an evaluation.
SHOWN = {
    "held-out regret": ("regret, all episodes", "carried"),
    "utility U": ("utility U of having lived", "reset_task"),
    "forgetting at a boundary": ("forgetting at a boundary", "carried"),
    "ACC": ("ACC, score on all tasks met", "carried"),
    "BWT": ("BWT, backward transfer", "carried"),
    "FWT": ("FWT, zero-shot minus untrained memory", "carried"),
    "frozen-copy gap": ("frozen-copy gap, second half", "half_life"),
}
NOTES = (
    "Of the newest evaluation of every run (sojourn evaluate RUN), mean over its lifetimes; "
    "intervals over runs.",
    "U: regret of a twin whose memory is reset at every task, less that of the carried life. "
    "Forgetting: score lost on a known task while another is played. ACC: score on all tasks at "
    "the end of life; BWT: what life after a task changed on it (forgetting is -BWT); FWT: score "
    "before a task is met, less that of an untrained memory; frozen-copy gap: regret that "
    "writing on saves in the second half of life.",
)


@dataclass(frozen=True)
class Scores:
    """A matrix of scores `[num_rows, num_tasks]` and the names of its rows."""

    rows: Sequence[str]
    values: Array

    @classmethod
    def read(cls, path: Path) -> Scores:
        """From a table whose first column names the rows."""
        first, *tasks = read_table(path).values()
        rows = [f"{row:g}" if first.dtype.kind == "f" else str(row) for row in first]
        return cls(rows, np.stack(tasks, axis=1))

    def of(self, rows: Sequence[str], num_tasks: int) -> Array:
        """The part with these rows and as many tasks."""
        return self.values[[self.rows.index(row) for row in rows], :num_tasks]


@dataclass(frozen=True)
class Evaluated:
    """An evaluation as it lies on disk: `measures` by (measure, condition), R-matrices by their
    file's name, what was lived, as text, and by task what regret is measured against.
    """

    measures: Mapping[tuple[str, str], float]
    matrices: Mapping[str, Scores]
    lived: str
    comparators: Mapping[str, str]

    @classmethod
    def read(cls, folder: Path) -> Evaluated:
        """From the folder of an evaluation that ran to its end."""
        table = read_table(folder / MEASURES)
        names = zip(table["measure"].tolist(), table["condition"].tolist(), strict=True)
        measures = dict(zip(names, table["mean"].tolist(), strict=True))
        paths = {name: folder / f"{name}.csv" for name in MATRICES}
        matrices = {name: Scores.read(path) for name, path in paths.items() if path.exists()}
        config = OmegaConf.load(folder / CONFIG_FILE)
        stream = OmegaConf.to_container(config.stream)
        assert isinstance(stream, dict)
        lived = {key: value for key, value in stream.items() if key not in ("seed", "workers")}
        shapes = [scores.values.shape for scores in matrices.values()]
        against = read_json(folder / "measures.json").get("comparators", {})
        return cls(measures, matrices, f"{shapes}, {lived}", against)


def newest(run: RunResult) -> Evaluated | None:
    """The last finished evaluation in a run's folder."""
    found = sorted(path.parent for path in (run.path / FOLDER).glob(f"*/{MEASURES}"))
    return Evaluated.read(found[-1]) if found else None


def evaluations(groups: Sequence[Group]) -> list[list[Evaluated]]:
    """Of every group, the evaluations of those runs that have one."""
    found = [[newest(run) for run in group.runs] for group in groups]
    return [[one for one in of_group if one is not None] for of_group in found]


def transfer_table(groups: Sequence[Group], found: Sequence[Sequence[Evaluated]]) -> Comparison:
    """A row for every group that was evaluated; columns that no evaluation has are left out."""
    having = [(group, ones) for group, ones in zip(groups, found, strict=True) if ones]
    columns = {"group": [group.label for group, _ in having]}
    columns["n"] = [str(len(ones)) for _, ones in having]
    data: dict[str, list[Cell]] = {"group": list(columns["group"])}
    data["n"] = [len(ones) for _, ones in having]
    for name, key in SHOWN.items():
        numbers = [_over_runs(ones, key) for _, ones in having]
        if any(one.num_runs for one in numbers):
            columns[name] = [str(one) for one in numbers]
            for part in ("mean", "low", "high", "num_runs"):
                data[f"{name}: {part}"] = [getattr(one, part) for one in numbers]
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    return Comparison(list(columns), rows, data, _notes(having))


def matrix_grids(
    name: str, groups: Sequence[Group], found: Sequence[Sequence[Evaluated]]
) -> list[Grid]:
    """An R-matrix of every group, over the rows and tasks that all its runs were asked for."""
    x_label, y_label = MATRICES[name]
    grids = []
    for group, ones in zip(groups, found, strict=True):
        matrices = [one.matrices[name] for one in ones if name in one.matrices]
        if not matrices:
            continue
        rows = [row for row in matrices[0].rows if all(row in other.rows for other in matrices)]
        num_tasks = min(matrix.values.shape[1] for matrix in matrices)
        scores = np.stack([matrix.of(rows, num_tasks) for matrix in matrices])
        means = band(scores.reshape(len(matrices), -1))
        parts = (means.mean, means.low, means.high, means.num_runs)
        shaped = (part.reshape(len(rows), num_tasks) for part in parts)
        tasks = [str(task + 1) for task in range(num_tasks)]
        grids.append(Grid(group.label, x_label, y_label, tasks, rows, *shaped))
    return grids


def _over_runs(found: Sequence[Evaluated], key: tuple[str, str]) -> Interval:
    return interval([one.measures.get(key, np.nan) for one in found])


def _notes(having: Sequence[tuple[Group, Sequence[Evaluated]]]) -> list[str]:
    lived = ({"comparators": one.comparators} for _, ones in having for one in ones)
    notes = [regret_scale(lived), *NOTES] if having else list(NOTES)
    if len({one.lived for _, ones in having for one in ones}) > 1:
        notes.append(
            "These evaluations did not live the same: their streams or the sizes of their matrices "
            "differ."
        )
    without = [group for group, ones in having if len(ones) < len(group.runs)]
    notes += [f"{group.label}: some of its runs have no evaluation" for group in without]
    return notes
