"""What outer parameters know: the checkpoints of a run, each with a fresh memory, on its own tasks.

    R[r, i] = score of checkpoint r on task i, its memory starting from the learned initial one

A task is a name where the training stream has several, else hidden parameters that come again.
Checkpoints differ in nothing but their parameters: the same instances, the same luck.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from sojourn.agents import Agent, Ending, SharedLuck
from sojourn.envs import Length, Segment, Stream, replay, task_key

from .. import checkpoint
from ..episodes import KEY, Array
from ..measures.forgetting import Matrix
from ..measures.lives import Lives
from ..tables import last_rows, read_table
from .frozen_lives import Budget, Condition, lives
from .probe import LONGEST_PROBE, mean_scores

SEARCHED = 400  # segments of a life in which its first visit to a task is looked for
MOST_TASKS = 12
MOST_LOOKED_UP = 400  # segments of a stretch of training whose tasks are told by their parameters
PLAYED = 0.05  # share of the steps of a stretch from which on it counts as training on a task


@dataclass(frozen=True)
class OuterTasks:
    """The columns: `names`, and the place of task i in life b as `places[i * num_lives + b]`.

    `by_name` tells tasks apart by name, else by hidden parameters; a stream of one name whose tasks
    never come again is one column.
    """

    stream: Stream
    names: Sequence[str]
    places: Sequence[tuple[int, int]]
    by_name: bool

    @property
    def num_lives(self) -> int:
        return len(self.places) // len(self.names)

    @classmethod
    def of(cls, stream: Stream, num_lives: int) -> OuterTasks:
        """The tasks that all of the first lives of a training stream meet."""
        by_name = len({name for name, _ in _first_visits(stream, 0, True)}) > 1
        by_name = by_name or stream.schedule.follows_agent
        found = [dict(_first_visits(stream, life, by_name)) for life in range(num_lives)]
        shared = [name for name in found[0] if all(name in places for places in found)]
        if not shared:
            only = stream.segment(0, 0).task.name
            return cls(stream, [only], [(life, 0) for life in range(num_lives)], True)
        names = shared[:MOST_TASKS]
        places = [(life, found[life][name]) for name in names for life in range(num_lives)]
        return cls(stream, names, places, by_name)

    def label(self, segment: Segment) -> str:
        """The column's name of what a segment plays."""
        return _label(segment, self.by_name)

    def matrix(self, probed: Lives, played: Array) -> Matrix:
        """Mean scores of all checkpoints; `played` bool `[num_stretches, num_tasks]`."""
        rows, tasks = len(played) + 1, len(self.names)
        scores = mean_scores(probed, rows * len(self.places))
        by_life = np.moveaxis(scores.reshape(rows, tasks, self.num_lives), 2, 0)
        return Matrix(by_life, np.broadcast_to(played, (self.num_lives, *played.shape)))

    def played(self, episodes: Path, steps: Sequence[int]) -> Array:
        """Bool `[len(steps) - 1, num_tasks]`: which tasks the run trained on between checkpoints,
        from its table of episodes.
        """
        columns = last_rows(read_table(episodes), KEY)
        found = np.zeros((len(steps) - 1, len(self.names)), bool)
        for stretch, (start, end) in enumerate(pairwise(steps)):
            if columns:
                chosen = np.flatnonzero((columns["step"] > start) & (columns["step"] <= end))
                found[stretch] = self._shares(columns, chosen) >= PLAYED
        return found

    def _shares(self, columns: Mapping[str, Array], chosen: Array) -> Array:
        """Share of the steps of these episodes that each task has, `[num_tasks]`."""
        if not self.by_name and len(chosen) > MOST_LOOKED_UP:
            chosen = chosen[np.linspace(0, len(chosen) - 1, MOST_LOOKED_UP).astype(int)]
        steps = dict.fromkeys(self.names, 0.0)
        total = 0.0
        for row in chosen.tolist():
            name = str(columns["task"][row])
            if not self.by_name:
                place = int(columns["lifetime"][row]), int(columns["segment"][row])
                name = self.label(self.stream.segment(*place))
            lived = float(columns["num_steps"][row])
            total += lived
            if name in steps:
                steps[name] += lived
        return np.array(list(steps.values())) / max(total, 1.0)


def chosen_checkpoints(folder: Path, most: int | None) -> list[Path]:
    """The checkpoints of a folder from old to new: all of them, or `most` evenly spaced ones,
    the last among them.
    """
    files = checkpoint.newest_first(folder)[::-1]
    if most is None or len(files) <= most:
        return files
    places = np.unique(np.linspace(len(files) - 1, 0, most).round().astype(int))
    return [files[place] for place in places.tolist()]


def probe_checkpoint(
    tasks: OuterTasks, row: int, agent: Agent, num_episodes: int, seed: int
) -> Iterator[tuple[int, list[Ending]]]:
    """Live all tasks with row `row` of the matrix, `num_episodes` episodes each, from a fresh
    memory that goes on from episode to episode.
    """
    again = replay(tasks.stream, tasks.places, Length(num_episodes))
    count = len(tasks.places)
    luck = SharedLuck(seed, period=count)
    budget = Budget(count, LONGEST_PROBE, 1)
    yield from lives(Condition(agent), again, budget, luck, row * count)


def _first_visits(stream: Stream, life: int, by_name: bool) -> Iterator[tuple[str, int]]:
    seen = set()
    for index in range(min(stream.num_segments(life) or SEARCHED, SEARCHED)):
        label = _label(stream.segment(life, index), by_name)
        if label not in seen:
            seen.add(label)
            yield label, index


def _label(segment: Segment, by_name: bool) -> str:
    return segment.task.name if by_name else task_key(segment.task).hex()[:8]
