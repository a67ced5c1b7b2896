"""Remember what a graph of Python objects holds, and put it back into the very same objects.

Every mutable object reached from a root is remembered by a shallow copy of its contents. Identities
are kept, so a door stays one object in the grid, in its room and in an instruction.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.envs.registration import EnvSpec
from minigrid.core.world_object import Wall

from ..interface import Array
from .fast_observation import FastObservation

CONSTANT = frozenset({int, float, complex, bool, str, bytes, type(None)})
IGNORED = (
    # never change
    *(Enum, np.generic, type, FunctionType, MethodType, BuiltinFunctionType, ModuleType),
    # hold nothing that an episode depends on
    *(Space, EnvSpec, FastObservation),
)


class Unrestorable(Exception):
    """Something was reached whose contents cannot be put back."""


class Memento:
    """What everything that `roots` refer to holds at construction; `owner` itself is not followed.

    Raises Unrestorable for anything but containers, arrays, random generators and objects of
    MiniGrid's own classes.
    """

    def __init__(self, roots: Iterable[Any], owner: object) -> None:
        self._dicts: list[tuple[dict[Any, Any], dict[Any, Any]]] = []
        self._lists: list[tuple[list[Any], list[Any]]] = []
        self._sets: list[tuple[set[Any], set[Any]]] = []
        self._arrays: list[tuple[Array, Array]] = []
        self._generators: list[tuple[np.random.Generator, Any]] = []
        self._walls: list[tuple[Any, str]] = []
        pending, seen = list(roots), {id(owner)}
        while pending:
            node = pending.pop()
            if type(node) not in CONSTANT and id(node) not in seen:
                seen.add(id(node))
                pending.extend(self._visit(node))

    def _visit(self, node: Any) -> Iterable[Any]:
        """Remember one object; returns what it refers to."""
        kind = type(node)
        if kind is Wall:  # by far the most objects; nothing but the colour of a wall means anything
            self._walls.append((node, node.color))
            return ()
        if kind is tuple or kind is frozenset or hasattr(kind, "_fields"):  # a named tuple
            return tuple(node)
        if kind is list:
            self._lists.append((node, node.copy()))
            return tuple(node)
        if kind is set:
            self._sets.append((node, node.copy()))
            return tuple(node)
        if kind is np.ndarray and not node.dtype.hasobject:
            self._arrays.append((node, node.copy()))
            return ()
        if kind is np.random.Generator:
            self._generators.append((node, node.bit_generator.state))
            return ()
        if isinstance(node, IGNORED):
            return ()
        held = node if kind is dict else _attributes(node)
        self._dicts.append((held, held.copy()))
        return tuple(held.values())

    def restore(self) -> None:
        """Put everything back."""
        for held, before in self._dicts:
            held.clear()
            held.update(before)
        for items, old in self._lists:
            items[:] = old
        for members, previous in self._sets:
            members.clear()
            members.update(previous)
        for array, values in self._arrays:
            array[...] = values
        for generator, state in self._generators:
            generator.bit_generator.state = state
        for wall, colour in self._walls:
            wall.color = colour


def _attributes(node: Any) -> dict[str, Any]:
    """The attributes of an object of one of MiniGrid's classes, where they are all of its state."""
    kind = type(node)
    slotted = any(vars(base).get("__slots__") for base in kind.mro())
    if slotted or not kind.__module__.startswith("minigrid."):
        raise Unrestorable(f"{kind.__module__}.{kind.__qualname__}")
    attributes: dict[str, Any] = vars(node)
    return attributes
