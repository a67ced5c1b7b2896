"""What an environment can be given as `kwargs`, and what is said of an argument that it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from inspect import signature
from typing import Any

import gymnasium
from gymnasium.envs.registration import load_env_creator

NOT_THE_USERS = ("self", "args", "kwargs", "mission_space")


def creator_of(id: str) -> Callable[..., Any]:
    """The class or function behind a registered id."""
    entry_point = gymnasium.spec(id).entry_point
    if isinstance(entry_point, str):
        return load_env_creator(entry_point)
    assert entry_point is not None  # ids without one are refused when they are made
    return entry_point


def argument_names(creator: Callable[..., Any]) -> list[str]:
    """What a function, or a class and its bases, can be given, outermost first."""
    makers: Iterable[Any] = [creator]
    if isinstance(creator, type):
        makers = [vars(base)["__init__"] for base in creator.__mro__ if "__init__" in vars(base)]
    names: dict[str, None] = {}
    for maker in makers:
        with suppress(ValueError):  # what is written in C may not tell
            names |= dict.fromkeys(signature(maker).parameters)
    return [name for name in names if name not in NOT_THE_USERS]


def unknown_argument(
    name: str, creator: Callable[..., Any], kwargs: Mapping[str, Any]
) -> str | None:
    """One line about the first argument that the environment `name` does not have; None: it has
    all of them.
    """
    known = argument_names(creator)
    for given in kwargs:
        if given not in known:
            return f"kwargs: {name} takes no {given!r}; it takes {', '.join(known) or 'nothing'}"
    return None
