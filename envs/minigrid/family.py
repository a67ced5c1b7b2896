"""Tasks from any registered MiniGrid or BabyAI environment, with hidden action meanings if wanted.

    permuted: action a of a task plays native action p(a), p uniform over the permutations, drawn
    anew for every task

Nothing shows p but its effects, so no policy is good at the first try. Source of the environments:
Chevalier-Boisvert et al. 2023, arXiv:2306.13831 (MiniGrid); Chevalier-Boisvert et al. 2019,
arXiv:1810.08272 (BabyAI).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from ..adapter import Missions, interface_of
from ..choices import check_choice
from ..interface import Interface
from ..task import Env, Family, InstanceRule, Reference, Task
from .recipe import Recipe, frozen_kwargs, make_bare, num_native_actions
from .reference import instance_informed, instance_optimum, pooled_reference
from .wrappers import PermutedActions

ActionMeaning = Literal["native", "permuted"]
MEMORY_FROM_CUE = "Sojourn-Memory-v0"


class MinigridFamily(Family):
    """Tasks of one environment id.

    `kwargs` go to the environment (`max_steps=40`). A task has the first `num_actions` of the
    native actions left, right, forward, pickup, drop, toggle, done (None: all that the environment
    has), with `native` or `permuted` meaning. `instance` says whether the episodes of a segment
    replay one layout or draw a new one each; `missions` whether the mission is an observation
    channel. `name` defaults to the id. Raises ValueError for an unknown id (naming the nearest
    ones), arguments the environment refuses, an environment that cannot be played here, and an
    unknown choice.
    """

    def __init__(
        self,
        id: str,
        kwargs: Mapping[str, Any] | None = None,
        action_meaning: ActionMeaning = "native",
        num_actions: int | None = None,
        instance: InstanceRule = "fixed",
        missions: Missions = "ignored",
        name: str | None = None,
    ) -> None:
        check_choice("action_meaning", action_meaning, ActionMeaning)
        check_choice("instance", instance, InstanceRule)
        check_choice("missions", missions, Missions)
        permuted = action_meaning == "permuted"
        self.instance = instance
        self.name = name if name is not None else id + (" permuted" if permuted else "")
        arguments = frozen_kwargs(kwargs or {})
        if num_actions is None:
            num_actions = num_native_actions(make_bare(id, dict(arguments)))
        self.recipe = Recipe(id, arguments, num_actions, permuted, instance == "fixed")
        env = self.recipe.make()
        seen, width = interface_of(env, missions), num_actions**2 if permuted else 0
        self._interface = replace(seen, descriptor_width=width)
        try:
            env.reset(seed=0)
        except Exception as error:
            raise ValueError(f"id: {id} cannot be played: {error}") from error

    @property
    def interface(self) -> Interface:
        """Channels `grid`, `direction` (and `mission`), and `num_actions`."""
        return self._interface

    def draw(self, rng: np.random.Generator) -> MinigridTask:
        """A task; its permutation comes from `rng`, its layout from the seed of the segment."""
        actions = range(self.recipe.num_actions)
        permutation = rng.permutation(actions).tolist() if self.recipe.permuted else actions
        return MinigridTask(self.name, self.recipe, self.instance, permutation)


class MinigridTask(Task):
    """A MiniGrid environment in which action a plays native action `permutation[a]`.

    `reference` is measured when it is first asked for, once per process for equal recipes; it can
    be set.
    """

    pays_success = True

    def __init__(
        self, name: str, recipe: Recipe, instance: InstanceRule, permutation: Sequence[int]
    ) -> None:
        self.name = name
        self.instance = instance
        self.permutation = tuple(permutation)
        self._recipe = recipe
        if recipe.id == MEMORY_FROM_CUE:
            self.lag = int(dict(recipe.kwargs).get("size", 13)) - 1  # cells from cue to choice
        self._given: Reference | None = None

    @property
    def env_key(self) -> Recipe:
        """Tasks that differ in their permutations alone share an environment."""
        return self._recipe

    def make_env(self) -> Env:
        """A new environment, its actions not renamed yet."""
        return self._recipe.make()

    def configure(self, env: Env) -> None:
        """Give the actions the meaning they have in this task."""
        if isinstance(env, PermutedActions):
            env.permutation = self.permutation

    def descriptor(self) -> Sequence[float]:
        """Which action plays every native one, one-hot; nothing where that is not hidden."""
        size = len(self.permutation) if self._recipe.permuted else 0
        return [float(native == i) for i in range(size) for native in self.permutation]

    def optimal_return(self, env: Env) -> float:
        """Best return of the layout `env` was just reset to; NaN where it is not known exactly."""
        return instance_optimum(env, self._recipe)

    def informed_return(self, env: Env, episode: int) -> float:
        """Best expected return without knowing the cue, the tile or the action meanings."""
        return instance_informed(env, self._recipe, episode)

    @property
    def reference(self) -> Reference | None:
        """Pooled floor and ceiling; None where the planner does not know the rules."""
        return self._given if self._given is not None else pooled_reference(self._recipe)

    @reference.setter
    def reference(self, reference: Reference | None) -> None:
        self._given = reference
