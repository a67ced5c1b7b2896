"""Best play of MiniGrid tasks: the planner's shortest plan, under the names the actions have."""

from __future__ import annotations

from collections.abc import Sequence

from ..best_play import best_actions
from ..task import Env
from .family import MinigridTask
from .planner import plan
from .rule_family import RuleTask
from .rule_room import NUM_ACTIONS


@best_actions.register
def best_minigrid_actions(task: MinigridTask, env: Env) -> Sequence[int]:
    """The rest of the episode; empty where the planner knows no way to success in time."""
    return _planned(env, list(task.permutation))


@best_actions.register
def best_rule_actions(task: RuleTask, env: Env) -> Sequence[int]:
    """The same for rooms of hidden rules."""
    del task
    return _planned(env, list(range(NUM_ACTIONS)))


def _planned(env: Env, native: list[int]) -> Sequence[int]:
    """The shortest plan with action a playing `native[a]`."""
    found = plan(env, native)
    if found is None or found.actions is None:
        return ()
    return [native.index(action) for action in found.actions]
