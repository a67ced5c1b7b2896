"""Informed ceilings: the best return of who knows layout and rules, but not what a task hides.

    Memory     the cue and one end must have been seen before the right end can be chosen:
               max over poses p where both are known of  mean over ends e of R(n_p + d(p, e))
    TwoGoals   nobody can know which tile pays: half of R(steps to the nearer one)
    permuted   an action is known once it was tried, V_t(pose, unknown) by backward induction
    R(k) = 1 - 0.9 k / max_steps,  0 beyond max_steps

What is hidden has equal chances: the side that is right, the tile, the permutation. The first two
are exact; so is the first episode under a permutation of up to three moves in a layout without
things (a turn shows, and what does not turn walks). Everywhere else the value is a bound from above
and is declared as one. The layout counts as known, which makes every value a ceiling for agents
that see only part of it.

Source: Kaelbling, Littman & Cassandra (1998), planning in belief space; sight by MiniGrid's own
`gen_obs_grid`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minigrid.envs.memory import MemoryEnv

from ..task import Env
from .informed_search import finding_out, guessing, looking_first
from .planner import optimal_return
from .planner_families import RightCell, goal_of
from .planner_model import Unplannable, World
from .pose_graph import NUM_MOVES, pose_graph
from .recipe import Recipe
from .variants import TwoGoals

CUE, COLOUR, MEANINGS = "the cue", "which tile pays", "what the actions do"


class Ceiling(NamedTuple):
    """A value and whether it is the optimum or only a bound from above."""

    value: float
    is_exact: bool


def hidden_part(recipe: Recipe, env: Env) -> str | None:
    """What a task of this recipe hides from whoever meets it first; None where nothing."""
    if recipe.permuted:
        return MEANINGS
    if isinstance(env.unwrapped, TwoGoals):
        return COLOUR
    return CUE if isinstance(env.unwrapped, MemoryEnv) else None


def informed_ceiling(env: Env, recipe: Recipe, episode: int) -> Ceiling:
    """Of the instance that `env` was just reset to, as episode `episode` of its task."""
    hidden = hidden_part(recipe, env)
    if hidden is None or (episode > 0 and (hidden != CUE or recipe.replayed)):
        # What was hidden has been met. Of meanings, only those that the first episode needed.
        return Ceiling(_best(env, recipe), hidden != MEANINGS)
    base: Any = env.unwrapped
    try:
        world = World(base)
        goal = goal_of(world, base)
    except Unplannable:
        return Ceiling(_best(env, recipe), False)
    graph = pose_graph(world, goal)
    if graph is None or recipe.num_actions < NUM_MOVES:
        return Ceiling(_best(env, recipe), False)
    start, max_steps = world.start.pose, int(base.max_steps)
    if hidden == MEANINGS:
        others = recipe.num_actions - NUM_MOVES
        value = float(finding_out(graph, max_steps, others)[start])
        # A move that does not turn is forward; of several that change nothing none is told apart.
        return Ceiling(value, others == 0 and not isinstance(goal, RightCell))
    assert isinstance(goal, RightCell)
    if hidden == COLOUR:
        return Ceiling(guessing(graph, goal.ends, start, max_steps), True)
    return Ceiling(looking_first(base, graph, goal.ends, start), True)


def _best(env: Env, recipe: Recipe) -> float:
    return optimal_return(env, range(recipe.num_actions))
