"""Whether outer parameters have become worse: by re-living recent life, or by what was lived.

Replayed   d = L(candidate) - L(accepted), both re-living the last windows from where these
           began: same memory, same running episode, same segments, same luck
Recent     d = L(last window) - mean of L over the windows before it
Trusting   d = 0: nothing is ever taken back
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from sojourn.envs import EpisodeRecord

from .agent import Agent
from .rollout import Rollout
from .window_loss import Measure, window_losses


@dataclass(frozen=True)
class LivedWindow:
    """A window of life: the rollout's `state_dict` where it began, the steps that every lifetime
    lived in it, and the episodes that ended in it.
    """

    start: dict[str, Any]
    num_steps: int
    records: Sequence[EpisodeRecord]


class Judge(Protocol):
    """Says by how much a candidate is worse than the accepted parameters."""

    def worsening(self, lived: LivedWindow, candidate: Agent, accepted: Agent) -> float:
        """In units of the loss; NaN where the window does not tell."""

    def state_dict(self) -> dict[str, Any]:
        """What it remembers of earlier windows."""

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""


class Replayed:
    """Both agents re-live the last `num_windows` windows in `spare`, a rollout of the same stream
    and luck that nobody else lives in.

    It costs `2 num_windows` times the steps of a window. The candidate was trained on what it
    re-lives: a worsening is real, an improvement may be smaller on new tasks.
    """

    def __init__(self, spare: Rollout, num_windows: int, measure: Measure) -> None:
        if num_windows < 1:
            raise ValueError(f"num_windows: expected at least 1, got {num_windows}")
        self.spare, self.num_windows, self.measure = spare, num_windows, measure
        self.starts: list[dict[str, Any]] = []

    def worsening(self, lived: LivedWindow, candidate: Agent, accepted: Agent) -> float:
        """Loss of the candidate minus loss of the accepted, over all re-lived windows together."""
        start = {"rollout": copy.deepcopy(lived.start), "num_steps": lived.num_steps}
        self.starts = [*self.starts, start][-self.num_windows :]
        new, old = window_losses([self._relive(candidate), self._relive(accepted)], self.measure)
        return float(new - old)

    def _relive(self, agent: Agent) -> list[EpisodeRecord]:
        self.spare.agent = agent
        records: list[EpisodeRecord] = []
        for start in self.starts:
            self.spare.load_state_dict(start["rollout"])
            records += [ending.record for ending in self.spare.live(start["num_steps"])]
        return records

    def state_dict(self) -> dict[str, Any]:
        """Where the remembered windows began."""
        return {"starts": self.starts}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.starts = list(saved["starts"])


class Recent:
    """The last window against the `num_windows` before it, whatever became of their parameters.

    For lives that cannot be lived twice. Tasks that happen to be harder look like a worsening, and
    a world that stays harder stops being one after `num_windows` windows.
    """

    def __init__(self, num_windows: int, measure: Measure) -> None:
        if num_windows < 1:
            raise ValueError(f"num_windows: expected at least 1, got {num_windows}")
        self.num_windows, self.measure = num_windows, measure
        self.windows: list[list[EpisodeRecord]] = []

    def worsening(self, lived: LivedWindow, candidate: Agent, accepted: Agent) -> float:
        """Loss of the window minus the mean of those before it; NaN for the first one."""
        del candidate, accepted
        before = [record for window in self.windows for record in window]
        now, earlier = window_losses([lived.records, before], self.measure)
        self.windows = [*self.windows, list(lived.records)][-self.num_windows :]
        return float(now - earlier)

    def state_dict(self) -> dict[str, Any]:
        """The episodes of the remembered windows."""
        return {"windows": [[asdict(record) for record in window] for window in self.windows]}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.windows = [[EpisodeRecord(**row) for row in window] for window in saved["windows"]]


class Trusting:
    """Finds nothing worse."""

    def worsening(self, lived: LivedWindow, candidate: Agent, accepted: Agent) -> float:
        """Zero."""
        del lived, candidate, accepted
        return 0.0

    def state_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Nothing."""
        del saved


def restart_broken(rollout: Rollout) -> int:
    """Let memories that are not finite begin anew at the next step; returns how many there were."""
    broken = np.zeros(rollout.crowd.num_lifetimes, dtype=bool)
    for leaf in rollout.state.values(True, True):
        if leaf.is_floating_point():
            broken |= ~leaf.flatten(1).isfinite().all(1).cpu().numpy()
    rollout.pending_reset = rollout.pending_reset | broken
    return int(broken.sum())
