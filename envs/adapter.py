"""From the native spaces of a Gymnasium environment to the common interface and back.

native observation -> channels (`observation_ports`),  action -> native action (`action_ports`)
fewer options and parts than the stream has -> masked
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from .action_ports import ActionPort, action_port
from .interface import Array, Interface, Observation, channel_name
from .observation_ports import MASK_KEY, Port, observation_ports
from .task import Env

Missions = Literal["ignored", "tokens"]
Write = Callable[[Any], None]
MISSION_LENGTH = 40


def interface_of(
    env: Env, missions: Missions = "ignored", mission_length: int = MISSION_LENGTH
) -> Interface:
    """The smallest interface that shows all of an environment.

    `missions="tokens"` adds the channel `mission` of `mission_length` words to MiniGrid and BabyAI.
    Raises ValueError naming the part of a space that no channel can carry.
    """
    ports = observation_ports(env, mission_length)
    if missions == "ignored" and "direction" in ports:
        ports.pop("mission", None)
    if not ports:
        raise ValueError(f"observation_space: {env} shows nothing, got {env.observation_space}")
    first, branches, num_reals = _parts(action_port(env.action_space))
    channels = {name: port.channel for name, port in ports.items()}
    return Interface(channels, first, branches, num_reals)


class Adapter:
    """Translates between one kind of environment and a stream's interface.

    `natives[a]` is the environment's own value of action `a` where actions are single integers,
    `native(parts)` that of an action of several parts. Channels that the interface lacks are not
    shown; raises ValueError where the interface is too small for the environment.
    """

    def __init__(self, env: Env, interface: Interface) -> None:
        mission = interface.channels.get("mission")
        length = (
            mission.shape[0] if mission is not None and mission.kind == "tokens" else MISSION_LENGTH
        )
        self.ports: dict[str, Port] = {}
        for name, port in observation_ports(env, length).items():
            name = channel_name(interface.channels, name, port.channel)
            wide = interface.channels.get(name)
            if wide is None:
                continue
            if wide.union(port.channel) != wide:
                raise ValueError(f"channel {name!r}: {env} shows {port.channel}, expected {wide}")
            self.ports[name] = port
        self._interface = interface
        self._actions = action_port(env.action_space)
        _check_room(env, self._actions, interface)
        self.action_mask = self._full_mask()
        space = env.observation_space
        self.shows_mask = isinstance(space, spaces.Dict) and MASK_KEY in space.spaces
        single = interface.num_parts == 1
        self.natives = (
            tuple(self._actions.native([option], []) for option in range(self._actions.choices[0]))
            if single
            else ()
        )

    def native(self, parts: Sequence[float]) -> Any:
        """The environment's own action for an action of several parts."""
        num_choices = len(self._interface.choices)
        own = self._actions
        choices = [int(part) for part in parts[: len(own.choices)]]
        return own.native(choices, parts[num_choices : num_choices + own.num_reals])

    def mask(self, told: Any) -> Array:
        """The action mask of a step, from what the environment tells of its own options.

        `told` has an entry per option (for several choices a sequence of such). Raises ValueError
        for another size and where a choice is left without an option.
        """
        parts = told if isinstance(told, tuple | list) and np.ndim(told[0]) else [told]
        flat = np.concatenate([np.ravel(part) for part in parts]).astype(bool)
        sizes = self._actions.choices
        if flat.size != sum(sizes):
            raise ValueError(f"action_mask: expected {sum(sizes)} entries, got {flat.size}")
        mask = self.action_mask.copy()
        start = 0
        for place, size, room in zip(
            _starts(self._interface), sizes, self._interface.choices, strict=False
        ):
            options = flat[start : start + size]
            if not options.any():
                raise ValueError("action_mask: expected at least one possible action, got none")
            mask[place : place + room] = False
            mask[place : place + size] = options
            start += size
        return mask

    def _full_mask(self) -> Array:
        interface, own = self._interface, self._actions
        mask = np.zeros(interface.mask_width, bool)
        for index, start in enumerate(_starts(interface)):
            # A choice that the task lacks has one option: nothing.
            mask[start : start + (own.choices[index] if index < len(own.choices) else 1)] = True
        reals = sum(interface.choices)
        mask[reals : reals + own.num_reals] = True
        return mask

    def writer(self, arrays: Observation, row: int) -> Write:
        """A function that writes a native observation into `row` of the channel arrays."""
        views: dict[str, Array] = {}
        for name, port in self.ports.items():
            corner: tuple[Any, ...] = tuple(slice(size) for size in port.channel.shape)
            views[name] = arrays[name][(row, *corner, ...)]
        if len(views) == 1 and not (port := next(iter(self.ports.values()))).path:
            return _whole_writer(views.popitem()[1], port)
        plain: list[tuple[Any, Array]] = []
        others: list[tuple[Port, Array]] = []
        for name, port in self.ports.items():
            if port.convert is None and len(port.path) == 1:
                plain.append((port.path[0], views[name]))
            else:
                others.append((port, views[name]))

        def write(native: Any) -> None:
            for key, view in plain:
                view[...] = native[key]
            for port, view in others:
                part = port.part(native)
                view[...] = part if port.convert is None else port.convert(part)

        return write

    def problem(self, native: Any) -> str | None:
        """What an observation lacks of what its space declared; None when it fits."""
        problems = (port.problem(native) for port in self.ports.values())
        return next((problem for problem in problems if problem is not None), None)


def _whole_writer(view: Array, port: Port) -> Write:
    """Writes a native observation that is one channel."""
    convert = port.convert
    if convert is None:
        return lambda native: view.__setitem__(..., native)
    return lambda native: view.__setitem__(..., convert(native))


def _parts(port: ActionPort) -> tuple[int, tuple[int, ...], int]:
    """The first choice (one option where there is none), the others, the number of reals."""
    first, *branches = port.choices or (1,)
    return first, tuple(branches), port.num_reals


def _starts(interface: Interface) -> list[int]:
    """Where the options of every choice begin in the action mask."""
    starts: list[int] = np.cumsum((0, *interface.choices[:-1])).tolist()
    return starts


def _check_room(env: Env, port: ActionPort, interface: Interface) -> None:
    first, branches, num_reals = _parts(port)
    if first > interface.num_actions:
        raise ValueError(f"actions: {env} has {first}, expected at most {interface.num_actions}")
    room = Interface({}, first, branches, num_reals).union(interface)
    if (room.branches, room.num_reals) != (interface.branches, interface.num_reals):
        raise ValueError(
            f"actions: {env} has choices {port.choices} and {num_reals} reals, expected at most "
            f"{interface.choices} and {interface.num_reals}"
        )
