"""From the native spaces of a Gymnasium environment to the channels of the common interface.

    MiniGrid dict {image, direction, mission} -> grid, direction (discrete) and mission (tokens)
    Box of one dimension -> vector;  Discrete -> discrete;  Dict of these -> a channel per key
    Discrete actions start .. start + n - 1 -> 0 .. n - 1, padded to the stream's with a mask

Sources: `gymnasium.spaces`, `minigrid.minigrid_env.MiniGridEnv.observation_space`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces

from .interface import INPUTS, Array, Channel, Interface, Observation
from .missions import mission_channel, mission_tokens
from .task import Env

Missions = Literal["ignored", "tokens"]
Write = Callable[[Any], None]


@dataclass(frozen=True)
class _Port:
    """Where one channel lies in a native observation: under `key`, or it is all of it (None)."""

    key: str | None
    channel: Channel
    start: int = 0


def interface_of(env: Env, missions: Missions = "ignored", mission_length: int = 40) -> Interface:
    """The smallest interface that shows all of an environment.

    `missions="tokens"` adds the channel `mission` of `mission_length` words to MiniGrid and BabyAI.
    Raises ValueError naming the part of a space that no channel can carry.
    """
    ports = _ports(env, mission_length)
    if missions == "ignored":
        ports.pop("mission", None)
    return Interface({name: port.channel for name, port in ports.items()}, _actions(env)[1])


class Adapter:
    """Writes the observations of one kind of environment into the arrays of a stream's interface.

    `natives[a]` is the environment's own value of action `a`. Channels that the interface lacks are
    not shown; raises ValueError where the interface is too small for the environment.
    """

    def __init__(self, env: Env, interface: Interface) -> None:
        mission = interface.channels.get("mission")
        length = mission.shape[0] if mission is not None and mission.kind == "tokens" else 1
        ports = _ports(env, length)
        self._ports = {name: port for name, port in ports.items() if name in interface.channels}
        for name, port in self._ports.items():
            wide = interface.channels[name]
            if wide.union(port.channel) != wide:
                raise ValueError(f"channel {name!r}: {env} shows {port.channel}, expected {wide}")
        start, num_actions = _actions(env)
        if num_actions > interface.num_actions:
            raise ValueError(
                f"actions: {env} has {num_actions}, expected at most {interface.num_actions}"
            )
        self.natives = tuple(range(start, start + num_actions))
        self.action_mask = np.arange(interface.num_actions) < num_actions

    def writer(self, arrays: Observation, row: int) -> Write:
        """A function that writes a native observation into `row` of the channel arrays."""
        plain: list[tuple[str, Array]] = []
        offset: list[tuple[str, Array, int]] = []
        worded: list[tuple[str, Array, int]] = []
        for name, port in self._ports.items():
            corner: tuple[Any, ...] = tuple(slice(size) for size in port.channel.shape)
            view = arrays[name][(row, *corner, ...)]
            if port.key is None:
                return _whole_writer(view, port.start)
            if port.channel.kind == "tokens":
                worded.append((port.key, view, port.channel.shape[0]))
            elif port.start:
                offset.append((port.key, view, port.start))
            else:
                plain.append((port.key, view))

        def write(native: Any) -> None:
            for key, view in plain:
                view[...] = native[key]
            for key, view, start in offset:
                view[...] = native[key] - start
            for key, view, length in worded:
                view[...] = mission_tokens(native[key], length)

        return write

    def problem(self, native: Any) -> str | None:
        """What an observation lacks of the shapes that its space declared; None when it fits."""
        for port in self._ports.values():
            path = "observation" if port.key is None else f"observation[{port.key!r}]"
            if port.key is not None and not (isinstance(native, Mapping) and port.key in native):
                return f"{path}: missing"
            found = np.shape(native if port.key is None else native[port.key])
            if port.channel.kind != "tokens" and found != port.channel.shape:
                return f"{path}: expected shape {port.channel.shape}, got {found}"
        return None


def _whole_writer(view: Array, start: int) -> Write:
    """Writes a native observation that is one channel."""
    if start == 0:
        return lambda native: view.__setitem__(..., native)
    return lambda native: view.__setitem__(..., native - start)


def _ports(env: Env, mission_length: int) -> dict[str, _Port]:
    """Channel name -> where it lies in the observations of `env`."""
    space = env.observation_space
    if isinstance(space, spaces.Box):
        return {"vector": _port(space, None, "observation_space")}
    if isinstance(space, spaces.Discrete):
        return {"discrete": _port(space, None, "observation_space")}
    if not isinstance(space, spaces.Dict):
        raise _unsupported("observation_space", space)
    if {"image", "direction", "mission"} <= set(space.spaces):
        return _minigrid_ports(env, space, mission_length)
    reserved = set(space.spaces) & set(INPUTS)
    if reserved:
        raise ValueError(f"observation_space: the key {min(reserved)!r} is an input of the agent")
    return {
        key: _port(part, key, f"observation_space[{key!r}]") for key, part in space.spaces.items()
    }


def _port(space: gymnasium.Space[Any], key: str | None, path: str) -> _Port:
    if isinstance(space, spaces.Box) and len(space.shape) == 1:
        return _Port(key, Channel("vector", space.shape))
    if isinstance(space, spaces.Discrete):
        return _Port(key, Channel("discrete", (), int(space.n)), int(space.start))
    raise _unsupported(path, space)


def _minigrid_ports(env: Env, space: spaces.Dict, mission_length: int) -> dict[str, _Port]:
    image = space["image"]
    if not isinstance(image, spaces.Box) or len(image.shape) != 3 or image.shape[2] != 3:
        raise _unsupported("observation_space['image']", image)
    if "RGBImg" in str(env):
        raise ValueError(
            f"observation_space['image']: {env} shows pixels, expected MiniGrid cell codes; "
            "remove the RGBImg wrapper"
        )
    return {
        "grid": _Port("image", Channel("grid", image.shape)),
        "direction": _port(space["direction"], "direction", "observation_space['direction']"),
        "mission": _Port("mission", mission_channel(mission_length)),
    }


def _actions(env: Env) -> tuple[int, int]:
    """First native action and their number."""
    space = env.action_space
    if not isinstance(space, spaces.Discrete):
        raise ValueError(f"action_space: expected Discrete, got {space} of {env}")
    return int(space.start), int(space.n)


def _unsupported(path: str, space: gymnasium.Space[Any]) -> ValueError:
    return ValueError(
        f"{path}: expected a MiniGrid dictionary, a Box of one dimension, a Discrete, "
        f"or a Dict of the last two, got {space}"
    )
