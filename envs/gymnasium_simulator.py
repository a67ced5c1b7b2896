"""Plays Gymnasium environments: a loop over rows that keeps their environments alive."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .adapter import Adapter, Write
from .interface import Array, Interface, Observation
from .simulator import Simulator, Transition
from .task import Env, Segment, Task

LARGEST = float(np.finfo(np.float32).max)
MAX_ENVS_PER_ROW = 32
"""A row closes its oldest environment when it holds more kinds than this."""
PAST_LIMIT = "; if it may not be stepped past a time limit, set max_episode_steps"


@dataclass(slots=True)
class _Slot:
    """One environment of one row, and how to talk to it."""

    env: Env
    natives: tuple[int, ...]
    adapter: Adapter
    write: Write


class GymnasiumSimulator(Simulator):
    """Rows of step environments; tasks with equal `env_key` share one environment of the row.

    An environment may tell the expectation of the reward it just gave as
    `info["expected_reward"]`. Raises ValueError for an observation of another shape than its space
    and for a reward that is not one finite number, RuntimeError where an environment fails; all
    name the task, the row and the step.
    """

    def __init__(self, interface: Interface, num_rows: int) -> None:
        self.interface = interface
        self.num_rows = num_rows
        self._channels = interface.zeros(num_rows)
        self._action_mask = np.zeros((num_rows, interface.num_actions), bool)
        self._kept: list[dict[Hashable, _Slot]] = [{} for _ in range(num_rows)]
        self._playing: list[_Slot | None] = [None] * num_rows
        self._tasks: list[Task | None] = [None] * num_rows
        self._steps = np.zeros(num_rows, np.int64)
        self._all_rows = list(range(num_rows))

    def begin_segment(self, row: int, segment: Segment) -> None:
        """Fetch or make the environment of the segment's task and set its hidden parameters."""
        task = segment.task
        slots = self._kept[row]
        slot = slots.pop(task.env_key, None) or self._slot(row, task)
        slots[task.env_key] = slot
        if len(slots) > MAX_ENVS_PER_ROW:
            slots.pop(next(iter(slots))).env.close()
        task.configure(slot.env)
        for channel in self._channels.values():
            channel[row] = 0
        self._action_mask[row] = slot.adapter.action_mask
        self._playing[row] = slot
        self._tasks[row] = task

    def _slot(self, row: int, task: Task) -> _Slot:
        try:
            env = task.make_env()
        except Exception as error:
            raise _failure(f"{task.name}, row {row}", "being made", error) from error
        adapter = Adapter(env, self.interface)
        return _Slot(env, adapter.natives, adapter, adapter.writer(self._channels, row))

    def begin_episode(self, row: int, seed: int) -> None:
        """Reset the row's environment with this seed."""
        slot, task = self._played(row)
        self._steps[row] = 0
        try:
            native, _ = slot.env.reset(seed=seed)
        except Exception as error:
            where = f"{task.name}, row {row}"
            raise _failure(where, f"reset(seed={seed})", error) from error
        # A shape that NumPy would broadcast raises nothing when it is written.
        problem = slot.adapter.problem(native)
        if problem is not None:
            raise ValueError(f"{self._where(row, 0)}: {problem}")
        slot.write(native)

    def step(self, actions: Array, rows: Array | None = None) -> Transition:
        """Step the environments one after another."""
        played = self._all_rows if rows is None else rows.tolist()
        rewards: list[float] = []
        expected: list[float] = []
        terminations: list[bool] = []
        truncations: list[bool] = []
        for row, action in zip(played, actions.tolist(), strict=True):
            slot: Any = self._playing[row]
            try:
                native, given, terminated, truncated, info = slot.env.step(slot.natives[action])
            except Exception as error:
                where = self._where(row, int(self._steps[row]) + 1)
                raise _failure(where, f"action {action}", error, PAST_LIMIT) from error
            try:
                slot.write(native)
            except Exception as error:
                raise self._unreadable(row, native, error) from error
            rewards.append(given if type(given) is float else self._number(row, given))
            expected.append(info.get("expected_reward", np.nan) if info else np.nan)
            terminations.append(terminated)
            truncations.append(truncated)
        self._steps[played] += 1
        reward = np.array(rewards, np.float64)
        if not (np.abs(reward) <= LARGEST).all():
            self._refuse_reward(played, reward)
        return Transition(
            reward.astype(np.float32),
            np.array(expected, np.float32),
            np.array(terminations, bool),
            np.array(truncations, bool),
        )

    def observation(self) -> Observation:
        """Copies of all channels and of the action mask."""
        shown = {name: channel.copy() for name, channel in self._channels.items()}
        shown["action_mask"] = self._action_mask.copy()
        return shown

    def optimal_return(self, row: int) -> float:
        """What the task says of the instance its environment was just reset to."""
        slot, task = self._played(row)
        return float(task.optimal_return(slot.env))

    def floor_return(self, row: int) -> float:
        """What the task says of the instance its environment was just reset to."""
        slot, task = self._played(row)
        return float(task.floor_return(slot.env))

    def close(self) -> None:
        """Close every environment."""
        for slots in self._kept:
            for slot in slots.values():
                slot.env.close()
            slots.clear()

    def _played(self, row: int) -> tuple[_Slot, Task]:
        slot, task = self._playing[row], self._tasks[row]
        if slot is None or task is None:
            raise RuntimeError(f"row {row}: no segment was begun")
        return slot, task

    def _where(self, row: int, step: int) -> str:
        task = self._tasks[row]
        return f"{task.name if task else 'no task'}, row {row}, step {step} of the episode"

    def _number(self, row: int, reward: Any) -> float:
        """A reward of any numeric type (bool, integer, array or tensor of one element)."""
        if isinstance(reward, int | np.number | np.bool_):
            return float(reward)
        try:
            return float(np.asarray(reward, dtype=np.float64).reshape(()))
        except (TypeError, ValueError) as error:
            where = self._where(row, int(self._steps[row]) + 1)
            message = f"{where}: expected a reward of one number, got {reward!r}"
            raise ValueError(message) from error

    def _refuse_reward(self, played: list[int], reward: Array) -> None:
        bad = int(np.flatnonzero(~(np.abs(reward) <= LARGEST))[0])
        where = self._where(played[bad], int(self._steps[played[bad]]))
        raise ValueError(f"{where}: expected a finite reward, got {reward[bad]}")

    def _unreadable(self, row: int, native: Any, error: Exception) -> ValueError:
        slot, _ = self._played(row)
        where = self._where(row, int(self._steps[row]) + 1)
        return ValueError(f"{where}: {slot.adapter.problem(native) or error}")


def _failure(where: str, doing: str, error: Exception, hint: str = "") -> RuntimeError:
    reason = f"{type(error).__name__}: {error}"
    return RuntimeError(f"{where}: the environment failed on {doing} ({reason}){hint}")
