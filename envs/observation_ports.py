"""Where the channels of an observation lie in the native one, for any nesting of spaces.

    Box of uint8, 2 or 3 dimensions -> image [height, width, planes];  other Box -> flat vector
    Discrete -> discrete;  MultiDiscrete -> discrete [size];  MultiBinary -> vector
    Text, MissionSpace -> tokens;  MiniGrid's cell codes -> grid
    Dict, Tuple -> their parts, named by their path: "arm.joint.0"

Sources: `gymnasium.spaces`, `minigrid.minigrid_env.MiniGridEnv.observation_space`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from .interface import INPUTS, PREVIOUS_PARTS, Channel
from .missions import mission_channel, mission_tokens
from .task import Env
from .texts import LONGEST_TEXT, text_channel, text_tokens

Space = gymnasium.Space[Any]
Path = tuple[str | int, ...]
MASK_KEY = "action_mask"
"""A part of a dictionary by this name tells which actions are possible and is no channel."""
PLANES = (1, 3, 4)


@dataclass(frozen=True)
class Port:
    """One channel: where it lies in a native observation, and how it is read there.

    `convert` turns the native part into what the channel's array takes (None: as it is), `shape`
    is the native shape, None for texts.
    """

    path: Path
    channel: Channel
    shape: tuple[int, ...] | None
    convert: Callable[[Any], Any] | None = None

    @property
    def place(self) -> str:
        """The path as it is written in Python."""
        return "observation" + "".join(f"[{key!r}]" for key in self.path)

    def part(self, native: Any) -> Any:
        """The native part that this port reads."""
        for key in self.path:
            native = native[key]
        return native

    def problem(self, native: Any) -> str | None:
        """What an observation lacks of what its space declared; None when it fits."""
        for depth, key in enumerate(self.path):
            there = isinstance(native, Mapping) and key in native
            if not there and not (isinstance(key, int) and _has_index(native, key)):
                path = Port(self.path[: depth + 1], self.channel, None)
                return f"{path.place}: missing"
            native = native[key]
        if self.shape is None:
            return None if isinstance(native, str) else f"{self.place}: expected text"
        found = np.shape(native)
        if found == self.shape:
            return None
        return f"{self.place}: expected shape {self.shape}, got {found}"


def _has_index(native: Any, index: int) -> bool:
    return isinstance(native, tuple | list) and index < len(native)


def observation_ports(env: Env, mission_length: int) -> dict[str, Port]:
    """Channel name -> port, for everything that `env` shows; its action mask is left out.

    Raises ValueError naming the part of a space that no channel can carry.
    """
    space = env.observation_space
    if isinstance(space, spaces.Dict) and {"image", "direction", "mission"} <= set(space.spaces):
        return _minigrid_ports(env, space, mission_length)
    if isinstance(space, spaces.Box) and _shows_cells(env, space):
        return {"grid": Port((), Channel("grid", space.shape), space.shape)}
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        port = leaf_port(space, (), mission_length)
        return {port.channel.kind: port}
    ports = {}
    for path, leaf in leaves(space, ()):
        if path == (MASK_KEY,):
            continue
        name = ".".join(map(str, path))
        if name in (*INPUTS, PREVIOUS_PARTS):
            raise ValueError(f"observation_space: the key {name!r} is an input of the agent")
        if name in ports:
            raise ValueError(f"observation_space: two parts have the path {name!r}; rename one")
        ports[name] = leaf_port(leaf, path, mission_length)
    return ports


def leaves(space: Space, path: Path) -> Iterator[tuple[Path, Space]]:
    """Every space inside nested Dict and Tuple spaces that is neither, with its path."""
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from leaves(part, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for index, part in enumerate(space.spaces):
            yield from leaves(part, (*path, index))
    else:
        yield path, space


def leaf_port(space: Space, path: Path, mission_length: int) -> Port:
    """The port of one space; raises ValueError for one that no channel can carry."""
    if isinstance(space, spaces.Box) and 0 not in space.shape:
        return _box_port(space, path)
    if isinstance(space, spaces.Discrete):
        channel, start = Channel("discrete", (), int(space.n)), int(space.start)
        return Port(path, channel, (), (lambda value: value - start) if start else None)
    if isinstance(space, spaces.MultiDiscrete):
        channel = Channel("discrete", (space.nvec.size,), int(space.nvec.max()))
        first = space.start
        return Port(path, channel, space.shape, lambda value: np.ravel(value - first))
    if isinstance(space, spaces.MultiBinary):
        size = int(np.prod(space.shape))
        return Port(path, Channel("vector", (size,)), space.shape, np.ravel)
    if isinstance(space, spaces.Text):
        length = min(space.max_length, LONGEST_TEXT)
        return Port(path, text_channel(length), None, lambda text: text_tokens(text, length))
    if _is_a(space, "MissionSpace"):
        return _mission_port(path, mission_length)
    raise ValueError(
        f"observation_space{''.join(f'[{key!r}]' for key in path)}: expected a Box, Discrete, "
        "MultiDiscrete, MultiBinary, Text, MiniGrid's missions, or a Dict or Tuple of these, "
        f"got {space}"
    )


def _box_port(space: spaces.Box, path: Path) -> Port:
    shape = space.shape
    if space.dtype == np.uint8 and len(shape) == 2:
        return Port(path, Channel("image", (*shape, 1)), shape, lambda value: value[..., None])
    if space.dtype == np.uint8 and len(shape) == 3:
        if shape[2] not in PLANES and (shape[0] in PLANES or shape[0] < shape[2] == shape[1]):
            image = Channel("image", (shape[1], shape[2], shape[0]))
            return Port(path, image, shape, lambda value: np.moveaxis(value, 0, -1))
        return Port(path, Channel("image", shape), shape)
    channel = Channel("vector", (int(np.prod(shape)),))
    return Port(path, channel, shape, None if len(shape) == 1 else np.ravel)


def _mission_port(path: Path, length: int) -> Port:
    return Port(path, mission_channel(length), None, lambda text: mission_tokens(text, length))


def _minigrid_ports(env: Env, space: spaces.Dict, mission_length: int) -> dict[str, Port]:
    """Cell codes as `grid`, pixels as `image`, then direction, mission and what wrappers add."""
    ports: dict[str, Port] = {}
    own = ("image", "direction", "mission")
    for key in (*own, *(key for key in space.spaces if key not in own)):
        for path, part in leaves(space[key], (key,)):
            if key == "image" and _shows_cells(env, part):
                shape = part.shape or ()
                ports["grid"] = Port(path, Channel("grid", shape), shape)
            else:
                ports[".".join(map(str, path))] = leaf_port(part, path, mission_length)
    return ports


def _shows_cells(env: Env, space: Space) -> bool:
    """Whether an array of shape [height, width, 3] holds MiniGrid's cell codes, not pixels."""
    shape = space.shape or ()
    return (
        _is_a(env.unwrapped, "MiniGridEnv")
        and len(shape) == 3
        and shape[2] == 3
        and "RGBImg" not in str(env)
    )


def _is_a(thing: object, name: str) -> bool:
    """Whether a class of this name is among the bases: minigrid is imported by those who use it."""
    return any(base.__name__ == name for base in type(thing).__mro__)
