"""What a reference rests on: who was measured, on which seeds, how often, under which settings.

A policy that is chosen on some episodes and estimated on the same ones looks better than it is
(the best of five equal ones by half a standard deviation and more), so the two never share a seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .interface import Array


@dataclass(frozen=True)
class Evidence:
    """Root seeds and numbers behind a measured floor and ceiling.

    `training_seeds` made the candidates, `selection_seeds` chose one of them, `estimation_seeds`
    gave the ceiling from `num_ceiling` episodes and `floor_seeds` the floor from `num_floor`.
    `config_hash` is that of the settings of the candidates, empty where nothing was trained. Raises
    ValueError where a seed both chose and estimated.
    """

    num_ceiling: int
    num_floor: int
    estimation_seeds: tuple[int, ...] = ()
    floor_seeds: tuple[int, ...] = ()
    selection_seeds: tuple[int, ...] = ()
    training_seeds: tuple[int, ...] = ()
    config_hash: str = ""

    def __post_init__(self) -> None:
        shared = set(self.selection_seeds) & set(self.estimation_seeds)
        if shared:
            raise ValueError(
                f"estimation_seeds: expected none of the selection_seeds, got {sorted(shared)}"
            )
        for name in ("num_ceiling", "num_floor"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}: expected at least 0, got {getattr(self, name)}")


@dataclass(frozen=True)
class Informed:
    """Best expected return of who knows the layouts and rules but not what the task hides.

    `first` is that of the first episode of a task, `later` of those after it, pooled over
    instances. `first_is_exact`, `later_is_exact`: whether this is the optimum of such an episode by
    itself or only a bound from above. `hidden` says what has to be found out.
    """

    first: float
    later: float
    first_is_exact: bool
    later_is_exact: bool
    hidden: str
    first_error: float = 0.0
    later_error: float = 0.0


def standard_error(values: Array) -> float:
    """Of the mean of independent values `[n]`."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))
