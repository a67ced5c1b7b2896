"""What an endless life leaves on disk, of bounded size: windows.csv, episodes.csv and life.json."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sojourn.agents import Measure, Verdict
from sojourn.envs import EpisodeRecord

from ..episodes import record_row
from ..statistics import Interval
from ..tables import Cell
from .bounded_table import BoundedTable, newest, thinned
from .learning_value import LearningValue

LEARNER, TWIN = "learner", "twin"
SHOWN = ("losses/total", "losses/approx_kl", "losses/grad_norm", "losses/entropy")


class Tally:
    """What a life sums up: windows, verdicts, and what learning was worth."""

    def __init__(self) -> None:
        self.windows = 0
        self.verdicts = {"accepted": 0, "rolled_back": 0, "unknown": 0, "broken": 0}
        self.value = LearningValue()

    def add(self, loss: float, twin_loss: float, verdict: Verdict) -> None:
        """One more window."""
        self.windows += 1
        self.verdicts[verdict.outcome] += 1
        self.value.add(loss, twin_loss)

    @property
    def taken_back(self) -> int:
        """How many windows of learning were undone."""
        return self.verdicts["rolled_back"] + self.verdicts["broken"]

    def line(self, measure: Measure) -> str:
        """One line about the life so far."""
        text = f"windows {self.windows:,}, taken back {self.taken_back:,}"
        if self.value.num_windows == 0:
            return text
        learner, twin = self.value.mean_losses()
        found = self.value.of_life()
        name = "regret" if measure == "regret" else "return behind the mean of both lives"
        return f"{name} {learner:.3f}, frozen twin {twin:.3f}, value of learning {found}; {text}"

    def summary(self, measure: Measure) -> dict[str, Any]:
        """The same for life.json; null where nothing is known."""
        learner, twin = self.value.mean_losses()
        return {
            "windows": self.windows,
            "verdicts": self.verdicts,
            "measure": measure,
            "known_windows": self.value.num_windows,
            "loss": _known(learner),
            "twin_loss": _known(twin),
            "value_of_learning": {
                "life": _parts(self.value.of_life()),
                "second_half": _parts(self.value.of_second_half()),
            },
        }

    def state_dict(self) -> dict[str, Any]:
        """Everything, in plain values."""
        return {
            "windows": self.windows,
            "verdicts": self.verdicts,
            "value": self.value.state_dict(),
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.windows, self.verdicts = saved["windows"], dict(saved["verdicts"])
        self.value.load_state_dict(saved["value"])


class LiveTables:
    """The tables of a life; `written` says how many rows each had at the checkpoint it goes on
    from.
    """

    def __init__(self, folder: Path, most: int, written: Mapping[str, int]) -> None:
        windows, episodes = written.get("windows", 0), written.get("episodes", 0)
        self._windows = BoundedTable(folder / "windows.csv", thinned, most, windows)
        self._episodes = BoundedTable(folder / "episodes.csv", newest, most, episodes)

    def write_window(
        self, step: int, losses: Sequence[float], verdict: Verdict, metrics: Mapping[str, float]
    ) -> None:
        """A row about a window; `losses` of the learner and of its twin."""
        row: dict[str, Cell] = {
            "step": step,
            "loss": losses[0],
            "twin_loss": losses[1],
            "verdict": verdict.outcome,
            "worsening": verdict.worsening,
        }
        known = {name: metrics.get(name, math.nan) for name in ("distance", *SHOWN)}
        self._windows.append([row | known])

    def write_episodes(
        self, step: int, records: Sequence[EpisodeRecord], twins: Sequence[EpisodeRecord]
    ) -> None:
        """The episodes that ended in a window, of the learner and then of its twin."""
        for life, lived in ((LEARNER, records), (TWIN, twins)):
            self._episodes.append({"life": life, **record_row(r, step)} for r in lived)

    def bound(self) -> dict[str, int]:
        """Drop what is too much, make the rest safe; how many rows were ever written."""
        for table in (self._windows, self._episodes):
            table.bound()
        return {"windows": self._windows.count, "episodes": self._episodes.count}

    def close(self) -> None:
        """Close the files."""
        self._windows.close()
        self._episodes.close()


def _parts(found: Interval) -> dict[str, float | int | None]:
    numbers = {name: _known(getattr(found, name)) for name in ("mean", "low", "high")}
    return {**numbers, "batches": found.num_runs}


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
