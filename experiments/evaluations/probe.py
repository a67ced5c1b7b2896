"""What memories know: snapshots of a life, tried on every task of that life.

Every probe episode starts from the snapshot and leaves it as it was; inside the episode the memory
works on (`episode`), or it only reads (`frozen`). Probes of one task differ in their memory alone:
the same instance, the same luck.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from tensordict import TensorDict

from sojourn.agents import Agent, Ending, Restored, SharedLuck, Snapshots
from sojourn.envs import Length, Stream, replay

from ..episodes import Array
from ..measures.forgetting import Matrix
from ..measures.lives import Lives
from .frozen_lives import ROWS_AT_ONCE, Budget, Condition, lives

Writes = Literal["episode", "frozen"]
LONGEST_PROBE = 100_000  # steps of a lifetime; its one segment ends it before


@dataclass(frozen=True)
class Probes:
    """Lifetimes 0 .. `num_lives` - 1 of a stream, their first `num_segments` segments.

    Probe n tries the memory of age n // P on place n mod P: (lifetime, first segment of a task).
    `column` is the place's task of its lifetime, in the order of first visits.
    """

    stream: Stream
    places: Sequence[tuple[int, int]]
    column: Sequence[int]
    played: Array

    @classmethod
    def of(cls, stream: Stream, num_lives: int, num_segments: int) -> Probes:
        """The tasks met in these lives."""
        places: list[tuple[int, int]] = []
        column: list[int] = []
        played = np.full((num_lives, num_segments), -1)
        for life in range(num_lives):
            numbers: dict[int, int] = {}
            for segment in range(num_segments):
                task = stream.segment(life, segment).task_index
                if task not in numbers:
                    numbers[task] = len(numbers)
                    places.append((life, segment))
                    column.append(numbers[task])
                played[life, segment] = numbers[task]
        return cls(stream, places, column, played)

    @property
    def count(self) -> int:
        """Number of probes: every task of a life at every age."""
        return len(self.places) * (int(self.played.shape[1]) + 1)

    def memories(self, agent: Agent, snapshots: Snapshots, numbers: Sequence[int]) -> TensorDict:
        """The memories that the probes of these numbers start from."""
        ages = [(self.places[n % len(self.places)][0], n // len(self.places)) for n in numbers]
        born = sum(age == 0 for _, age in ages)  # ages never fall from probe to probe
        parts = [agent.init_state(born)] if born else []
        parts += [snapshots.stack(ages[born:])] if born < len(ages) else []
        return torch.cat(parts)

    def matrix(self, probed: Lives) -> Matrix:
        """Mean score of every probe; NaN where a task has no reference or no episode ended."""
        scores = np.full((len(self.played), self.played.shape[1] + 1, max(self.column) + 1), np.nan)
        for number, score in enumerate(mean_scores(probed, self.count).tolist()):
            age, place = divmod(number, len(self.places))
            life = self.places[place][0]
            scores[life, age, self.column[place]] = score
        return Matrix.in_order(scores, self.played)


def mean_scores(probed: Lives, count: int) -> Array:
    """Mean score `[count]` of lifetimes 0 .. `count` - 1; NaN where nothing is known of one."""
    score = 1.0 - probed.regret()
    known = np.isfinite(score)
    total = np.bincount(probed.lifetime[known], score[known], minlength=count)
    number = np.bincount(probed.lifetime[known], minlength=count)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def probe(
    probes: Probes, agent: Agent, snapshots: Snapshots, num_episodes: int, writes: Writes, seed: int
) -> Iterator[tuple[int, list[Ending]]]:
    """Live every probe for `num_episodes` episodes (a task with a length of its own for that)."""
    again = replay(probes.stream, probes.places, Length(num_episodes))
    luck = SharedLuck(seed, period=len(probes.places))
    for first in range(0, probes.count, ROWS_AT_ONCE):
        numbers = range(first, min(first + ROWS_AT_ONCE, probes.count))
        memories = probes.memories(agent, snapshots, numbers)
        restore = partial(Restored, memories, first, writes == "episode")
        condition = Condition(agent, "episode", False, restore)
        budget = Budget(len(numbers), LONGEST_PROBE, 1)
        yield from lives(condition, again, budget, luck, first)
