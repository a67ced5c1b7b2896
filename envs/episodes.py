"""What a step of a crowd hands over: the transition of every row and the episodes that ended."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .interface import Array, Observation
from .regret import episode_reference
from .rows import RowCounters
from .simulator import Simulator
from .task import Reference, Segment, Unit

Status = Literal["terminated", "truncated", "cut", "failed", "running"]


@dataclass(slots=True)
class EpisodeRecord:
    """One episode of one lifetime, in plain Python scalars; nobody changes it.

    `segment` counts the segments of the lifetime, `episode` those of the segment, `start_step` the
    steps that the lifetime had lived before. Segments with equal `task_index` play the same task.
    `total_return` is the undiscounted sum of rewards, `expected_return` the sum of their
    expectations (NaN where unknown). `optimal_return` is the best return of the instance (the
    pooled ceiling where only that is known), `floor_return` that of the random policy (of the
    instance where analytic, else pooled); NaN where no valid reference exists. An episode is `cut`
    where its segment ran out of steps, `failed` where its environment broke (all returns to
    compare with are NaN then). `informed_return` is the best expected return of the instance for
    who meets the task in this segment and does not know what it hides (NaN where nothing is hidden
    or nobody knows).
    """

    # Not frozen: a crowd of short episodes would spend a fifth of its time on setting the fields.

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
    informed_return: float = float("nan")

    @property
    def achieved_return(self) -> float:
        """What regret is measured on: the expected return, else the sampled one."""
        known = math.isfinite(self.expected_return)
        return self.expected_return if known else self.total_return

    @property
    def is_partial(self) -> bool:
        """Whether the return is that of a part, which no whole episode can be compared with."""
        return self.status in ("cut", "running") and self.unit != "rate"


@dataclass(frozen=True)
class CrowdStep:
    """One step of every row; arrays `[num_lifetimes]`.

    `observation` is what every row sees next, already of the next episode where one ended;
    `final_observation` (None when no episode ended) is what the rows saw before that. `reward` and
    `expected_reward` (NaN unknown) are float32; `terminated`, `truncated`, `task_end` and
    `lifetime_end` bool. `reward_scale` float32 is 1 / (ceiling - floor) of the task that gave the
    reward, NaN where it has no valid reference. A cut or failed episode counts as truncated.
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


class InstanceReturns(NamedTuple):
    """What is known of a running episode's instance; NaN: nothing."""

    optimal: float
    floor: float
    informed: float


UNKNOWN = InstanceReturns(math.nan, math.nan, math.nan)


def instance_returns(
    simulator: Simulator, row: int, episode: int, reference: Reference | None
) -> InstanceReturns:
    """How well the episode that a row just began can go, as episode `episode` of its task."""
    hides = reference is not None and reference.informed is not None
    informed = simulator.informed_return(row, episode) if hides else math.nan
    return InstanceReturns(simulator.optimal_return(row), simulator.floor_return(row), informed)


def episode_record(
    counters: RowCounters,
    row: int,
    segment: Segment,
    reference: Reference | None,
    returns: InstanceReturns,
    status: Status,
) -> EpisodeRecord:
    """The record of a row's episode so far; `reference` is the task's where that is valid."""
    task, num_steps = segment.task, int(counters.episode_step.item(row))
    optimal, floor, informed = returns
    if status == "failed":
        optimal = floor = informed = math.nan
    else:
        optimal, floor = episode_reference(reference, task.unit, num_steps, optimal, floor)
    return EpisodeRecord(
        counters.lifetime.item(row),
        counters.segment.item(row),
        task.name,
        segment.task_index,
        task.unit,
        counters.episode.item(row),
        counters.lifetime_step.item(row) - num_steps,
        num_steps,
        counters.total_return.item(row),
        counters.expected_return.item(row),
        optimal,
        floor,
        status,
        informed,
    )
