"""What a reward counts where a task has no floor and ceiling: one running deviation per task.

    c = 1 / s.d. of what the episodes of the task have brought so far,     1 while that is unknown

An episode brings its undiscounted return, of a task measured by rate its reward per step: the units
in which floor and ceiling would be told. Moments are merged slice by slice and nothing is ever
forgotten: the deviation of an average that forgets goes to 0, and c beyond all bounds, where a task
is played alike for long. Sources: Chan, Golub & LeVeque 1983 (merging); scaling by a running
deviation as in `gymnasium.wrappers.NormalizeReward`, by whole returns here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from tensordict import TensorDict
from torch import Tensor

from sojourn.envs import EpisodeRecord

from .trajectory import task_number

MIN_EPISODES = 8  # the deviation of fewer may by chance be far too small, and the scale too large
MIN_SHARE = 1e-6  # of the mean: what is less is the rounding of equal returns
MIN_DEVIATION = 1e-30  # float32 can hold one over it
MOST_TASKS = 1000  # an endless life may meet ever new names


@dataclass(frozen=True)
class Moments:
    """Number, mean and sum of squared deviations of what has been seen."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def with_values(self, values: Sequence[float]) -> Moments:
        """Those of all together."""
        # Sorted: which rank lived an episode must not matter.
        new = np.sort(np.asarray(values, np.float64))
        mean, count = float(new.mean()), self.count + len(new)
        apart, share = mean - self.mean, len(new) / count
        squares = float(np.square(new - mean).sum()) + apart * apart * share * self.count
        return Moments(count, self.mean + apart * share, self.squares + squares)

    @property
    def scale(self) -> float | None:
        """1 / s.d.; None while it is unknown: few values, or all alike."""
        deviation = math.sqrt(self.squares / max(1, self.count))
        differ = deviation > max(MIN_SHARE * abs(self.mean), MIN_DEVIATION)
        return 1.0 / deviation if differ and self.count >= MIN_EPISODES else None


class RewardScales:
    """The scale of every task without a reference, by the name that tables group it by.

    Of more than 1000 names those that were met longest ago are forgotten.
    """

    def __init__(self) -> None:
        self._moments: dict[str, Moments] = {}
        self._scales: dict[int, float] = {}

    def add(self, episodes: Iterable[EpisodeRecord]) -> bool:
        """Take in what ended; says whether the scale of a task has become known.

        Only whole episodes without a floor count: not what was cut short or broke, and nothing that
        is not finite.
        """
        found: dict[str, list[float]] = {}
        for record in episodes:
            if math.isnan(record.floor_return) and _is_whole(record):
                length = record.num_steps if record.unit == "rate" else 1
                found.setdefault(record.task, []).append(record.total_return / length)
        become_known = False
        for name in sorted(found):
            before = self._moments.pop(name, Moments())
            now = self._moments[name] = before.with_values(found[name])
            become_known |= before.scale is None and now.scale is not None
        if found:
            self._renew()
        return become_known

    def of(self, steps: TensorDict) -> Tensor:
        """What every reward of `steps` `[B, T]` counts: `reward_scale`, or where that is NaN the
        scale that its `task` has here.
        """
        scale: Tensor = steps["reward_scale"]
        unknown = torch.isnan(scale)
        if not unknown.any():
            return scale
        task, filled = steps["task"], torch.where(unknown, 1.0, scale)
        for number in task[unknown].unique().tolist():
            own = self._scales.get(number)
            if own is not None:
                filled = torch.where(unknown & (task == number), own, filled)
        return filled

    def restart(self) -> None:
        """Forget all episodes."""
        self.load_state_dict({})

    def state_dict(self) -> dict[str, list[float]]:
        """Number, mean and squares by name; the one met last is last."""
        return {n: [float(m.count), m.mean, m.squares] for n, m in self._moments.items()}

    def load_state_dict(self, saved: Mapping[str, Sequence[float]]) -> None:
        """Take over what `state_dict` gave."""
        self._moments = {
            name: Moments(int(count), mean, squares)
            for name, (count, mean, squares) in saved.items()
        }
        self._renew()

    def _renew(self) -> None:
        while len(self._moments) > MOST_TASKS:
            del self._moments[next(iter(self._moments))]
        scales = ((task_number(name), m.scale) for name, m in self._moments.items())
        self._scales = {number: scale for number, scale in scales if scale is not None}


def _is_whole(record: EpisodeRecord) -> bool:
    lived = record.status != "failed" and not record.is_partial
    return lived and math.isfinite(record.total_return)
