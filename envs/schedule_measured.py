"""A curriculum that follows the agent: families are drawn by how much regret they still cost.

    p_j = e / F + (1 - e) v_j / sum v,    v_j = regret of family j       over its last w episodes
                                          or  |late half - early half|   (learning progress)

The measured regret is fed by a training run, update by update; who feeds nothing (an evaluation)
lives a uniform draw. Source: regret as the value of a task, Jiang et al. 2021, arXiv:2010.03934;
learning progress, Matiisen et al. 2017, arXiv:1707.00183.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from .choices import check_choice
from .episodes import EpisodeRecord
from .interface import Array
from .regret import pooled_regret
from .schedule import CHOICE, FRESH, Assignment, Schedule
from .seeding import generator
from .task import Family

By = Literal["regret", "progress"]
UNKNOWN = 1.0
"""The value of a family of which too little is known: that of a random policy's regret."""


class MeasuredCurriculum(Schedule):
    """A new task in every segment, of a family drawn by the regret of its last `window` episodes.

    `by` says whether a family is worth what it costs (`regret`) or how fast that changes
    (`progress`); `explore` is the share of draws that are uniform. What was drawn is kept as state,
    so that a segment stays what it was. Raises ValueError for an invalid argument.
    """

    follows_agent = True

    def __init__(
        self,
        families: Sequence[Family],
        by: By = "regret",
        window: int = 64,
        explore: float = 0.2,
    ) -> None:
        super().__init__(families, None)
        check_choice("by", by, By)
        if window < 2:
            raise ValueError(f"window: expected at least 2, got {window}")
        if not 0.0 < explore <= 1.0:
            raise ValueError(f"explore: expected 0 < explore <= 1, got {explore}")
        self.by, self.window, self.explore = by, window, explore
        self._choices: dict[tuple[int, int], int] = {}
        self._lived: list[deque[Array]] = [deque(maxlen=window) for _ in self.families]

    def assign(self, seed: int, lifetime: int, index: int) -> Assignment:
        """A task of the family drawn when the segment was first asked for."""
        key = (lifetime, index)
        if key not in self._choices:
            luck = generator(seed, CHOICE, lifetime, index)
            self._choices[key] = int(luck.choice(len(self.families), p=self.chances()))
        rng = generator(seed, FRESH, lifetime, index)
        task, instance_seed = self.draw(rng, self._choices[key])
        return Assignment(task, instance_seed, index)

    def chances(self) -> Array:
        """The chance of every family in the next draw."""
        values = np.array([self._value(lived) for lived in self._lived])
        total = values.sum()
        shares = values / total if total > 0 else np.full(len(values), 1 / len(values))
        chances = self.explore / len(values) + (1 - self.explore) * shares
        return np.asarray(chances / chances.sum())

    def observe(self, episodes: Iterable[EpisodeRecord]) -> None:
        """Take note of finished episodes; those without a reference or cut short tell nothing."""
        for record in episodes:
            family = self._choices.get((record.lifetime, record.segment))
            returns = (record.optimal_return, record.achieved_return, record.floor_return)
            told = np.array(returns)
            if family is not None and not record.is_partial and np.isfinite(told).all():
                self._lived[family].append(told)

    def state_dict(self) -> dict[str, Any]:
        """All choices `[n, 3]` (lifetime, segment, family) and what was measured, per family."""
        choices = [(*key, family) for key, family in self._choices.items()]
        return {
            "choices": np.array(choices, np.int64).reshape(-1, 3),
            "lived": [np.array(lived, np.float64).reshape(-1, 3) for lived in self._lived],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self._choices = {(b, k): family for b, k, family in np.asarray(state["choices"]).tolist()}
        self._lived = [deque(lived, maxlen=self.window) for lived in state["lived"]]

    def _value(self, lived: Sequence[Array]) -> float:
        if len(lived) < self.window // 2:
            return UNKNOWN
        if self.by == "regret":
            return _regret(np.array(lived))
        early, late = np.array_split(np.array(lived), 2)
        return abs(_regret(late) - _regret(early))


def _regret(lived: Array) -> float:
    """Normalised regret within 0 and 1; that of a random policy where nothing can be earned."""
    best, achieved, floor = lived.T
    if np.mean(best - floor) <= 0:
        return UNKNOWN
    return float(np.clip(pooled_regret(best, achieved, floor), 0.0, 1.0))
