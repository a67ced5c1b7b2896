"""Which MiniGrid environment to make, as a hashable value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import gymnasium
import minigrid  # registers the environments
from gymnasium.spaces import Discrete
from minigrid.minigrid_env import MiniGridEnv

from ..arguments import argument_names, creator_of, unknown_argument
from ..making import LIMIT, MINIGRID
from ..task import Env
from .fast_observation import use_fast_observations
from .snapshot import SnapshotReset
from .wrappers import PermutedActions, QuietReset

gymnasium.register_envs(minigrid)


@dataclass(frozen=True)
class Recipe:
    """A registered environment, its arguments, how many of its actions are used, its wrappers.

    `permuted` environments can rename their actions, `replayed` ones restart fast from a seed they
    were just reset with. Recipes of equal value make environments that can stand in for each other.
    """

    id: str
    kwargs: tuple[tuple[str, Any], ...]
    num_actions: int
    permuted: bool
    replayed: bool

    def make(self) -> Env:
        """A new environment with exact fast observations, without Gymnasium's checking wrappers."""
        env = make_bare(self.id, dict(self.kwargs))
        num_native = num_native_actions(env)
        use_fast_observations(env)
        if self.replayed and env is env.unwrapped:
            env = SnapshotReset(env)
        if self.id.startswith("BabyAI-"):
            env = QuietReset(env)
        if self.permuted or self.num_actions != num_native:
            env = PermutedActions(env, self.num_actions)
        return env

    def plain(self) -> Recipe:
        """The recipe of the same games without renamed actions and without fast restarts."""
        return replace(self, permuted=False, replayed=False)


def make_bare(id: str, kwargs: Mapping[str, Any]) -> Env:
    """The registered environment itself.

    Raises ValueError, naming the nearest valid ids, for an unknown one; for one that is not a
    MiniGrid environment; and for arguments it refuses.
    """
    spec = gymnasium.registry.get(id)
    if spec is None:
        valid = [known for known in gymnasium.registry if known.startswith(MINIGRID)]
        nearest = get_close_matches(id, valid, n=3, cutoff=0.0)
        raise ValueError(f"id: no environment {id!r} is registered; nearest: {', '.join(nearest)}")
    if LIMIT in kwargs:  # the registry takes it, and puts a wrapper around that the planner minds
        raise ValueError(
            f"kwargs: {LIMIT} is not an argument of {id}; its own is max_steps={kwargs[LIMIT]}"
        )
    spec = copy(spec)  # of the registered one, whose version is as asked for
    spec.order_enforce = False
    try:
        env = gymnasium.make(spec, disable_env_checker=True, **kwargs)
    except (TypeError, AssertionError) as error:
        creator = creator_of(id)
        reason = str(error) or type(error).__name__
        told = f"kwargs of {id}: {reason}; it takes {', '.join(argument_names(creator))}"
        raise ValueError(unknown_argument(id, creator, kwargs) or told) from error
    if not isinstance(env.unwrapped, MiniGridEnv):
        raise ValueError(f"id: expected a MiniGrid or BabyAI environment, got {id!r}")
    return env


def num_native_actions(env: Env) -> int:
    """How many actions an environment has; raises ValueError where they are not discrete."""
    if not isinstance(env.action_space, Discrete):
        raise ValueError(f"actions: expected Discrete, got {env.action_space} of {env}")
    return int(env.action_space.n)


def frozen_kwargs(kwargs: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Arguments in a fixed order, with lists (as configuration files have them) as tuples."""
    return tuple((name, _frozen(kwargs[name])) for name in sorted(kwargs))


def _frozen(value: Any) -> Any:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_frozen(item) for item in value)
    return value
