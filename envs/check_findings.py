"""What can be said of an environment before it is lived in: a finding per law.

broken: a stream of it could not be trusted;  warning: it works, less well;  fine, note: facts
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .actions import random_actions
from .adapter import Adapter
from .interface import Array, Interface
from .task import Env, Family, Task

MAX_STEPS = 400
NUM_EPISODES = 5

Level = Literal["fine", "note", "warning", "broken"]


@dataclass(frozen=True)
class Finding:
    """One sentence about one law."""

    level: Level
    law: str
    text: str


@dataclass(frozen=True)
class Subject:
    """A family, one of its tasks, and the first of the seeds it is tried with."""

    family: Family
    task: Task
    seed: int

    def make(self) -> Env:
        """A new environment of the task."""
        env = self.task.make_env()
        self.task.configure(env)
        return env

    def seeds(self) -> range:
        """Those of the episodes."""
        return range(self.seed, self.seed + NUM_EPISODES)

    def actions(self, env: Env) -> list[object]:
        """Native actions of an episode."""
        return _native_actions(env, self.family.interface, self.seed)


@dataclass(frozen=True)
class Lived:
    """One episode's start and random steps as an environment gave them, copied when given."""

    observations: list[Any]
    rewards: list[Any]
    flags: list[tuple[Any, Any]]
    infos: list[Any]
    num_reused: int  # observations that changed after they were given


def live(env: Env, seed: int, actions: list[Any]) -> Lived:
    """Reset with a seed and play native actions until they or the episode end."""
    native, info = env.reset(seed=seed)
    lived = Lived([copied(native)], [], [], [info], 0)
    reused = 0
    for action in actions:
        before, kept = native, lived.observations[-1]
        native, reward, terminated, truncated, info = env.step(action)
        reused += not same(before, kept)
        lived.observations.append(copied(native))
        lived.rewards.append(copied(reward))
        lived.flags.append((terminated, truncated))
        lived.infos.append(info)
        if terminated or truncated:
            break
    return Lived(lived.observations, lived.rewards, lived.flags, lived.infos, reused)


def copied(value: Any) -> Any:
    """Arrays inside dictionaries and tuples copied."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(copied(item) for item in value)
    return value.copy() if isinstance(value, np.ndarray) else value


def same(one: Any, other: Any) -> bool:
    """Whether two native observations are equal, NaN to itself."""
    if isinstance(one, dict):
        keys = isinstance(other, dict) and one.keys() == other.keys()
        return keys and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list):
        length = isinstance(other, tuple | list) and len(one) == len(other)
        return length and all(same(a, b) for a, b in zip(one, other, strict=True))
    return _equal(np.asarray(one), np.asarray(other))


def _equal(one: Array, other: Array) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def _native_actions(env: Env, interface: Interface, seed: int) -> list[object]:
    """MAX_STEPS random native actions; where options are masked, those of the first step."""
    adapter = Adapter(env, interface)
    told = (env.reset(seed=seed)[1] or {}).get("action_mask")
    mask = adapter.action_mask if told is None else adapter.mask(told)
    rng = np.random.default_rng(seed)
    drawn = random_actions(interface, np.tile(mask, (MAX_STEPS, 1)), rng)
    if adapter.natives:
        return [adapter.natives[action] for action in drawn.tolist()]
    return [adapter.native(parts) for parts in drawn.tolist()]
