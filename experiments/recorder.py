"""Everything a run writes while it lives: tables, TensorBoard, log.txt and the display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sojourn.envs import EpisodeRecord
from sojourn.memory import Measures

from .board import Board
from .diagnostics import mean_measures, measure_rows
from .episodes import record_row
from .folder import RunFolder
from .progress import Display
from .tables import LateTable, Table


class Recorder:
    """The one writer of a run's metrics.

    A resumed run gives `rows`, what its tables held at the checkpoint, and `resumed_from`, its
    step: everything that was written after them is cut off or hidden, so that each step is there
    once.
    """

    def __init__(
        self,
        folder: RunFolder,
        display: Display,
        log_every: int,
        rows: Mapping[str, int] | None = None,
        resumed_from: int | None = None,
    ) -> None:
        keep = rows or {"metrics": 0, "episodes": 0}
        self._metrics = Table(folder.metrics_file, keep["metrics"])
        self._episodes = Table(folder.episodes_file, keep["episodes"])
        self._diagnostics = LateTable(folder.diagnostics_file, keep.get("diagnostics", 0))
        self._evaluations = LateTable(folder.evaluations_file, keep.get("evaluations", 0))
        self._board = Board(folder.path, resumed_from)
        self._log = folder.log_file.open("a", encoding="utf-8")
        self._shown: dict[str, float] = {}  # the last known value of every metric
        self.display, self.log_every = display, log_every

    def record(
        self,
        step: int,
        update: int,
        metrics: Mapping[str, float],
        episodes: Sequence[EpisodeRecord],
    ) -> None:
        """Write an update; log.txt and TensorBoard get every `log_every`-th."""
        self._metrics.append([{"step": step, "update": update, **metrics}])
        self._episodes.append(record_row(record, step) for record in episodes)
        self._shown |= {name: value for name, value in metrics.items() if value == value}
        line = summary_line(self._shown)
        self.display.update(step, line)
        if update % self.log_every == 0:
            self.log(f"step {step}  update {update}  {line}")
            self._board.scalars(step, metrics)

    def record_running(self, step: int, episodes: Sequence[EpisodeRecord]) -> None:
        """Write the episodes that have not ended; a later row of the same episode replaces them."""
        self._episodes.append(record_row(record, step) for record in episodes)

    def record_measures(self, step: int, measures: Measures) -> None:
        """Write measures of the memory; TensorBoard gets their means over the heads."""
        self._diagnostics.append(measure_rows(step, measures))
        self._board.scalars(step, mean_measures(measures))

    def record_evaluation(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write what held-out lives said beside the training, by `eval/<name>`."""
        self._evaluations.append([{"step": step, **numbers}])
        self._board.scalars(step, numbers)

    def hyperparameters(self, values: Mapping[str, object]) -> None:
        """Show the configuration in TensorBoard."""
        self._board.hyperparameters(values)

    def note(self, text: str) -> None:
        """Write a remark to log.txt and show it."""
        self.log(text)
        self.display.say(text)

    def log(self, text: str) -> None:
        """Write a remark to log.txt."""
        self._log.write(text + "\n")
        self._log.flush()

    def rows(self) -> dict[str, int]:
        """How many rows the tables hold, safely on disk; belongs into a checkpoint."""
        tables: dict[str, Table | LateTable] = {
            "metrics": self._metrics,
            "episodes": self._episodes,
            "diagnostics": self._diagnostics,
            "evaluations": self._evaluations,
        }
        for table in tables.values():
            table.sync()
        return {name: table.num_rows for name, table in tables.items()}

    def close(self) -> None:
        self._metrics.close()
        self._episodes.close()
        self._diagnostics.close()
        self._evaluations.close()
        self._board.close()
        self._log.close()
        self.display.close()


def summary_line(metrics: Mapping[str, float]) -> str:
    """One line about the present: speed, return, regret by episode of a task, tasks that a life has
    met (mean over lives), norm of the memory.
    """
    by_episode = [
        f"{value:.2f}"
        for name, value in metrics.items()
        if name.startswith("continual/regret_episode_") and value == value
    ]
    shown = {
        "steps/s": _number(metrics, "time/steps_per_second", ",.0f"),
        "return": _number(metrics, "charts/episodic_return", ".3g"),
        "regret by episode": " ".join(by_episode) or "-",
        "tasks so far": _number(metrics, "continual/task_index", ".1f"),
        "memory norm": _number(metrics, "memory/state_norm", ".3g"),
    }
    return "  ".join(f"{name} {text}" for name, text in shown.items())


def _number(metrics: Mapping[str, float], name: str, form: str) -> str:
    value = metrics.get(name, float("nan"))
    return format(value, form) if value == value else "-"
