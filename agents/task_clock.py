"""When a continual-learning strategy acts: where tasks end, or every so many updates.

    task_end   once every lifetime has ended a task since the last time (privileged: the true ends,
               which the agent does not see)
    n          at every n-th update

Lifetimes that change their tasks together, as on a stream whose segments last so many steps, give
one time per task; those that do not give one per round of tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from .ranks import from_all_ranks
from .shared_lives import joined, share
from .trajectory import Trajectory

When = Literal["task_end"] | int


class TaskClock:
    """Counts slices; raises ValueError naming `strategy.at` for an impossible one."""

    def __init__(self, at: When) -> None:
        if at != "task_end" and (isinstance(at, str) or at < 1):
            raise ValueError(
                f"strategy.at: expected task_end or at least 1 (every n-th update), got {at!r}"
            )
        self.at = at
        self.updates = 0
        self.ended: Tensor | None = None  # bool [B]: a task has ended since the last time

    def strikes(self, trajectory: Trajectory) -> bool:
        """Whether it is time, one more slice lived."""
        self.updates += 1
        if self.at != "task_end":
            return self.updates % self.at == 0
        ended = trajectory.steps["task_end"].any(1)
        if self.ended is not None and self.ended.shape == ended.shape:
            ended = ended | self.ended.to(ended.device)
        now = all(from_all_ranks(bool(ended.all())))
        self.ended = torch.zeros_like(ended) if now else ended
        return now

    def state_dict(self) -> dict[str, Any]:
        known = [ended for ended in from_all_ranks(self.ended) if ended is not None]
        return {"updates": self.updates, "ended": joined(known) if known else None}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        self.updates, ended = saved["updates"], saved["ended"]
        self.ended = None if ended is None else share(ended)


def steps_of_ended_tasks(trajectory: Trajectory) -> Tensor:
    """Bool `[B, T]`: the steps up to a lifetime's last task end in the slice, all where none is."""
    task_end: Tensor = trajectory.steps["task_end"]
    before = task_end.flip(1).cumsum(1).flip(1) > 0
    return before | ~task_end.any(1, keepdim=True)
