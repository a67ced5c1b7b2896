"""A run as it lies on disk: its configuration, status, numbers and episodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml  # type: ignore[import-untyped]
from omegaconf import DictConfig, OmegaConf

from .episodes import Episodes, cumulative_regret, regret_by_window, window_edges
from .errors import RunError
from .folder import is_locked, read_json
from .measures.trained import TrainedSegments
from .tables import Array as Array
from .tables import Columns, read_table
from .tracker import MAX_EPISODES

NUM_WINDOWS = 50
CONFIG_FILE = "config.yaml"


@dataclass(frozen=True)
class Curves:
    """A run's regret over windows `[num_windows]`; `step` is where a window ends, in environment
    steps.

    `by_episode` `[num_indices, num_windows]` is the normalised regret of the 1st, 2nd ... episode
    of a task.
    """

    step: Array
    normalised: Array
    raw: Array
    cumulative: Array
    by_episode: Array


@dataclass(frozen=True)
class RunResult:
    """One run folder."""

    path: Path
    config: DictConfig
    status: str

    @classmethod
    def read(cls, path: Path) -> RunResult:
        """Raises RunError naming the folder when it is not a run."""
        if not (path / CONFIG_FILE).is_file():
            raise RunError(f"{path}: not a run folder (it has no {CONFIG_FILE})")
        config = _read_config(path / CONFIG_FILE)
        status = str(read_json(path / "status.json").get("status"))
        if status == "running" and not is_locked(path):
            status = "killed"
        return cls(path, config, status)

    @property
    def steps_per_update(self) -> int:
        return int(self.config.num_lifetimes) * int(self.config.slice_steps)

    @property
    def backend(self) -> str:
        """What its environments were played by."""
        return str(self.config.stream.get("backend", "auto"))

    @cached_property
    def summary(self) -> Mapping[str, Any]:
        """summary.json, written when a run ends; empty before."""
        path = self.path / "summary.json"
        return read_json(path) if path.exists() else {}

    @cached_property
    def metrics(self) -> Columns:
        """metrics.csv: a row for every update."""
        return read_table(self.path / "metrics.csv")

    @cached_property
    def episodes(self) -> Episodes:
        """The finished episodes of training."""
        return Episodes.from_table(self.path / "episodes.csv")

    @cached_property
    def segments(self) -> TrainedSegments:
        """The segments of training that were lived to their end."""
        path = self.path / "episodes.csv"
        return TrainedSegments.from_table(path, int(self.config.num_lifetimes))

    @property
    def last_step(self) -> int:
        """Environment steps of the last update; 0 before the first."""
        steps = self.metrics.get("step", np.zeros(0))
        return int(steps[-1]) if len(steps) else 0

    @property
    def steps_per_second(self) -> float:
        """Median over updates; NaN before the first."""
        speeds = self.metrics.get("time/steps_per_second", np.zeros(0))
        return float(np.median(speeds)) if len(speeds) else float("nan")

    def final_episodes(self, last: float) -> Episodes:
        """The last episodes: of a fraction of the steps below 1, else a number of them."""
        if last >= 1:
            return self.episodes.where(slice(-int(last), None))
        return self.episodes.where(self.episodes.step > (1.0 - last) * self.last_step)

    def final_split(self, last: float) -> tuple[float, float]:
        """Transient and residual regret of the segments that ended while the last episodes did."""
        if last < 1:
            return self.segments.split((1.0 - last) * self.last_step, self.last_step)
        first = self.final_episodes(last).step.min(initial=self.last_step)
        return self.segments.split(first - 1, self.last_step)

    def first_episodes(self, first: float) -> Episodes:
        """The episodes of the first fraction of the run's steps, at least its first update."""
        end = max(first * self.last_step, self.steps_per_update)
        return self.episodes.where(self.episodes.step <= end)

    def curves(self, last_step: int | None = None) -> Curves:
        """Regret over windows of 2 % of the steps up to `last_step` (None: the whole run), at least
        one update each.
        """
        episodes = self.episodes
        end = self.last_step if last_step is None else last_step
        edges = window_edges(end, NUM_WINDOWS, self.steps_per_update)
        normalised, raw = regret_by_window(episodes, edges)
        widths = np.diff(edges) / int(self.config.num_lifetimes)
        by_episode = [
            regret_by_window(episodes.of_index(index), edges)[0]
            for index in range(episodes.num_indices(MAX_EPISODES))
        ]
        return Curves(
            step=edges[1:],
            normalised=normalised,
            raw=raw,
            cumulative=cumulative_regret(normalised, widths),
            by_episode=np.array(by_episode).reshape(len(by_episode), len(edges) - 1),
        )


def _read_config(path: Path) -> DictConfig:
    try:
        config = OmegaConf.load(path)
    except (OSError, yaml.YAMLError) as error:
        raise RunError(f"{path}: cannot be read ({str(error).splitlines()[0]})") from error
    if not isinstance(config, DictConfig):
        raise RunError(f"{path}: expected keys and values")
    return config
