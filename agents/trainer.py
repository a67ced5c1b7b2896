"""What every outer trainer is to the loop: one iteration at a time, and a state to resume from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from sojourn.envs import EpisodeRecord

from .rollout import Rollout
from .trajectory import Trajectory

Seen = Callable[[Trajectory], None]


@dataclass(frozen=True)
class Iteration:
    """What one outer iteration tells: metrics by name, and the episodes that ended in it."""

    metrics: dict[str, float]
    episodes: list[EpisodeRecord]


class Trainer(Protocol):
    """Improves the outer parameters of an agent by living.

    `keeps_slices`: whether a trajectory is there to look at between living and learning.
    """

    keeps_slices: bool

    def check(self, rollout: Rollout) -> None:
        """Raise ValueError where nothing can be learned from these lives, before any is lived."""

    def iterate(self, rollout: Rollout, num_steps: int, progress: float, seen: Seen) -> Iteration:
        """Live `num_steps` steps in as many lifetimes as `rollout` has, and learn from them.

        `progress` in [0, 1] drives the schedules; `seen` is called with the slice, if one is kept,
        before anything is learned from it.
        """

    def state_dict(self) -> dict[str, Any]:
        """Everything a later process needs to go on bit for bit, beside the agent's weights."""

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""


def unseen(trajectory: Trajectory) -> None:
    """Nobody looks at the slice."""
    del trajectory
