"""Best play, step by step, where it is known: what an oracle that sees everything would do.

    finite tasks   argmax_a Q_t(s, a) by backward induction
    bandits        the best arm of every pull
    recall games   the card that is asked for
    MiniGrid       the planner's shortest plan
    CartPole       the linear controller behind its reference
    Gymnasium's    the search, dynamic programme or strategy behind the reference (`classic_play`)

Its regret is 0 in expectation where the ceiling is exact or the mean of this very play, and as low
as the planner's bounds say elsewhere.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import singledispatch
from typing import Protocol, runtime_checkable

import numpy as np

from .adapter import Adapter
from .bandit import BanditTask
from .interface import Array
from .recall import RecallEnv, RecallTask
from .stream import Stream
from .task import Env, Task

BestAction = int | tuple[float, ...]
"""An option of the first choice, or reals in [-1, 1] that stand for the range of the task."""
UNKNOWN = -1
FIRST_SEGMENTS = 20  # of a lifetime, whose tasks are looked at


@runtime_checkable
class KnowsBestAction(Protocol):
    """A task that can tell the best action in the present state of its environment."""

    def best_action(self, env: Env) -> int: ...


@singledispatch
def best_actions(task: Task, env: Env) -> Sequence[BestAction]:
    """The next actions of best play, as many as can be told now; empty where nobody knows.

    To be asked after `env` was reset, and again once all that was told has been played. A task of
    one's own is known by a method `best_action(env)`.
    """
    return (task.best_action(env),) if isinstance(task, KnowsBestAction) else ()


@best_actions.register
def _(task: BanditTask, env: Env) -> Sequence[int]:
    """All pulls of the episode at once."""
    del env
    first, then = int(task.before.argmax()), int(task.after.argmax())
    return (first,) * task.change + (then,) * (task.num_pulls - task.change)


@best_actions.register
def _(task: RecallTask, env: Env) -> Sequence[int]:
    """The right answer, or any where none is asked for."""
    del task
    game = env.unwrapped
    return (max(game.target, 0),) if isinstance(game, RecallEnv) else ()


class Oracle:
    """Plays `num_rows` lifetimes of a stream by best play.

    It steps environments of its own with what it plays: all of an episode follows from its seed, so
    they stay in step with the lives it plays in. Call `close` when done.
    """

    def __init__(self, stream: Stream, num_rows: int) -> None:
        self.stream = stream
        self._envs: dict[tuple[int, Hashable], tuple[Env, Adapter]] = {}
        self._running: list[tuple[Task, Env, Adapter] | None] = [None] * num_rows
        self._queues: list[list[BestAction]] = [[] for _ in range(num_rows)]
        self._openings: list[tuple[Task, int, Sequence[BestAction]] | None] = [None] * num_rows

    def actions(self, lifetime: Array, segment: Array, episode: Array, starts: Array) -> Array:
        """An action for every row as a crowd takes them, int64 `[num_rows]` or, with several
        parts, float32 `[num_rows, num_parts]`.

        The choice is -1 in an episode of which it does not know the best play. The place of every
        row, and bool `starts` where an episode begins.
        """
        places = zip(*(a.tolist() for a in (lifetime, segment, episode, starts)), strict=True)
        rows = np.array([self._act(row, *place) for row, place in enumerate(places)])
        single = self.stream.interface.num_parts == 1
        return rows[:, 0].astype(np.int64) if single else rows

    def _act(self, row: int, lifetime: int, segment: int, episode: int, starts: bool) -> Array:
        if starts:
            self._begin(row, lifetime, segment, episode)
        running, queue = self._running[row], self._queues[row]
        if running is None:
            return self._parts(UNKNOWN)
        task, env, adapter = running
        if not queue:
            queue += best_actions(task, env)
        if not queue:
            self._running[row] = None  # what others play from here on it does not follow
            return self._parts(UNKNOWN)
        parts = self._parts(queue.pop(0))
        told = parts.tolist()  # what a crowd would hand over
        env.step(adapter.natives[int(told[0])] if adapter.natives else adapter.native(told))
        return parts

    def _parts(self, action: BestAction) -> Array:
        """The parts of an action, float32 `[num_parts]`; those it does not speak of are 0."""
        interface = self.stream.interface
        parts = np.zeros(interface.num_parts, np.float32)
        if isinstance(action, tuple):
            start = len(interface.choices)
            parts[start : start + len(action)] = action
        else:
            parts[0] = action
        return parts

    def _begin(self, row: int, lifetime: int, segment: int, episode: int) -> None:
        found = self.stream.segment(lifetime, segment)
        task, seed = found.task, found.episode_seed(episode)
        key = (row, task.env_key)
        if key not in self._envs:
            made = task.make_env()
            self._envs[key] = (made, Adapter(made, self.stream.interface))
        env, adapter = self._envs[key]
        task.configure(env)
        env.reset(seed=seed)
        self._running[row] = (task, env, adapter)
        opening = self._openings[row]
        if opening is None or opening[0] is not task or opening[1] != seed:
            opening = (task, seed, tuple(best_actions(task, env)))
        self._openings[row] = opening  # a planner need not plan one layout twice
        self._queues[row] = list(opening[2])

    def close(self) -> None:
        """Close the environments."""
        for env, _ in self._envs.values():
            env.close()
        self._envs.clear()


def unknown_best_play(stream: Stream) -> list[str]:
    """The tasks among the first of a stream whose best play is not known, by name."""
    tasks: dict[str, int] = {}
    for segment in range(stream.num_segments(0) or FIRST_SEGMENTS):
        tasks.setdefault(stream.segment(0, segment).task.name, segment)
    oracle, zero = Oracle(stream, 1), np.zeros(1, np.int64)
    try:
        return [
            name
            for name, segment in tasks.items()
            if oracle.actions(zero, zero + segment, zero, zero == 0).flat[0] == UNKNOWN
        ]
    finally:
        oracle.close()
