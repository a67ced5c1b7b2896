"""A guard over outer parameters that keep learning: what has become worse is taken back.

    worsening d of the candidate over the accepted parameters (`Judge`), once per window:
    d > tolerance     candidate := accepted, with the trainer's state of that time
    d <= tolerance    accepted := candidate
    d unknown         the candidate goes on, the accepted stay

The memory is not taken back: it is life, and goes on under the parameters that are in force.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from .agent import Agent
from .judges import Judge, LivedWindow
from .trainer import Trainer

Outcome = Literal["accepted", "rolled_back", "unknown", "broken"]


@dataclass(frozen=True)
class Verdict:
    """What became of a candidate, and by how much it was worse (NaN: unknown)."""

    outcome: Outcome
    worsening: float


class Guard:
    """Holds the last accepted parameters of `agent` and the state `trainer` had with them.

    `tolerance` is in units of the judge's loss. Raises ValueError for a negative one.
    """

    def __init__(self, agent: Agent, trainer: Trainer, judge: Judge, tolerance: float) -> None:
        if not tolerance >= 0.0:
            raise ValueError(f"tolerance: expected a number from 0 on, got {tolerance}")
        self.agent, self.trainer, self.judge, self.tolerance = agent, trainer, judge, tolerance
        self.accepted = copy.deepcopy(agent).requires_grad_(False).eval()
        self._trainer_then = copy.deepcopy(trainer.state_dict())

    def judged(self, lived: LivedWindow) -> Verdict:
        """Accept the candidate after a window, or take it back."""
        if not all(torch.isfinite(p).all() for p in self.agent.parameters()):
            return self.broken()
        worsening = self.judge.worsening(lived, self.agent, self.accepted)
        if not np.isfinite(worsening):
            return Verdict("unknown", worsening)
        if worsening > self.tolerance:
            self._restore()
            return Verdict("rolled_back", worsening)
        self.accepted.load_state_dict(self.agent.state_dict())
        self._trainer_then = copy.deepcopy(self.trainer.state_dict())
        return Verdict("accepted", worsening)

    def broken(self) -> Verdict:
        """Take back a candidate that is not finite any more."""
        self._restore()
        return Verdict("broken", float("nan"))

    def _restore(self) -> None:
        self.agent.load_state_dict(self.accepted.state_dict())
        self.trainer.load_state_dict(copy.deepcopy(self._trainer_then))

    def state_dict(self) -> dict[str, Any]:
        """The accepted parameters, the trainer's state with them, and what the judge remembers."""
        return {
            "accepted": self.accepted.state_dict(),
            "trainer": self._trainer_then,
            "judge": self.judge.state_dict(),
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.accepted.load_state_dict(saved["accepted"])
        self._trainer_then = copy.deepcopy(saved["trainer"])
        self.judge.load_state_dict(saved["judge"])
