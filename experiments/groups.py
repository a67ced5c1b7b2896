"""Runs grouped by what differs between them beside the seed and a process's bookkeeping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .catalog import GROUPS
from .episodes import Episodes
from .errors import RunError
from .results import Curves, RunResult
from .resume import flat
from .statistics import Interval, interval

# Keys that may differ between runs of one group.
INCIDENTAL = (
    "folder",
    "resume",
    "device",
    "num_threads",
    "checkpoint_every",
    "keep_checkpoints",
    "log_every",
    "quiet",
    "choices.experiment",
    "evaluation.num_lifetimes",
)


@dataclass(frozen=True)
class Group:
    """Runs that differ by seed only; `differences` are the keys that set the group apart.

    The curves have the same windows, up to the step that all runs reached.
    """

    label: str
    runs: Sequence[RunResult]
    curves: Sequence[Curves]
    differences: Mapping[str, str]

    @property
    def step(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Ends of the windows `[num_windows]`."""
        return self.curves[0].step

    @property
    def num_indices(self) -> int:
        """How many episode indices all runs of the group have."""
        return min(len(curves.by_episode) for curves in self.curves)

    def stack(self, name: str) -> Any:
        """A curve of every run: `[num_runs, num_windows]`."""
        return np.stack([getattr(curves, name) for curves in self.curves])

    def stack_episode(self, index: int) -> Any:
        """Regret of the `index`-th episode of a task: `[num_runs, num_windows]`."""
        return np.stack([curves.by_episode[index] for curves in self.curves])

    def final_regret(self, kind: str, last: float, index: int | None = None) -> Interval:
        """Regret (`normalised` or `raw`) at the end of the runs; of one episode index or of all."""
        return interval(
            [
                getattr(_of_index(run.final_episodes(last), index).regret(), kind)
                for run in self.runs
            ]
        )


def group_runs(runs: Sequence[RunResult]) -> list[Group]:
    """Groups in the order of their first run.

    Raises RunError when two runs have equal settings and seed: they would count twice.
    """
    settings = [_settings(run) for run in runs]
    names = list(dict.fromkeys(name for values in settings for name in values))
    differing = [n for n in names if len({values.get(n, "(none)") for values in settings}) > 1]
    members: dict[tuple[str, ...], list[RunResult]] = {}
    for run, values in zip(runs, settings, strict=True):
        key = tuple(values.get(name, "(none)") for name in differing)
        members.setdefault(key, []).append(run)
    for group in members.values():
        _check_seeds(group)
    groups = []
    for key, group in members.items():
        differences = dict(zip(differing, key, strict=True))
        label = _label(differences) or _label_of_one(group[0])
        reached = min(run.last_step for run in group)
        curves = [run.curves(reached) for run in group]
        groups.append(Group(label, group, curves, differences))
    return groups


def _check_seeds(runs: Sequence[RunResult]) -> None:
    seen: dict[int, RunResult] = {}
    for run in runs:
        first = seen.setdefault(int(run.config.seed), run)
        if first is not run:
            raise RunError(
                f"{run.path}: same settings and seed as {first.path}, it would count twice; "
                "leave one out"
            )


def _settings(run: RunResult) -> dict[str, str]:
    """What defines a run's group, as text."""
    return {
        name: str(value)
        for name, value in flat(run.config).items()
        if name not in INCIDENTAL and name.rsplit(".", 1)[-1] != "seed"
    }


def _label(differences: Mapping[str, str]) -> str:
    """Names of differing choices, and the differing keys that such a choice does not explain."""
    chosen = [group for group in GROUPS if f"choices.{group}" in differences]
    parts = [differences[f"choices.{group}"] for group in chosen]
    parts += [
        f"{name}={value}"
        for name, value in differences.items()
        if name.split(".")[0] not in (*chosen, "choices")
    ]
    return ", ".join(parts)


def _label_of_one(run: RunResult) -> str:
    return str(run.config.choices.memory)


def _of_index(episodes: Episodes, index: int | None) -> Episodes:
    return episodes if index is None else episodes.of_index(index)
