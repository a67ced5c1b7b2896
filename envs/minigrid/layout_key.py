"""Everything that the planner reads of a layout, as one hashable value: equal layouts, equal plans.

key = (rule, size, cells, what boxes hold, agent, hand, clock, view, what the rule names)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from minigrid.core.grid import Grid
from minigrid.core.world_object import Box, WorldObj
from minigrid.envs.blockedunlockpickup import BlockedUnlockPickupEnv
from minigrid.envs.fetch import FetchEnv
from minigrid.envs.gotodoor import GoToDoorEnv
from minigrid.envs.gotoobject import GoToObjectEnv
from minigrid.envs.keycorridor import KeyCorridorEnv
from minigrid.envs.memory import MemoryEnv
from minigrid.envs.obstructedmaze import ObstructedMazeEnv
from minigrid.envs.putnear import PutNearEnv
from minigrid.envs.redbluedoors import RedBlueDoorEnv
from minigrid.envs.unlock import UnlockEnv
from minigrid.envs.unlockpickup import UnlockPickupEnv
from minigrid.minigrid_env import MiniGridEnv

from .grid_codes import FAMILIAR, cell_codes
from .planner_families import rule_of
from .variants import TwoGoals

NAMED: dict[Callable[..., Any], tuple[str, ...]] = {
    MiniGridEnv.step: (),
    KeyCorridorEnv.step: ("obj",),
    UnlockPickupEnv.step: ("obj",),
    BlockedUnlockPickupEnv.step: ("obj",),
    ObstructedMazeEnv.step: ("obj",),
    FetchEnv.step: ("targetType", "targetColor"),
    PutNearEnv.step: ("move_type", "moveColor", "target_pos"),
    GoToDoorEnv.step: ("target_pos",),
    GoToObjectEnv.step: ("target_pos",),
    UnlockEnv.step: ("door",),
    RedBlueDoorEnv.step: ("red_door", "blue_door"),
    MemoryEnv.step: ("success_pos", "failure_pos"),
    TwoGoals.step: ("success_pos", "failure_pos"),
}
"""What every rule reads of its environment beside the grid.

Not here are missions and puzzles, whose layouts hardly ever come back, and obstacles, whose plans
depend on the state of a generator.
"""


def layout_key(base: Any) -> Hashable | None:
    """The key of the layout that a bare environment stands in; None where it has none.

    Objects are told by their cell, so that a layout whose rule names one inside a box has no key.
    """
    rule, grid = rule_of(base), base.grid
    if rule not in NAMED or type(grid) is not Grid:
        return None
    cells = grid.grid
    things = [cell for cell in cells if cell is not None]
    carried = [] if base.carrying is None else [base.carrying]
    if not all(_is_familiar(thing) for thing in (*things, *carried)):
        return None
    named = [getattr(base, name) for name in NAMED[rule]]
    if any(isinstance(one, WorldObj) and one not in cells for one in named):
        return None
    return (
        rule,
        (grid.width, grid.height),
        b"".join(map(bytes, cell_codes(cells))),
        tuple(_held(thing) for thing in things if type(thing) is Box),
        (*map(int, base.agent_pos), int(base.agent_dir)),
        tuple((thing.encode(), _held(thing)) for thing in carried),
        (base.step_count, base.max_steps),
        (base.agent_view_size, base.see_through_walls),
        tuple(cells.index(one) if isinstance(one, WorldObj) else _plain(one) for one in named),
    )


def _is_familiar(thing: Any) -> bool:
    inner = getattr(thing, "contains", None)
    return type(thing) in FAMILIAR and (inner is None or _is_familiar(inner))


def _held(thing: Any) -> Hashable:
    """What is in a box, and in the box in it."""
    inner = thing.contains
    return None if inner is None else (inner.encode(), _held(inner))


def _plain(value: Any) -> Hashable:
    """A word, or a position as whole numbers."""
    return value if isinstance(value, str) else tuple(map(int, value))
