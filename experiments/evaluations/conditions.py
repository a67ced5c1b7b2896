"""The conditions an agent is evaluated under: its memory as it is, and the controls beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tensordict import TensorDict

from sojourn.agents import (
    Agent,
    BanditPlayer,
    Exchanged,
    Frozen,
    Inherited,
    Intervention,
    OraclePolicy,
    RandomPolicy,
    Separated,
    Snapshots,
    Watch,
)
from sojourn.envs import (
    BernoulliBandit,
    Length,
    MovingBandit,
    Player,
    Split,
    Stream,
    players,
    unknown_best_play,
)

from ..errors import UsageError, hint
from .frozen_lives import Budget, Condition, Seat

CONDITIONS = {
    "carried": "the memory goes through the whole lifetime",
    "inherited": "the same begun with the memories that the run's own lives had at the checkpoint",
    "deterministic": "the same with the most likely action in place of a sampled one",
    "reset_task": "the reset twin: it starts anew at every true task boundary",
    "single_task": "the single-task twins: every task of a life has a memory of its own",
    "reset_episode": "it starts anew at every episode",
    "frozen": "it reads and never writes: the learned initial memory alone",
    "shuffled": "at every task boundary it becomes another lifetime's of the same age",
    "half_life": "it is not written any more from the middle of the lifetime on",
    "oracle": "no memory: best play by knowledge that no agent has, the ceiling of regret 0",
    "random": "no memory: the uniform random policy, the floor of regret",
}
# Condition -> the player of `sojourn.envs.players`, and what it does.
LEARNERS = {
    "thompson": ("thompson", "Thompson sampling from the posterior of every arm"),
    "posterior_mean": ("greedy", "the arm of the largest posterior mean"),
    "ucb": ("ucb c=0.1", "the arm of the largest mean + sqrt(0.1 ln t / n)"),
    "gittins": ("gittins", "the arm of the largest Gittins index"),
    "discounted_thompson": ("discounted thompson 0.99", "Thompson that forgets by 0.99 a pull"),
    "sliding_window_ucb": (
        "sliding-window ucb c=0.2 w=100",
        "UCB (c = 0.2) of the last 100 pulls",
    ),
}
ONE_EPISODE = Length(1)
DESCRIPTIONS = CONDITIONS | {name: said for name, (_, said) in LEARNERS.items()}
KNOWN = tuple(DESCRIPTIONS)


@dataclass(frozen=True)
class Half:
    """The middle of a lifetime: in segments where their number is known, else in steps."""

    start: int
    in_segments: bool

    @classmethod
    def of(cls, stream: Stream, budget: Budget) -> Half:
        """The middle of what a budget lets a lifetime of the stream live."""
        segments = segments_lived(stream, budget)
        if segments is not None:
            return cls((segments + 1) // 2, in_segments=True)
        return cls(budget.steps // 2, in_segments=False)


def segments_lived(stream: Stream, budget: Budget) -> int | None:
    """The most segments of a lifetime; None where only its steps are known."""
    limits = (budget.segments, stream.lifetime_segments)
    return min((limit for limit in limits if isinstance(limit, int)), default=None)


def checked_conditions(names: Sequence[str]) -> tuple[str, ...]:
    """The names in the order of `KNOWN`; raises UsageError for an unknown or lonely one."""
    for name in names:
        if name not in KNOWN:
            raise UsageError(f"conditions: no such condition {name!r}; {hint(name, KNOWN)}")
    if "carried" not in names:
        raise UsageError("conditions: carried is missing, which all others are compared with")
    return tuple(name for name in KNOWN if name in names)


def offered(stream: Stream) -> tuple[str, ...]:
    """All conditions, with the players that know this kind of stream where there are any."""
    return (*CONDITIONS, *(name for name in LEARNERS if name in learners(stream)))


def condition(
    name: str,
    agent: Agent,
    stream: Stream,
    budget: Budget,
    snapshots: Snapshots,
    greedy: bool,
    inheritance: TensorDict | None = None,
) -> Condition:
    """A condition by name; `carried` fills the snapshots that `shuffled` takes memories from, and
    `inherited` begins with `inheritance`.
    """
    if name == "random":
        return Condition(RandomPolicy(stream.interface))
    if name == "oracle":
        return Condition(Seat(OraclePolicy))
    if name in LEARNERS:
        return Condition(BanditPlayer(learners(stream)[name], stream.interface), "task")
    if name == "single_task":
        return Condition(agent, "task", greedy, lambda: Separated(stream))
    if name.startswith("reset_"):
        return Condition(agent, "task" if name == "reset_task" else "episode", greedy)
    half = Half.of(stream, budget)
    makers: dict[str, Callable[[], Intervention] | None] = {
        "carried": None if agent.memory.grows else lambda: Watch(snapshots),
        "inherited": None if inheritance is None else lambda: Inherited(inheritance),
        "deterministic": None,
        "frozen": Frozen,
        "shuffled": lambda: Exchanged(snapshots, range(budget.num_lifetimes)),
        "half_life": lambda: Frozen(half.start, "segments" if half.in_segments else "steps"),
    }
    return Condition(agent, "lifetime", greedy or name == "deterministic", makers[name])


def learners(stream: Stream) -> Mapping[str, Player]:
    """The players by condition that know what a stream of bandits is; none for other streams.

    They are told of task switches. Gittins' index is that of a task of one episode.
    """
    families = [f.family if isinstance(f, Split) else f for f in stream.schedule.families]
    first = families[0]
    if not isinstance(first, BernoulliBandit | MovingBandit):
        return {}
    sizes = {(type(f), getattr(f, "num_arms", 0), getattr(f, "num_pulls", 0)) for f in families}
    if len(sizes) > 1:
        return {}
    known = players(first)
    found = {name: known[player] for name, (player, _) in LEARNERS.items() if player in known}
    if stream.length != ONE_EPISODE:
        del found["gittins"]
    return found


def left_out(
    names: Sequence[str], agent: Agent, stream: Stream, budget: Budget, greedy: bool = False
) -> dict[str, str]:
    """Conditions that cannot be lived here, and why."""
    reasons = {}
    if agent.memory.grows:
        reasons["inherited"] = "a memory that grows with every token is as long as its life"
    for name in ("shuffled", "single_task"):
        if agent.memory.grows:
            reasons[name] = "a memory that grows with every token cannot change lives"
    if budget.num_lifetimes < 2:
        reasons.setdefault("shuffled", "it takes at least two lifetimes")
    if segments_lived(stream, budget) == 1:
        reasons["half_life"] = "a lifetime of one segment has no second half"
    if greedy:
        reasons["deterministic"] = "carried is deterministic already"
    if "oracle" in names and (unknown := _unknown(stream)):
        reasons["oracle"] = f"nobody knows the best play of {', '.join(unknown[:3])}"
    absent = [name for name in names if name in LEARNERS and name not in learners(stream)]
    reasons |= dict.fromkeys(absent, "this stream is not one kind of bandit that it knows")
    return {name: reason for name, reason in reasons.items() if name in names}


def _unknown(stream: Stream) -> list[str]:
    """What keeps the oracle from a stream: its tasks, or instances that it cannot make again."""
    if stream.backend == "envpool":
        return ["layouts of EnvPool"]
    return unknown_best_play(stream)
