"""The episodes of some lifetimes as columns, with the regret of each.

    score_e = 1 - regret_e      0 = uniform random, 1 = optimal; never clipped

The regret of an episode is `sojourn.envs.episode_regret`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from sojourn.envs import episode_regret, task_gaps

from ..episodes import KEY, Array, Episodes
from ..tables import last_rows, read_table


@dataclass(frozen=True)
class Lives:
    """Columns `[num_episodes]` of finished episodes.

    `optimal` is NaN where nothing can be said of an episode's regret (no reference; cut by the end
    of its segment). `ends_segment` marks the last episode of a segment.
    """

    lifetime: Array
    segment: Array
    episode: Array
    task: Array
    task_index: Array
    by_rate: Array
    start_step: Array
    num_steps: Array
    achieved: Array
    optimal: Array
    floor: Array
    informed: Array
    ends_segment: Array

    @classmethod
    def from_table(cls, path: Path) -> Lives:
        """A table of the fields of `EpisodeRecord` and `ends_segment`."""
        return cls.from_columns(last_rows(read_table(path), KEY))

    @classmethod
    def from_columns(cls, columns: Mapping[str, Array]) -> Lives:
        """From the columns of such a table; no column at all is no episode, a running one is left
        out.
        """
        if not columns:
            kinds = {"task": str, "by_rate": bool, "ends_segment": bool}
            real = ("achieved", "optimal", "floor", "informed")
            kinds |= dict.fromkeys(real, float)
            return cls(**{f.name: np.zeros(0, kinds.get(f.name, np.int64)) for f in fields(cls)})
        finished = columns["status"].astype(str) != "running"
        columns = {name: column[finished] for name, column in columns.items()}
        whole = ("lifetime", "segment", "episode", "task_index", "start_step", "num_steps")
        known = Episodes.from_columns({"step": columns["start_step"], **columns})
        return cls(
            **{name: columns[name].astype(np.int64) for name in whole},
            task=known.task,
            by_rate=columns["unit"].astype(str) == "rate",
            achieved=known.achieved,
            optimal=known.optimal,
            floor=known.floor,
            informed=known.informed,
            ends_segment=columns["ends_segment"].astype(bool),
        )

    def __len__(self) -> int:
        return len(self.lifetime)

    def where(self, chosen: Array) -> Lives:
        """The episodes of a boolean mask `[num_episodes]`."""
        return Lives(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def against_informed(self) -> Lives:
        """The episodes of tasks that hide something, held against who does not know it either."""
        told = self.where(np.isfinite(self.informed))
        return replace(told, optimal=told.informed)

    @property
    def known(self) -> Array:
        """Bool `[num_episodes]`: the episodes that have a regret."""
        return np.isfinite(self.achieved) & np.isfinite(self.optimal) & np.isfinite(self.floor)

    @property
    def place(self) -> Array:
        """One number for every (lifetime, segment), ordered like them."""
        return self.lifetime * 2**32 + self.segment

    def whole_segments(self) -> Lives:
        """The episodes of segments that were lived to their end."""
        return self.where(np.isin(self.place, self.place[self.ends_segment]))

    def regret(self, gaps: Mapping[str, float] | None = None) -> Array:
        """Normalised regret `[num_episodes]`, NaN where unknown; `gaps` default to those of these
        episodes.
        """
        by_task = gaps_of([self]) if gaps is None else gaps
        regret = episode_regret(self.task, self.achieved, self.optimal, by_task)
        return np.where(self.known, regret, np.nan)


def gaps_of(groups: Iterable[Lives]) -> dict[str, float]:
    """Mean J* - J0 of every task over the episodes of all groups that have a regret.

    A task without a gap is left out: nothing can be measured against it.
    """
    known = [lives.where(lives.known) for lives in groups]
    parts = ([getattr(lives, name) for lives in known] for name in ("task", "optimal", "floor"))
    return task_gaps(*(np.concatenate(part) if part else np.zeros(0) for part in parts))
