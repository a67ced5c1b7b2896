"""The conditions an agent is evaluated under: its memory as it is, and the controls beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sojourn.agents import Agent, Exchanged, Frozen, Intervention, RandomPolicy, Snapshots, Watch
from sojourn.envs import Stream

from .errors import UsageError, hint
from .evaluation import Budget, Condition

CONDITIONS = {
    "carried": "the memory goes through the whole lifetime",
    "reset_task": "the reset twin: it starts anew at every true task boundary",
    "reset_episode": "it starts anew at every episode",
    "frozen": "it reads and never writes: the learned initial memory alone",
    "shuffled": "at every task boundary it becomes another lifetime's of the same age",
    "half_life": "it is not written any more from the middle of the lifetime on",
    "random": "no memory: the uniform random policy, the floor of regret",
}


@dataclass(frozen=True)
class Half:
    """The middle of a lifetime: in segments where their number is known, else in steps."""

    start: int
    in_segments: bool

    @classmethod
    def of(cls, stream: Stream, budget: Budget) -> Half:
        """The middle of what a budget lets a lifetime of the stream live."""
        limits = [budget.segments, stream.lifetime_segments]
        known = [limit for limit in limits if isinstance(limit, int)]
        if known:
            return cls((min(known) + 1) // 2, in_segments=True)
        return cls(budget.steps // 2, in_segments=False)


def checked_conditions(names: Sequence[str]) -> tuple[str, ...]:
    """The names in the order of `CONDITIONS`; raises UsageError for an unknown or lonely one."""
    for name in names:
        if name not in CONDITIONS:
            raise UsageError(f"conditions: no such condition {name!r}; {hint(name, CONDITIONS)}")
    if "carried" not in names:
        raise UsageError("conditions: carried is missing, which all others are compared with")
    return tuple(name for name in CONDITIONS if name in names)


def condition(
    name: str, agent: Agent, stream: Stream, budget: Budget, snapshots: Snapshots, greedy: bool
) -> Condition:
    """A condition by name; `carried` fills the snapshots that `shuffled` takes memories from."""
    if name == "random":
        return Condition(RandomPolicy(stream.interface))
    if name.startswith("reset_"):
        return Condition(agent, "task" if name == "reset_task" else "episode", greedy)
    half = Half.of(stream, budget)
    makers: dict[str, Callable[[], Intervention] | None] = {
        "carried": None if agent.memory.grows else lambda: Watch(snapshots),
        "frozen": Frozen,
        "shuffled": lambda: Exchanged(snapshots, range(budget.num_lifetimes)),
        "half_life": lambda: Frozen(half.start, "segments" if half.in_segments else "steps"),
    }
    return Condition(agent, "lifetime", greedy, makers[name])


def left_out(names: Sequence[str], agent: Agent, budget: Budget) -> dict[str, str]:
    """Conditions that cannot be lived here, and why."""
    reasons = {}
    if "shuffled" in names:
        if agent.memory.grows:
            reasons["shuffled"] = "a memory that grows with every token cannot change lives"
        elif budget.num_lifetimes < 2:
            reasons["shuffled"] = "it takes at least two lifetimes"
    return reasons
