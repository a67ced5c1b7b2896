"""Runs grouped by what differs between them beside the seed and a process's bookkeeping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from omegaconf import DictConfig, OmegaConf

from ..catalog import GROUPS
from ..episodes import Array, Episodes
from ..errors import RunError
from ..results import Curves, RunResult
from ..resume import flat
from ..statistics import Interval, interval

# Keys that may differ between runs of one group.
INCIDENTAL = (
    "folder",
    "resume",
    "device",
    "num_threads",
    "checkpoint_every",
    "keep_checkpoints",
    "log_every",
    "diagnostics_every",
    "plasticity_every",
    "trainer.extras.staleness_every",
    "quiet",
    "choices.experiment",
    "evaluation.num_lifetimes",
    "evaluation.every",
    "stream.workers",
    "stream.workers._target_",
    "stream.workers.count",
    "stream.workers.start",
    "stream.workers.timeout",
)
FOLLOWING = "sojourn.envs.MeasuredCurriculum"
SCHEDULES = tuple(f"sojourn.agents.{name}" for name in ("Constant", "Linear", "Horizon"))


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

    def stack_split(self) -> tuple[Any, Any]:
        """Transient and residual regret of the segments that ended in every window: `[num_runs,
        num_windows]` each.
        """
        edges = np.append(0.0, self.step)
        found = [[run.segments.split(*ends) for ends in pairwise(edges)] for run in self.runs]
        both = np.array(found).reshape(len(self.runs), len(self.step), 2)
        return both[..., 0], both[..., 1]

    @property
    def follows_agent(self) -> bool:
        """Whether what is lived depends on the agent beside the seed."""
        return FOLLOWING in flat(self.runs[0].config).values()

    @property
    def seeds(self) -> list[int]:
        """The seed of every run."""
        return [int(run.config.seed) for run in self.runs]

    def final_values(self, kind: str, last: float, index: int | None = None) -> list[float]:
        """Regret of a kind at the end of every run; of one episode index or all."""
        return [
            getattr(_of_index(run.final_episodes(last), index).regret(), kind) for run in self.runs
        ]

    def final_regret(self, kind: str, last: float, index: int | None = None) -> Interval:
        """Regret (`normalised`, `raw` or `informed`) at the end; of one episode index or all."""
        return interval(self.final_values(kind, last, index))

    def final_returns(self, last: float) -> Array:
        """Mean return per episode at the end of every run `[num_runs]`, NaN without an episode."""
        ends = [run.final_episodes(last).achieved for run in self.runs]
        return np.array([end.mean() if len(end) else np.nan for end in ends])

    def final_by_task(self, last: float) -> Any:
        """Normalised regret of every task at the end of every run `[num_runs, num_tasks]`, NaN
        where a run did not meet the task.
        """
        ends = [run.final_episodes(last) for run in self.runs]
        tasks = sorted({str(name) for episodes in ends for name in np.unique(episodes.task)})
        scores = [
            [episodes.where(episodes.task == task).regret().normalised for task in tasks]
            for episodes in ends
        ]
        return np.array(scores).reshape(len(ends), len(tasks))


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
    values = flat(run.config)
    for name in [name for name in values if name.endswith("._target_")]:
        _fold_schedule(run.config, name.removesuffix("._target_"), values)
    return {
        name: str(value)
        for name, value in values.items()
        if name not in INCIDENTAL and name.rsplit(".", 1)[-1] != "seed"
    }


def _fold_schedule(config: DictConfig, name: str, values: dict[str, Any]) -> None:
    """Write a schedule of the trainer as one value, as a number in its place would be."""
    node = OmegaConf.select(config, name)
    if node["_target_"] not in SCHEDULES:
        return
    arguments = [f"{key}={values[f'{name}.{key}']}" for key in node if key != "_target_"]
    values[name] = f"{node['_target_'].rsplit('.', 1)[-1]}({', '.join(arguments)})"
    for key in node:
        del values[f"{name}.{key}"]


def _label(differences: Mapping[str, str]) -> str:
    """Names of differing choices, and the differing keys that such a choice does not explain."""
    chosen = [group for group in GROUPS if f"choices.{group}" in differences]
    parts = [differences[f"choices.{group}"] for group in chosen]
    others = [name for name in differences if name.split(".")[0] not in (*chosen, "choices")]
    ends = [name.rsplit(".", 1)[-1] for name in others]
    for name, end in zip(others, ends, strict=True):
        shown = end if ends.count(end) == 1 else name
        parts.append(f"{shown}={differences[name]}")
    return ", ".join(parts)


def _label_of_one(run: RunResult) -> str:
    return str(run.config.choices.memory)


def _of_index(episodes: Episodes, index: int | None) -> Episodes:
    return episodes if index is None else episodes.of_index(index)
