"""How well a MiniGrid environment can be played, on one instance and pooled over many.

    ceiling = mean best return over instances,   floor = mean return of uniformly random actions

with standard errors. Neither depends on what the actions are called. Tasks that hide something have
a second, informed ceiling (see `informed`), which does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cache

import numpy as np
from minigrid.envs.babyai.core.verifier import SeqInstr

from ..evidence import Evidence, Informed, standard_error
from ..interface import Array
from ..task import Env, Reference
from .informed import hidden_part, informed_ceiling
from .layout_key import layout_key
from .planner import MAX_NODES, optimal_return, plan
from .recipe import Recipe
from .remembered import Remembered
from .snapshot import SnapshotReset
from .wrappers import PermutedActions, QuietReset

CEILING_INSTANCES = 100
CEILING_NODES = 20_000  # per instance; what takes longer enters as a bound
SEVERAL_NODES = 5_000  # the same of missions of several parts, which are met anew at every reset
FLOOR_EPISODES = 300
FLOOR_STEPS = 50_000  # short episodes are played on to this many steps
MAX_OPTIMA = 4096

Known = Remembered[tuple[Recipe, Hashable], float]
"""Values by recipe and the seed, or the layout, of an instance."""

_optima = Known(MAX_OPTIMA)
_informed_values = {is_met: Known(MAX_OPTIMA) for is_met in (False, True)}


def instance_optimum(env: Env, recipe: Recipe) -> float:
    """Best return of the instance that an environment of this recipe was just reset to.

    NaN where the planner does not know it exactly. Instances are remembered, by their seed and by
    their layout.
    """
    if not _is_ours(env):
        return float("nan")
    max_nodes = _max_nodes(env, MAX_NODES)

    def best() -> float:
        return optimal_return(env, range(recipe.num_actions), max_nodes)

    return _of_instance(_optima, env, recipe.plain(), best)


def instance_informed(env: Env, recipe: Recipe, episode: int) -> float:
    """Informed ceiling of that instance as episode `episode` of its task; NaN where unknown."""
    if not _is_ours(env):
        return float("nan")

    def ceiling() -> float:
        return informed_ceiling(env, recipe, episode).value

    return _of_instance(_informed_values[episode > 0], env, recipe, ceiling)


def _of_instance(known: Known, env: Env, recipe: Recipe, find: Callable[[], float]) -> float:
    """What is known of the instance in `env`, else what `find` gives."""

    def by_layout() -> float:
        layout = layout_key(env.unwrapped)
        return find() if layout is None else known.get((recipe, layout), find)

    seed = layout_seed(env)
    return by_layout() if seed is None else known.get((recipe, seed), by_layout)


@cache
def pooled_reference(recipe: Recipe) -> Reference | None:
    """Floor and ceilings of a recipe, measured once per process; None where none is known."""
    measured = _measured(recipe.plain())
    return None if measured is None else replace(measured, informed=_informed(recipe))


def _informed(recipe: Recipe) -> Informed | None:
    """The informed ceiling pooled over instances; None where nothing is hidden or known of it."""
    env = recipe.make()
    try:
        hidden = hidden_part(recipe, env)
        if hidden is None:
            return None
        values, exact = [], []
        for seed in range(CEILING_INSTANCES):
            env.reset(seed=seed)
            found = [informed_ceiling(env, recipe, episode) for episode in (0, 1)]
            values.append([ceiling.value for ceiling in found])
            exact.append([ceiling.is_exact for ceiling in found])
    finally:
        env.close()
    first, later = np.array(values).T
    if not (np.isfinite(first).all() and np.isfinite(later).all()):
        return None
    return Informed(
        first=float(first.mean()),
        later=float(later.mean()),
        first_is_exact=all(one for one, _ in exact),
        later_is_exact=all(other for _, other in exact),
        hidden=hidden,
        first_error=standard_error(first),
        later_error=standard_error(later),
    )


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
            floor_error=standard_error(returns),
            ceiling_error=float(np.hypot(standard_error(best), doubt.mean())),
            reward_range=1.0 - min(0.0, float(returns.min())),  # running into things may cost
            evidence=Evidence(num_ceiling=len(best), num_floor=len(returns)),
        )
    finally:
        env.close()


def _best_returns(env: Env, recipe: Recipe) -> Array | None:
    """Bounds `[instances, 2]` of the best returns of fixed instances; None where one is unknown."""
    bounds = []
    for seed in range(CEILING_INSTANCES):
        env.reset(seed=seed)
        max_nodes = _max_nodes(env, CEILING_NODES)
        found = plan(env, range(recipe.num_actions), max_nodes) if _is_ours(env) else None
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
        longest = max(1, env.get_wrapper_attr("max_steps"))  # of 0 steps one is played
        for action in rng.integers(num_actions, size=longest).tolist():
            _, reward, terminated, truncated, _ = env.step(action)
            total += float(reward)
            num_steps += 1
            if terminated or truncated:
                break
        returns.append(total)
    return np.array(returns)


def _max_nodes(env: Env, usual: int) -> int:
    """How many states to look at for one instance."""
    instruction = getattr(env.unwrapped, "instrs", None)
    return min(usual, SEVERAL_NODES) if isinstance(instruction, SeqInstr) else usual


def _is_ours(env: Env) -> bool:
    """Whether no wrapper is in the way that could change what the planner reads."""
    while isinstance(env, PermutedActions | QuietReset | SnapshotReset):
        env = env.env
    return env is env.unwrapped


def layout_seed(env: Env) -> int | None:
    """Seed of the present layout; None where it came from an unseeded reset or is not kept."""
    while isinstance(env, PermutedActions | QuietReset):
        env = env.env
    return env.layout_seed if isinstance(env, SnapshotReset) else None
