"""What the meta-trainer may do beside PPO on whole slices; nothing by default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sojourn.envs import check_choice

from .agent import Agent
from .auxiliary import Auxiliary
from .privileged_critic import PrivilegedCritic
from .slice_start import SliceStart
from .strategy import Learner, Strategy
from .transfer import Transfer


@dataclass(frozen=True)
class Extras:
    """Additional signals and choices of how slices are joined.

    `transfer` measures and may credit what a task leaves for the next one; `auxiliary` makes
    self-supervised losses for an agent, `critic` one that values with the simulator's knowledge,
    and `strategy` a continual-learning strategy for a learner. `slice_start` says from which memory
    a slice starts under new weights; its staleness is measured at every `staleness_every`-th update
    (0: never). `gradient_window` cuts gradients after so many steps of a slice (None: nowhere).
    """

    transfer: Transfer | None = None
    auxiliary: Callable[[Agent], Auxiliary] | None = None
    slice_start: SliceStart = "keep"
    staleness_every: int = 0
    gradient_window: int | None = None
    critic: Callable[[Agent], PrivilegedCritic] | None = None
    strategy: Callable[[Learner], Strategy] | None = None

    def __post_init__(self) -> None:
        check_choice("extras.slice_start", self.slice_start, SliceStart)
        if self.staleness_every < 0:
            raise ValueError(
                f"extras.staleness_every: expected 0 (never) or more, got {self.staleness_every}"
            )
        if self.gradient_window is not None and self.gradient_window < 1:
            raise ValueError(
                f"extras.gradient_window: expected at least 1 step, got {self.gradient_window}"
            )
