"""Plays Gymnasium environments: a loop over rows that keeps their environments alive."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from .adapter import Adapter, Write
from .faults import EnvironmentFault, EnvironmentMisbehaved, OnError, failure
from .interface import Array, Interface, Observation
from .observation_ports import MASK_KEY
from .readings import reward_number, unreadable_rows
from .simulator import KINDS, Simulator, Transition
from .task import Env, Segment, Task

MAX_ENVS_PER_ROW = 32
"""A row closes its oldest environment when it holds more kinds than this."""
BROKEN = (0.0, np.nan, False, False)
"""Reward, expected reward, terminated and truncated of a step that was none."""
PAST_LIMIT = "; if it may not be stepped past a time limit, set max_episode_steps"


@dataclass(slots=True)
class _Slot:
    """One environment of one row, and how to talk to it."""

    env: Env
    native: Callable[[Any], Any]
    adapter: Adapter
    write: Write
    shows_mask: bool


class GymnasiumSimulator(Simulator):
    """Rows of step environments; tasks with equal `env_key` share one environment of the row.

    An environment may tell the expectation of the reward it just gave as `info["expected_reward"]`
    and which of its options are possible next as `info["action_mask"]` or as the part `action_mask`
    of its observation. `on_error="raise"` raises an `EnvironmentFault` where an environment fails
    or misbehaves; with the other choices a step tells it in its outcome and goes on with the other
    rows, and the environment is made anew.
    """

    def __init__(self, interface: Interface, num_rows: int, on_error: OnError = "raise") -> None:
        self.interface = interface
        self.num_rows = num_rows
        self.on_error = on_error
        self._channels = interface.zeros(num_rows)
        self._action_mask = np.zeros((num_rows, interface.mask_width), bool)
        self._kept: list[dict[Hashable, _Slot]] = [{} for _ in range(num_rows)]
        self._playing: list[_Slot | None] = [None] * num_rows
        self._tasks: list[Task | None] = [None] * num_rows
        self._steps = np.zeros(num_rows, np.int64)
        self._all_rows = list(range(num_rows))
        self.playing: Array = np.full(1, -1, np.int64)  # the row being stepped, for a watcher

    def begin_segment(self, row: int, segment: Segment) -> None:
        """Fetch or make the environment of the segment's task and set its hidden parameters."""
        self._tasks[row] = segment.task
        for channel in self._channels.values():
            channel[row] = 0
        self._fetch(row, segment.task)

    def _fetch(self, row: int, task: Task) -> _Slot:
        slots = self._kept[row]
        slot = slots.pop(task.env_key, None) or self._slot(row, task)
        slots[task.env_key] = slot
        if len(slots) > MAX_ENVS_PER_ROW:
            slots.pop(next(iter(slots))).env.close()
        try:
            task.configure(slot.env)
        except Exception as error:
            raise failure(f"{task.name}, row {row}", "being configured", error) from error
        self._action_mask[row] = slot.adapter.action_mask
        self._playing[row] = slot
        return slot

    def _slot(self, row: int, task: Task) -> _Slot:
        try:
            env = task.make_env()
        except Exception as error:
            raise failure(f"{task.name}, row {row}", "being made", error) from error
        adapter = Adapter(env, self.interface)
        native = adapter.natives.__getitem__ if adapter.natives else adapter.native
        write = adapter.writer(self._channels, row)
        return _Slot(env, native, adapter, write, adapter.shows_mask)

    def begin_episode(self, row: int, seed: int) -> None:
        """Reset the row's environment with this seed."""
        task = self._tasks[row]
        if task is None:
            raise RuntimeError(f"row {row}: no segment was begun")
        slot = self._playing[row] or self._fetch(row, task)
        self._steps[row] = 0
        try:
            self._reset(row, slot, seed)
        except EnvironmentFault:
            self._drop(row)
            raise

    def _reset(self, row: int, slot: _Slot, seed: int) -> None:
        try:
            native, info = slot.env.reset(seed=seed)
        except Exception as error:
            raise failure(self._name(row), f"reset(seed={seed})", error) from error
        # A shape that NumPy would broadcast raises nothing when it is written.
        problem = slot.adapter.problem(native)
        if problem is not None:
            raise EnvironmentMisbehaved(f"{self._where(row)}: {problem}")
        try:
            with np.errstate(over="ignore"):
                slot.write(native)
        except Exception as error:
            raise self._unreadable(row, native, error) from error
        self._read_mask(row, slot, native, info, over=False)
        for fault in self._value_faults([row]).values():
            raise fault

    def step(self, actions: Array, rows: Array | None = None) -> Transition:
        """Step the environments one after another."""
        played = self._all_rows if rows is None else rows.tolist()
        outcomes: list[tuple[float, float, bool, bool]] = []
        faults: dict[int, EnvironmentFault] = {}
        self._steps[played] += 1
        with np.errstate(over="ignore"):  # a float64 beyond float32 becomes infinite and is told
            for row, action in zip(played, actions.tolist(), strict=True):
                self.playing[0] = row
                try:
                    outcomes.append(self._step_row(row, action))
                except EnvironmentFault as fault:
                    if self.on_error == "raise":
                        raise
                    faults[row] = fault
                    outcomes.append(BROKEN)
        for row, misread in self._value_faults(played).items():
            if self.on_error == "raise":
                raise misread
            faults.setdefault(row, misread)
        for row in faults:
            outcomes[played.index(row)] = BROKEN
            self._drop(row)
        columns = [np.array([told[i] for told in outcomes], kind) for i, kind in enumerate(KINDS)]
        reward, expected, terminated, truncated = columns
        return Transition(reward, expected, terminated, truncated, faults)

    def _step_row(self, row: int, action: Any) -> tuple[float, float, bool, bool]:
        """Reward, expected reward, terminated and truncated of one row's step."""
        slot: Any = self._playing[row]
        try:
            native, given, terminated, truncated, info = slot.env.step(slot.native(action))
        except Exception as error:
            raise failure(self._where(row), f"action {action}", error, PAST_LIMIT) from error
        try:
            slot.write(native)
        except Exception as error:
            raise self._unreadable(row, native, error) from error
        try:
            reward = reward_number(given)
        except ValueError as error:
            raise EnvironmentMisbehaved(f"{self._where(row)}: {error}") from error
        if not (info or slot.shows_mask):
            return reward, np.nan, terminated, truncated
        self._read_mask(row, slot, native, info, bool(terminated or truncated))
        return reward, info.get("expected_reward", np.nan), terminated, truncated

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

    def informed_return(self, row: int, episode: int) -> float:
        """What the task says of the instance its environment was just reset to."""
        slot, task = self._played(row)
        return float(task.informed_return(slot.env, episode))

    def close(self) -> None:
        """Close every environment."""
        for slots in self._kept:
            for slot in slots.values():
                slot.env.close()
            slots.clear()

    def _played(self, row: int) -> tuple[_Slot, Task]:
        slot, task = self._playing[row], self._tasks[row]
        if slot is None or task is None:
            raise RuntimeError(f"row {row}: no episode was begun")
        return slot, task

    def _drop(self, row: int) -> None:
        """Part with a broken environment: the next episode gets a new one."""
        slot, task = self._playing[row], self._tasks[row]
        if slot is not None and task is not None:
            self._kept[row].pop(task.env_key, None)
            with suppress(Exception):
                slot.env.close()
        self._playing[row] = None

    def _read_mask(self, row: int, slot: _Slot, native: Any, info: Any, over: bool) -> None:
        """Take over the possible actions that an environment tells; all of them where it does not.

        Where an episode is over none may be left.
        """
        told = native[MASK_KEY] if slot.shows_mask else (info or {}).get(MASK_KEY)
        if told is None or over:
            self._action_mask[row] = slot.adapter.action_mask
            return
        try:
            self._action_mask[row] = slot.adapter.mask(told)
        except (TypeError, ValueError) as error:
            raise EnvironmentMisbehaved(f"{self._where(row)}: {error}") from error

    def _value_faults(self, played: list[int]) -> dict[int, EnvironmentFault]:
        """Rows that show what no network can read; it is blanked."""
        faults: dict[int, EnvironmentFault] = {}
        for row, told in unreadable_rows(self.interface, self._channels).items():
            for channel in self._channels.values():
                channel[row] = 0
            if row in played:
                faults[row] = EnvironmentMisbehaved(f"{self._where(row)}: {told}")
        return faults

    def _name(self, row: int) -> str:
        task = self._tasks[row]
        return f"{task.name if task else 'no task'}, row {row}"

    def _where(self, row: int) -> str:
        return f"{self._name(row)}, step {self._steps[row]} of the episode"

    def _unreadable(self, row: int, native: Any, error: Exception) -> EnvironmentMisbehaved:
        slot, _ = self._played(row)
        problem = slot.adapter.problem(native)
        return EnvironmentMisbehaved(f"{self._where(row)}: {problem or error}")
