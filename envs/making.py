"""Making an environment from an id or a factory, and changing it: wrappers around, attributes set.

"CartPole-v1"                  a registered id
"my_package.envs:Foo-v0"       the same, after importing the module that registers it
"my_package.envs:make_foo"     a function or class of a module that gives an environment
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import gymnasium

from .arguments import creator_of, unknown_argument
from .task import Env

Source = str | Callable[..., Env]
MINIGRID = ("MiniGrid-", "BabyAI-", "Sojourn-")
"""Ids that are registered when our room of MiniGrid is imported."""
LIMIT = "max_episode_steps"


@dataclass(frozen=True)
class Changes:
    """What is changed of an environment after it was made.

    `wrappers` go around it in order: `"module:Class"`, or a mapping of the one name to its
    arguments. `attributes` are set on the innermost environment when a task begins; they and the
    arguments of the environment may be drawn for every task (`{uniform: [8, 12]}`, see `draws`).
    """

    wrappers: Sequence[Any] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)


def make_env(source: Source, kwargs: Mapping[str, Any], max_episode_steps: int | None) -> Env:
    """A new environment, without the run-time checker, which costs more than a step.

    Raises ValueError naming the nearest known id, the module that cannot be imported, or the
    arguments that the environment refuses.
    """
    factory = _factory(source) if isinstance(source, str) else source
    if factory is None and LIMIT in kwargs:  # the registry takes it, and none would be passed on
        raise ValueError(
            f"kwargs: {LIMIT} is a key of the task, not of the environment; give it beside the "
            f"id: {LIMIT}={kwargs[LIMIT]}"
        )
    try:
        if factory is not None:
            return _limited(factory(**kwargs), source, max_episode_steps)
        made: Env = gymnasium.make(
            str(source), max_episode_steps=max_episode_steps, disable_env_checker=True, **kwargs
        )
        return made
    except (gymnasium.error.Error, ImportError) as error:
        raise ValueError(f"id: {error}") from error
    except Exception as error:
        name = source_name(source)
        creator = factory or creator_of(name)
        fault = unknown_argument(name, creator, kwargs) if isinstance(error, TypeError) else None
        raise ValueError(
            fault
            or f"id: {name} cannot be made with kwargs {dict(kwargs)} "
            f"({type(error).__name__}: {error})"
        ) from error


def wrapped(env: Env, wrappers: Sequence[Any]) -> Env:
    """`env` inside its wrappers, the first one innermost; raises ValueError naming a bad one."""
    for wrapper in wrappers:
        named = wrapper if isinstance(wrapper, Mapping) else {wrapper: {}}
        if len(named) != 1:
            raise ValueError(f"wrappers: expected {{'module:Class': arguments}}, got {named}")
        ((name, kwargs),) = named.items()
        made = name if callable(name) else _attribute(name, "wrappers")
        try:
            env = made(env, **(kwargs or {}))
        except Exception as error:
            raise ValueError(
                f"wrappers: {name} cannot be put around {env} ({type(error).__name__}: {error})"
            ) from error
    return env


def set_attributes(env: Env, attributes: Mapping[str, Any]) -> None:
    """Set hidden parameters of the innermost environment; raises ValueError for a missing one."""
    inner = env.unwrapped
    for name, value in attributes.items():
        if not hasattr(inner, name):
            known = [key for key in vars(inner) if not key.startswith("_")]
            near = get_close_matches(name, known, n=3, cutoff=0.0)
            raise ValueError(f"attributes: {env} has no {name!r}; nearest: {', '.join(near)}")
        setattr(inner, name, value)


def source_name(source: Source) -> str:
    """What tables call an environment."""
    return source if isinstance(source, str) else getattr(source, "__name__", repr(source))


def frozen(value: Any) -> str:
    """A hashable stand-in for arguments: equal for equal ones."""
    return json.dumps(value, sort_keys=True, default=repr)


def _limited(env: Env, source: Source, max_episode_steps: int | None) -> Env:
    if not isinstance(env, gymnasium.Env):
        raise TypeError(f"expected a gymnasium.Env from {source_name(source)}, got {env!r}")
    if max_episode_steps is None:
        return env
    return gymnasium.wrappers.TimeLimit(env, max_episode_steps)


def _factory(source: str) -> Callable[..., Env] | None:
    """The function or class that "module:name" names; None for a registered id."""
    if source.startswith(MINIGRID):
        import_module(f"{__package__}.minigrid")  # takes a second
    _, colon, name = source.partition(":")
    if not colon or not name.isidentifier():
        return None
    return _attribute(source, "id") if name not in gymnasium.registry else None


def _attribute(name: str, path: str) -> Callable[..., Env]:
    module, _, attribute = name.partition(":")
    try:
        found: Callable[..., Env] = getattr(import_module(module), attribute)
    except ImportError as error:
        raise ValueError(f"{path}: {name}: cannot import {module!r} ({error})") from error
    except AttributeError:
        known = [key for key in vars(import_module(module)) if not key.startswith("_")]
        near = get_close_matches(attribute, known, n=3, cutoff=0.4)
        raise ValueError(
            f"{path}: {module} has no {attribute!r}; nearest: {', '.join(near) or 'none'}"
        ) from None
    except ValueError:
        raise ValueError(f"{path}: expected 'module:name', got {name!r}") from None
    return found
