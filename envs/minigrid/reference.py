"""How well a MiniGrid environment can be played, on one instance and pooled over many.

    ceiling = mean best return over instances,   floor = mean return of uniformly random actions

with standard errors. Neither depends on what the actions are called.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ..interface import Array
from ..task import Env, Reference
from .planner import optimal_return, plan
from .recipe import Recipe
from .snapshot import SnapshotReset
from .wrappers import PermutedActions, QuietReset

CEILING_INSTANCES = 100
CEILING_NODES = 20_000  # per instance; what takes longer enters as a bound
FLOOR_EPISODES = 300
FLOOR_STEPS = 50_000  # short episodes are played on to this many steps
MAX_OPTIMA = 4096

_optima: dict[tuple[Recipe, int], float] = {}


def instance_optimum(env: Env, recipe: Recipe) -> float:
    """Best return of the instance that an environment of this recipe was just reset to.

    NaN where the planner does not know it exactly. Instances with a seed are remembered.
    """
    seed = _layout_seed(env)
    if seed is None:
        return _optimum(env, recipe)
    if len(_optima) >= MAX_OPTIMA:
        _optima.clear()
    key = (recipe.plain(), seed)
    if key not in _optima:
        _optima[key] = _optimum(env, recipe)
    return _optima[key]


def pooled_reference(recipe: Recipe) -> Reference | None:
    """Floor and ceiling of a recipe, measured once per process; None where no ceiling is known."""
    return _measured(recipe.plain())


@cache
def _measured(recipe: Recipe) -> Reference | None:
    env = recipe.make()
    try:
        bounds = _best_returns(env, recipe)
        if bounds is None:
            return None
        best, doubt = bounds.mean(axis=1), np.ptp(bounds, axis=1) / 2
        returns = _random_returns(env, recipe.num_actions)
        return Reference(
            floor=float(returns.mean()),
            ceiling=float(best.mean()),
            kind="planner",
            floor_error=_standard_error(returns),
            ceiling_error=float(np.hypot(_standard_error(best), doubt.mean())),
            reward_range=1.0,
        )
    finally:
        env.close()


def _best_returns(env: Env, recipe: Recipe) -> Array | None:
    """Bounds `[instances, 2]` of the best returns of fixed instances; None where one is unknown."""
    bounds = []
    for seed in range(CEILING_INSTANCES):
        env.reset(seed=seed)
        found = plan(env, range(recipe.num_actions), CEILING_NODES) if _is_ours(env) else None
        if found is None:
            return None
        bounds.append(found.return_bounds)
    return np.array(bounds)


def _random_returns(env: Env, num_actions: int) -> Array:
    """Returns of episodes of uniformly random actions on fixed instances."""
    rng = np.random.default_rng(0)
    returns: list[float] = []
    num_steps = 0
    while len(returns) < FLOOR_EPISODES or num_steps < FLOOR_STEPS:
        env.reset(seed=len(returns))
        total = 0.0
        for action in rng.integers(num_actions, size=env.get_wrapper_attr("max_steps")).tolist():
            _, reward, terminated, truncated, _ = env.step(action)
            total += float(reward)
            num_steps += 1
            if terminated or truncated:
                break
        returns.append(total)
    return np.array(returns)


def _standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _optimum(env: Env, recipe: Recipe) -> float:
    return optimal_return(env, range(recipe.num_actions)) if _is_ours(env) else float("nan")


def _is_ours(env: Env) -> bool:
    """Whether no wrapper is in the way that could change what the planner reads."""
    while isinstance(env, PermutedActions | QuietReset | SnapshotReset):
        env = env.env
    return env is env.unwrapped


def _layout_seed(env: Env) -> int | None:
    while isinstance(env, PermutedActions | QuietReset):
        env = env.env
    return env.layout_seed if isinstance(env, SnapshotReset) else None
