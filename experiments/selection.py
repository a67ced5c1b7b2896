"""Which checkpoint is the best: the one whose stretch of life cost least regret.

    best = argmin over checkpoints of the mean regret per update since the last multiple of
    `checkpoint_every`

Where no task of the stretch has a reference another loss, such as minus the return, stands in; any
regret goes before it. Interrupts and ends between two multiples choose nothing, so that a resumed
run chooses what the unbroken one does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from . import checkpoint

Kind = Literal["regret", "loss"]


@dataclass(frozen=True)
class Candidate:
    """A checkpoint by its step, and the mean `value` of its stretch."""

    step: int
    kind: Kind
    value: float

    def beats(self, other: Candidate | None) -> bool:
        """Whether it is to be kept in the place of `other`; of two equals the newer one is."""
        return other is None or (self.kind == "loss", self.value) <= (
            other.kind == "loss",
            other.value,
        )


class Selection:
    """Sums of the stretch that is being lived, its last candidate and the best one so far."""

    def __init__(self) -> None:
        self.best: Candidate | None = None
        self._newest: Candidate | None = None
        self._sums: dict[str, float] = {}
        self._begin()

    def _begin(self) -> None:
        self._sums = {"regret": 0.0, "num_regret": 0, "loss": 0.0, "num_loss": 0}

    def add(self, regret: float, loss: float) -> None:
        """Numbers of one update; NaN where it tells nothing."""
        for name, value in (("regret", regret), ("loss", loss)):
            if math.isfinite(value):
                self._sums[name] += value
                self._sums[f"num_{name}"] += 1

    def end_stretch(self, step: int) -> None:
        """Judge the checkpoint of `step`, and begin the next stretch."""
        kinds: tuple[Kind, ...] = ("regret", "loss")
        for kind in kinds:
            count = self._sums[f"num_{kind}"]
            if count:
                self._newest = Candidate(step, kind, self._sums[kind] / count)
                if self._newest.beats(self.best):
                    self.best = self._newest
                break
        self._begin()

    @property
    def best_step(self) -> int | None:
        """Step of the best checkpoint; None before the first stretch has ended."""
        return None if self.best is None else self.best.step

    def state_dict(self) -> dict[str, Any]:
        """Everything, in plain values."""
        found = {"best": self.best, "newest": self._newest}
        named = {name: None if one is None else asdict(one) for name, one in found.items()}
        return named | {"sums": dict(self._sums)}

    def load_state_dict(self, saved: Mapping[str, Any], checkpoints: Path) -> None:
        """Take over, and point `best` of the folder where it then pointed; a checkpoint of an
        earlier version has nothing and begins anew.

        The best of then may be gone, where a run goes on from an older checkpoint than its newest.
        """
        if saved:
            self._sums = dict(saved["sums"])
            self.best, self._newest = (
                None if saved[name] is None else Candidate(**saved[name])
                for name in ("best", "newest")
            )
        kept = {checkpoint.step_of(path) for path in checkpoint.newest_first(checkpoints)}
        if self.best is not None and self.best.step not in kept:
            newest = self._newest
            self.best = newest if newest is not None and newest.step in kept else None
        checkpoint.mark_best(checkpoints, self.best_step)
