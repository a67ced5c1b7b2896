"""What a step of a crowd hands over: the transition of every row and the episodes that ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .interface import Array, Observation
from .regret import episode_reference
from .rows import RowCounters
from .task import Segment, Unit

Status = Literal["terminated", "truncated", "cut", "running"]


@dataclass(frozen=True)
class EpisodeRecord:
    """One episode of one lifetime, in plain Python scalars.

    `segment` counts the segments of the lifetime, `episode` those of the segment, `start_step` the
    steps that the lifetime had lived before. Segments with equal `task_index` play the same task.
    `total_return` is the undiscounted sum of rewards, `expected_return` the sum of their
    expectations (NaN where unknown). `optimal_return` is the best return of the instance (the
    pooled ceiling where only that is known), `floor_return` that of the random policy (of the
    instance where analytic, else pooled); NaN where no valid reference exists. An episode is `cut`
    where its segment ran out of steps.
    """

    lifetime: int
    segment: int
    task: str
    task_index: int
    unit: Unit
    episode: int
    start_step: int
    num_steps: int
    total_return: float
    expected_return: float
    optimal_return: float
    floor_return: float
    status: Status


@dataclass(frozen=True)
class CrowdStep:
    """One step of every row; arrays `[num_lifetimes]`.

    `observation` is what every row sees next, already of the next episode where one ended;
    `final_observation` (None when no episode ended) is what the rows saw before that. `reward` and
    `expected_reward` (NaN unknown) are float32; `terminated`, `truncated`, `task_end` and
    `lifetime_end` bool. `reward_scale` float32 is 1 / (ceiling - floor) of the task that gave the
    reward, 1 where it has no valid reference. A cut episode counts as truncated.
    """

    observation: Observation
    reward: Array
    expected_reward: Array
    terminated: Array
    truncated: Array
    task_end: Array
    lifetime_end: Array
    reward_scale: Array
    final_observation: Observation | None
    episodes: list[EpisodeRecord]


def episode_record(
    counters: RowCounters,
    row: int,
    segment: Segment,
    optimal: float,
    floor: float,
    status: Status,
) -> EpisodeRecord:
    """The record of a row's episode so far; `optimal` and `floor` of its instance, NaN unknown."""
    task, num_steps = segment.task, int(counters.episode_step[row])
    optimal, floor = episode_reference(task.reference, task.unit, num_steps, optimal, floor)
    return EpisodeRecord(
        lifetime=int(counters.lifetime[row]),
        segment=int(counters.segment[row]),
        task=task.name,
        task_index=segment.task_index,
        unit=task.unit,
        episode=int(counters.episode[row]),
        start_step=int(counters.lifetime_step[row]) - num_steps,
        num_steps=num_steps,
        total_return=float(counters.total_return[row]),
        expected_return=float(counters.expected_return[row]),
        optimal_return=optimal,
        floor_return=floor,
        status=status,
    )
