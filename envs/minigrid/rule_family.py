"""Rooms whose rules and goals are drawn anew for every task.

Floor and ceiling are pooled over draws of puzzles and layouts: the mean return of uniformly random
actions, and the mean best return that the planner proves (see `reference`).
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache

import numpy as np

from ..adapter import Missions, interface_of
from ..evidence import Evidence, standard_error
from ..interface import Interface
from ..seeding import draw_seed, generator
from ..task import Env, Family, InstanceRule, Reference, Task
from .planner import optimal_return, plan
from .production import Puzzle, draw_puzzle
from .recipe import Recipe, frozen_kwargs
from .reference import (
    CEILING_INSTANCES,
    CEILING_NODES,
    FLOOR_EPISODES,
    MAX_OPTIMA,
    layout_seed,
)
from .remembered import Remembered
from .rule_room import NUM_ACTIONS, RuleRoom

MAX_RULES, MAX_DISTRACTORS = 2, 3

_optima = Remembered[tuple[Recipe, Puzzle, int], float](MAX_OPTIMA)


class HiddenReactions(Family):
    """Rooms of `size` cells, walls included, with up to `max_rules` production rules per task.

    `num_distractors` more things lie about that no rule knows. Actions: left, right, forward, pick
    up, drop. `missions` shows the goal in words or hides it; the rules are always hidden. Raises
    ValueError for an argument out of range.
    """

    def __init__(
        self,
        size: int = 6,
        max_rules: int = 2,
        num_distractors: int = 1,
        max_steps: int = 80,
        instance: InstanceRule = "fixed",
        missions: Missions = "ignored",
        name: str | None = None,
    ) -> None:
        for key, value, most in (
            ("max_rules", max_rules, MAX_RULES),
            ("num_distractors", num_distractors, MAX_DISTRACTORS),
        ):
            if not 0 <= value <= most:
                raise ValueError(f"{key}: expected 0 to {most}, got {value}")
        self.name = name or f"reactions-{size}x{size}"
        self.instance: InstanceRule = instance
        self.max_rules, self.num_distractors = max_rules, num_distractors
        kwargs = frozen_kwargs({"size": size, "max_steps": max_steps})
        replayed = instance == "fixed"
        self._recipe = Recipe("Sojourn-Rules-v0", kwargs, NUM_ACTIONS, False, replayed)
        env = self._recipe.make()
        self._interface = interface_of(env, missions)
        env.close()

    @property
    def interface(self) -> Interface:
        """Channels `grid`, `direction` (and `mission`), and five actions."""
        return self._interface

    def draw(self, rng: np.random.Generator) -> RuleTask:
        """A task with its goal and rules; its layout comes from the seed of the segment."""
        puzzle = draw_puzzle(rng, self.max_rules, self.num_distractors)
        task = RuleTask(self.name, self._recipe, puzzle)
        task.instance = self.instance
        task.reference = _measured(self._recipe.plain(), self.max_rules, self.num_distractors)
        return task


class RuleTask(Task):
    """A room in which the things react as `puzzle` says."""

    pays_success = True

    def __init__(self, name: str, recipe: Recipe, puzzle: Puzzle) -> None:
        self.name = name
        self.puzzle = puzzle
        self._recipe = recipe

    @property
    def env_key(self) -> Hashable:
        """Tasks that differ in their puzzles alone share an environment."""
        return self._recipe

    def make_env(self) -> Env:
        """A new environment, with a puzzle of its own until a task is put into it."""
        return self._recipe.make()

    def configure(self, env: Env) -> None:
        """Set goal, rules and things; they are there from the next reset on."""
        room_of(env).puzzle = self.puzzle

    def optimal_return(self, env: Env) -> float:
        """Best return of the layout `env` was just reset to; NaN where it is not proven."""
        seed = layout_seed(env)
        if seed is None:
            return optimal_return(env, range(NUM_ACTIONS))
        key = (self._recipe.plain(), self.puzzle, seed)
        return _optima.get(key, lambda: optimal_return(env, range(NUM_ACTIONS)))


def room_of(env: Env) -> RuleRoom:
    """The room under its wrappers; raises ValueError where it is something else."""
    found = env.unwrapped
    if not isinstance(found, RuleRoom):
        raise ValueError(f"expected a room with rules, got {env}")
    return found


@cache
def _measured(recipe: Recipe, max_rules: int, num_distractors: int) -> Reference:
    env, rng = recipe.make(), generator(0)
    bounds, returns = [], []
    for number in range(FLOOR_EPISODES):
        room_of(env).puzzle = draw_puzzle(rng, max_rules, num_distractors)
        env.reset(seed=draw_seed(rng))
        if number < CEILING_INSTANCES:
            found = plan(env, range(NUM_ACTIONS), CEILING_NODES)
            assert found is not None
            bounds.append(found.return_bounds)
        returns.append(_random_return(env, rng))
    env.close()
    best = np.array(bounds)
    doubt = float(np.ptp(best, axis=1).mean()) / 2
    return Reference(
        floor=float(np.mean(returns)),
        ceiling=float(best.mean()),
        kind="planner",
        floor_error=standard_error(np.array(returns)),
        ceiling_error=float(np.hypot(standard_error(best.mean(1)), doubt)),
        reward_range=1.0,
        evidence=Evidence(num_ceiling=len(best), num_floor=len(returns)),
    )


def _random_return(env: Env, rng: np.random.Generator) -> float:
    while True:
        _, reward, terminated, truncated, _ = env.step(int(rng.integers(NUM_ACTIONS)))
        if terminated or truncated:
            return float(reward)
