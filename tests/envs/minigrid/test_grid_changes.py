"""Fast observations notice whatever changes behind their back: nothing announces a change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from minigrid.core.grid import Grid
from minigrid.core.world_object import Ball, Box, Door, Key, Wall

from sojourn.envs.minigrid import use_fast_observations

Same = Callable[[dict[str, Any], dict[str, Any]], None]
Make = Callable[..., Any]


def open_far_door(env: Any) -> None:
    door = next(cell for cell in env.grid.grid if isinstance(cell, Door))
    door.is_locked, door.is_open = False, True


def lock_door(env: Any) -> None:
    door = next(cell for cell in env.grid.grid if isinstance(cell, Door))
    door.is_locked, door.is_open = True, False


def paint_wall(env: Any) -> None:
    env.grid.get(0, 3).color = "red"


def paint_key(env: Any) -> None:
    next(cell for cell in env.grid.grid if isinstance(cell, Key)).color = "purple"


def write_cell(env: Any) -> None:
    env.grid.grid[2 * env.width + 2] = Ball("red")


def write_wall(env: Any) -> None:
    env.grid.set(3, 2, Wall())


def clear_cell(env: Any) -> None:
    env.grid.grid[0] = None


def share_object(env: Any) -> None:
    wall = Wall("blue")
    env.grid.grid[10], env.grid.grid[20] = wall, wall


def replace_list(env: Any) -> None:
    env.grid.grid = [None] * len(env.grid.grid)


def replace_grid(env: Any) -> None:
    env.grid = Grid(11, 6)
    env.grid.wall_rect(0, 0, 11, 6)


def reshape_grid(env: Any) -> None:
    env.grid.width, env.grid.height = 16, 4
    env.agent_pos = (1, 1)


def carry(env: Any) -> None:
    env.carrying = Box("yellow", contains=Key("red"))


def paint_carried(env: Any) -> None:
    env.carrying = Ball("red")
    env.gen_obs()
    env.carrying.color = "green"


def stand_in_door(env: Any) -> None:
    open_far_door(env)
    env.agent_pos = next(
        (i % env.width, i // env.width) for i, c in enumerate(env.grid.grid) if isinstance(c, Door)
    )


def widen_view(env: Any) -> None:
    env.agent_view_size = 5


def see_through(env: Any) -> None:
    env.see_through_walls = True


def change_mission(env: Any) -> None:
    env.mission = "do something else"


CHANGES = [
    *(open_far_door, lock_door, paint_wall, paint_key, write_cell, write_wall, clear_cell),
    *(share_object, replace_list, replace_grid, reshape_grid, carry, paint_carried),
    *(stand_in_door, widen_view, see_through, change_mission),
]


@pytest.mark.parametrize("change", CHANGES)
def test_changes_behind_its_back(
    change: Callable[[Any], None], original: Make, same_observation: Same
) -> None:
    env: Any = use_fast_observations(original("MiniGrid-DoorKey-8x8-v0"))
    env.reset(seed=1)
    for position in ((1, 1), (2, 3), (1, 5)):
        for direction in range(4):
            env.agent_pos, env.agent_dir = position, direction
            same_observation(env.gen_obs(), type(env).gen_obs(env))
    change(env)
    for direction in range(4):
        env.agent_dir = direction
        same_observation(env.gen_obs(), type(env).gen_obs(env))
