"""Lifetimes lived by frozen copies of an agent, on a stream it was never trained on.

The live agent, its rollout and every random generator of the training run stay untouched. All
conditions live the same segments with the same luck.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sojourn.agents import (
    Actor,
    Agent,
    Ending,
    Intervention,
    MemoryReset,
    Moment,
    OraclePolicy,
    Rollout,
    SharedLuck,
)
from sojourn.envs import Crowd, Stream

from ..episodes import record_row
from ..settings import Settings
from ..tables import Cell

ROWS_AT_ONCE = 256
SLICE_STEPS = 100

# Numbers that derive the root seeds of evaluation from the run's own.
EVALUATION_STREAM, EVALUATION_LUCK = 2, 3


@dataclass(frozen=True)
class Budget:
    """How much is lived: `num_lifetimes` lifetimes for at most `steps` steps each.

    With `segments` a lifetime counts until it has so many; they are lived to the end as far as the
    steps reach.
    """

    num_lifetimes: int
    steps: int
    segments: int | None = None

    def last_segment(self, stream: Stream, lifetime: int) -> int | None:
        """How many segments of a lifetime can count; None where only the steps limit them."""
        limits = [n for n in (self.segments, stream.num_segments(lifetime)) if n is not None]
        return min(limits, default=None)


@dataclass(frozen=True)
class Seat:
    """An actor that must know the crowd it plays in: `take` makes it for one."""

    take: Callable[[Crowd], Actor]


@dataclass(frozen=True)
class Condition:
    """Who lives, where its memory resets, and what is done to it; `intervene` makes the
    intervention for one crowd.
    """

    actor: Actor | Seat
    memory_reset: MemoryReset = "lifetime"
    greedy: bool = False
    intervene: Callable[[], Intervention] | None = None


def lives(
    condition: Condition,
    stream: Stream,
    budget: Budget,
    luck: SharedLuck | int,
    first_lifetime: int = 0,
) -> Iterator[tuple[int, list[Ending]]]:
    """Live the budget; every lifetime starts from the learned initial memory.

    Yields (steps lived over all lifetimes, episodes that ended or were running at the end) after
    every slice, so that the caller may stop in between. `luck` is shared by place, or a seed of
    generators; lifetimes count from `first_lifetime`.
    """
    done, end = 0, first_lifetime + budget.num_lifetimes
    for first in range(first_lifetime, end, ROWS_AT_ONCE):
        rows = range(first, min(first + ROWS_AT_ONCE, end))
        last = {row: budget.last_segment(stream, row) for row in rows}
        waiting = set(rows)
        crowd = Crowd(stream, len(rows), first_lifetime=first)
        seed = luck + first if isinstance(luck, int) else 0
        shared = None if isinstance(luck, int) else luck
        seat = condition.actor
        actor = seat.take(crowd) if isinstance(seat, Seat) else seat
        rollout = Rollout(actor, crowd, condition.memory_reset, seed=seed, greedy=condition.greedy)
        intervention = condition.intervene() if condition.intervene else None
        for lived in range(0, budget.steps, SLICE_STEPS):
            length = min(SLICE_STEPS, budget.steps - lived)
            endings = rollout.live(length, shared, intervention)
            done += len(rows) * length
            waiting -= _finished(endings, last)
            yield done, _counted(endings, last)
            if not waiting:
                break
        if intervention is not None:  # a look at what the last step left
            intervention.treat(rollout.state, Moment.of(crowd))
        yield done, _counted([Ending(e, False) for e in crowd.running_episodes()], last)
        crowd.close()
        if isinstance(actor, OraclePolicy):
            actor.close()


def _finished(endings: list[Ending], last: dict[int, int | None]) -> set[int]:
    return {
        e.record.lifetime
        for e in endings
        if e.ends_segment and e.record.segment + 1 == last.get(e.record.lifetime)
    }


def _counted(endings: list[Ending], last: dict[int, int | None]) -> list[Ending]:
    """The episodes of the lifetimes and segments that were asked for."""
    kept = []
    for ending in endings:
        record = ending.record
        limit = last.get(record.lifetime, 0)
        if limit is None or record.segment < limit:
            kept.append(ending)
    return kept


def frozen_copy(agent: Agent) -> Agent:
    """The agent as it is now, its parameters out of reach of any training."""
    return copy.deepcopy(agent).requires_grad_(False).eval()


def evaluate(
    agent: Agent, stream: Stream, settings: Settings, luck_seed: int
) -> Iterator[tuple[int, list[Ending]]]:
    """Live what `settings.evaluation` asks for, as the run itself lives."""
    budget = Budget(settings.evaluation.num_lifetimes, settings.evaluation.steps)
    condition = Condition(frozen_copy(agent), settings.memory_reset)
    return lives(condition, stream, budget, luck_seed)


def ending_row(ending: Ending, step: int) -> dict[str, Cell]:
    """A row of a table of lives: the record, and whether its segment ended with it."""
    return record_row(ending.record, step) | {"ends_segment": int(ending.ends_segment)}
