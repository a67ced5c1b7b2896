"""Lifetimes side by side in Gymnasium's vector environments: every autoreset mode, both makers,
and spaces that Gymnasium's own tools have no word for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import FlattenObservation

from sojourn.envs import Length, Lifetime, task_stream

LENGTHS, LIFETIMES, STEPS = (3, 5), (4, 9), 40
MAKERS: dict[str, Callable[..., Any]] = {
    "sync": SyncVectorEnv,
    "async": partial(AsyncVectorEnv, shared_memory=True),
}


class Counter(gymnasium.Env[Any, Any]):
    """Shows its own count beside a number of the episode; ends after `length` steps."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, length: int) -> None:
        self.length = length

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.count, self.number = 0, self.np_random.normal()
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        self.count += 1
        return self._seen(), float(self.count), self.count == self.length, False, {}

    def _seen(self) -> Any:
        return np.array([self.count, self.number], np.float32)


def lifetime(segments: int = 2) -> gymnasium.Env[Any, Any]:
    """Two tasks of three and of five steps, two episodes of each."""
    tasks = [partial(Counter, length) for length in LENGTHS]
    return Lifetime(task_stream(tasks, 0, length=Length(2), lifetime_segments=segments))


Fact = tuple[float, ...]


def fact(seen: Any, reward: float, following: Any, ended: bool, truncated: bool) -> Fact:
    """A transition as numbers: everything seen before and after it."""
    sides = (np.ravel(shown[name]) for shown in (seen, following) for name in sorted(shown))
    numbers = np.concatenate([*sides, [reward, ended, truncated]])
    return tuple(np.asarray(numbers, np.float64).tolist())


def lived_alone(index: int, num_steps: int) -> list[Fact]:
    """The transitions of one environment, reset by hand."""
    env, facts = lifetime(), []
    seen, _ = env.reset(seed=index)
    for _ in range(num_steps):
        following, reward, terminated, truncated, _ = env.step(0)
        facts.append(fact(seen, float(reward), following, terminated, truncated))
        seen = env.reset()[0] if truncated else following
    env.close()
    return facts


def row_of(shown: Any, row: int) -> dict[str, Any]:
    return {name: np.array(array[row]) for name, array in shown.items()}


def lived_side_by_side(make: Callable[..., Any], mode: AutoresetMode) -> list[list[Fact]]:
    """The real transitions of both rows: those after which Gymnasium itself reset are left out."""
    many = make([lifetime, lifetime], autoreset_mode=mode)
    shown, _ = many.reset(seed=list(LIFETIMES))
    seen = [row_of(shown, row) for row in range(2)]
    facts: list[list[Fact]] = [[], []]
    dead = np.zeros(2, bool)
    for _ in range(STEPS):
        shown, reward, terminated, truncated, info = many.step(np.zeros(2, np.int64))
        ended = terminated | truncated
        for row in np.flatnonzero(~dead):
            following = row_of(shown, row)
            if mode is AutoresetMode.SAME_STEP and ended[row]:
                following = dict(info["final_obs"][row])
            flags = bool(terminated[row]), bool(truncated[row])
            facts[row].append(fact(seen[row], float(reward[row]), following, *flags))
        dead = ended if mode is AutoresetMode.NEXT_STEP else dead
        if mode is AutoresetMode.DISABLED and ended.any():
            shown, _ = many.reset(options={"reset_mask": ended})
        seen = [row_of(shown, row) for row in range(2)]
    many.close()
    return facts


SOME = ["sync", pytest.param("async", marks=pytest.mark.slow)]  # processes are slow to begin


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("maker", SOME)
def test_every_mode_gives_the_real_transitions(maker: str, mode: AutoresetMode) -> None:
    """Farama-Foundation/Gymnasium#1103: among them the true last observation of every lifetime."""
    for index, facts in zip(LIFETIMES, lived_side_by_side(MAKERS[maker], mode), strict=True):
        assert facts == lived_alone(index, len(facts))
        ends = [t for t, (*_, truncated) in enumerate(facts) if truncated]
        dead = len(ends) - (facts[-1][-1] > 0) if mode is AutoresetMode.NEXT_STEP else 0
        assert len(ends) >= 2 and len(facts) == STEPS - dead


@pytest.mark.parametrize("id", ["MiniGrid-DoorKey-5x5-v0", "BabyAI-GoTo-v0"])
@pytest.mark.parametrize("maker", SOME)
def test_missions_go_through_the_tools_of_gymnasium(id: str, maker: str) -> None:
    """Farama-Foundation/Minigrid PR 209: shared memory and flattening know no MissionSpace."""
    reference = {"floor": 0, "ceiling": 1}
    task = {"id": id, "missions": "tokens", "reference": reference}

    def make() -> gymnasium.Env[Any, Any]:
        return Lifetime(task_stream([task], 0))

    many = MAKERS[maker]([make, make])
    shown, _ = many.reset(seed=[1, 2])
    assert shown["mission"].shape == (2, 40) and shown["mission"].any()
    shown, reward, *_ = many.step(np.zeros(2, np.int64))
    assert shown["mission"].any(1).all() and reward.shape == (2,)
    many.close()
    flat: Any = FlattenObservation(make())
    seen, _ = flat.reset(seed=1)
    assert flat.observation_space.contains(seen) and seen.ndim == 1
    flat.close()
