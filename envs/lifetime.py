"""One lifetime of a stream as a Gymnasium environment: it never terminates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from .crowd import Crowd
from .interface import PREVIOUS_PARTS, Array, Channel, Interface, Observation
from .readings import LARGEST
from .stream import Stream


class Lifetime(gymnasium.Env[dict[str, Any], Any]):
    """Plays lifetimes of a stream end to end: tasks change while the environment goes on.

    An action is an integer; where the stream's have several parts, a dictionary of `choices` and
    `reals`, masked by `action_mask` in this order.

    The observation is a dictionary of the stream's channels and the inputs `action_mask`,
    `previous_action`, `previous_reward`, `episode_start`, `task_start`. A finite lifetime ends
    truncated, an endless one never. `reset(seed=b)` begins lifetime b; without a seed the first
    reset begins lifetime `index` and each later one the next. The info of a step holds
    `episode_terminated`, `episode_truncated`, `task_end`, the `expected_reward` where it is known
    and, where an episode ended, its record under `episode_record`.
    """

    def __init__(self, stream: Stream, index: int = 0) -> None:
        self._stream = stream
        self._next = index
        self._crowd: Crowd | None = None
        self.observation_space = observation_space(stream.interface)
        self.action_space = action_space(stream.interface)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin a lifetime."""
        super().reset(seed=seed, options=options)
        index = self._next if seed is None else seed
        self._next = index + 1
        self.close()
        self._crowd = Crowd(self._stream, 1, first_lifetime=index)
        return _first_row(self._crowd.observation), {"lifetime": index}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Play one action; raises ValueError for one that `action_mask` rules out."""
        if self._crowd is None:
            raise RuntimeError("reset the lifetime before its first step")
        result = self._crowd.step(_as_array(action))
        ended = bool(result.lifetime_end[0])
        shown = result.observation
        if ended and result.final_observation is not None:
            shown = result.final_observation
        info: dict[str, Any] = {
            "episode_terminated": bool(result.terminated[0]),
            "episode_truncated": bool(result.truncated[0]),
            "task_end": bool(result.task_end[0]),
        }
        if not np.isnan(result.expected_reward[0]):
            info["expected_reward"] = float(result.expected_reward[0])
        if result.episodes:
            info["episode_record"] = result.episodes[0]
        return _first_row(shown), float(result.reward[0]), False, ended, info

    def close(self) -> None:
        """Close the environments of the running lifetime."""
        if self._crowd is not None:
            self._crowd.close()
            self._crowd = None


def observation_space(interface: Interface) -> spaces.Dict:
    """The space of one row of a crowd's observations."""
    num_actions = interface.num_actions
    parts: dict[str, spaces.Space[Any]] = {
        name: _channel_space(channel) for name, channel in interface.channels.items()
    }
    parts["action_mask"] = spaces.Box(0, 1, (interface.mask_width,), np.int8)
    parts["previous_action"] = spaces.Discrete(num_actions + 1)
    parts["previous_reward"] = spaces.Box(-LARGEST, LARGEST, (1,), np.float32)
    parts["episode_start"] = spaces.Discrete(2)
    parts["task_start"] = spaces.Discrete(2)
    if interface.num_parts > 1:
        high = np.array([n - 1 for n in interface.branches] + [1] * interface.num_reals, np.float32)
        low = np.array([0] * len(interface.branches) + [-1] * interface.num_reals, np.float32)
        parts[PREVIOUS_PARTS] = spaces.Box(low, high, dtype=np.float32)
    return spaces.Dict(parts)


def action_space(interface: Interface) -> spaces.Space[Any]:
    """The space of one row of a crowd's actions, masked options included."""
    if interface.num_parts == 1:
        return spaces.Discrete(interface.num_actions)
    reals = spaces.Box(-1.0, 1.0, (interface.num_reals,), np.float32)
    return spaces.Dict(choices=spaces.MultiDiscrete(list(interface.choices)), reals=reals)


def _as_array(action: Any) -> Array:
    """An action of `action_space` as the actions of a crowd of one."""
    if isinstance(action, Mapping):
        action = np.concatenate([action["choices"], action["reals"]])
    return np.asarray(action)[None]


def _channel_space(channel: Channel) -> spaces.Space[Any]:
    if channel.kind == "discrete":
        if channel.shape:
            return spaces.MultiDiscrete([channel.num_values] * channel.shape[0])
        return spaces.Discrete(channel.num_values)
    if channel.kind == "tokens":
        return spaces.Box(0, channel.num_values - 1, channel.shape, np.int64)
    if channel.kind in ("grid", "image"):
        return spaces.Box(0, 255, channel.shape, np.uint8)
    return spaces.Box(-LARGEST, LARGEST, channel.shape, np.float32)


def _first_row(observation: Observation) -> dict[str, Any]:
    """Row 0, in the types of `observation_space`."""
    shown: dict[str, Any] = {name: array[0] for name, array in observation.items()}
    shown["action_mask"] = shown["action_mask"].astype(np.int8)
    shown["previous_reward"] = observation["previous_reward"].copy()
    for flag in ("episode_start", "task_start"):
        shown[flag] = np.int64(shown[flag])
    return shown
