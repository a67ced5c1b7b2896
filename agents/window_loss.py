"""What a stretch of life lost, for several lives of the same stretch held against one another.

    regret    mean normalised regret of the episodes that ended in it, all lives on the same gaps
    return    minus the reward per step of those episodes, where tasks have no floor and ceiling

Lower is better in both. Episodes count where they end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from sojourn.envs import Array, EpisodeRecord

from .life_regret import grouped_regret

Measure = Literal["regret", "return"]
"""What a window of lives is judged by."""


def window_losses(lives: Sequence[Sequence[EpisodeRecord]], measure: Measure) -> Array:
    """The loss of every life `[num_lives]`; NaN where none of its episodes tells."""
    if measure == "regret":
        records = [record for life in lives for record in life]
        group = np.repeat(np.arange(len(lives)), [len(life) for life in lives])
        return grouped_regret(records, group, len(lives))
    return np.array([_negative_rate(life) for life in lives])


def _negative_rate(life: Sequence[EpisodeRecord]) -> float:
    steps = sum(record.num_steps for record in life)
    return -sum(record.total_return for record in life) / steps if steps else float("nan")
