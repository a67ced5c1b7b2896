"""A room whose things react to each other by the rules of a puzzle that nothing shows.

The rules are `production`'s, the moves, things and reward MiniGrid's: 1 - 0.9 t / max_steps where
the goal holds after t steps.
"""

from __future__ import annotations

from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from minigrid.core.grid import Grid
from minigrid.core.mission import MissionSpace
from minigrid.core.world_object import Ball, Key, WorldObj
from minigrid.minigrid_env import MiniGridEnv

from .production import COLOURS, Condition, Item, Puzzle, draw_puzzle

THINGS = {"ball": Ball, "key": Key}
LEAST_SIZE, MAX_TRIES = 6, 1000
NUM_ACTIONS = 5
"""Left, right, forward, pick up, drop."""
FIRST_PUZZLE = draw_puzzle(np.random.default_rng(0), max_rules=0, num_distractors=0)


class RuleRoom(MiniGridEnv):
    """An empty room of `size` cells, walls included, with the things of `puzzle`, no two adjacent.

    `puzzle` is set before a reset. The mission says the goal, and nothing says the rules.
    """

    def __init__(self, size: int = 6, max_steps: int | None = None, **options: Any) -> None:
        if size < LEAST_SIZE:
            raise ValueError(f"size: expected at least {LEAST_SIZE}, got {size}")
        self.puzzle: Puzzle = FIRST_PUZZLE
        self.products: list[WorldObj] = []
        kinds, colours = list(THINGS), list(COLOURS)
        super().__init__(
            mission_space=MissionSpace(
                mission_func=self._gen_mission,
                ordered_placeholders=[colours, kinds, colours, kinds],
            ),
            grid_size=size,
            max_steps=3 * size**2 if max_steps is None else max_steps,
            see_through_walls=True,
            **options,
        )

    @staticmethod
    def _gen_mission(colour: str, kind: str, other_colour: str, other_kind: str) -> str:
        items = (Item(kind, colour), Item(other_kind, other_colour))
        return Condition("beside", items).words()

    def _gen_grid(self, width: int, height: int) -> None:
        self.grid = Grid(width, height)
        self.grid.wall_rect(0, 0, width, height)
        for item in self.puzzle.lying:
            self.place_obj(made(item), reject_fn=_is_beside_a_thing, max_tries=MAX_TRIES)
        self.products = [made(rule.product) for rule in self.puzzle.rules]
        self.place_agent()  # type: ignore[no-untyped-call]
        self.mission = self.puzzle.goal.words()

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Move; then everything that can react does, and the goal is looked at."""
        shown, reward, terminated, truncated, info = super().step(action)
        if self._react():
            shown = self.gen_obs()  # type: ignore[no-untyped-call]
        if not terminated and self._holds(self.puzzle.goal):
            reward, terminated = self._reward(), True
        return shown, reward, terminated, truncated, info

    def _react(self) -> bool:
        """Apply the rules until none applies; whether any did."""
        reacted = False
        while True:
            ready = [n for n, rule in enumerate(self.puzzle.rules) if self._holds(rule.condition)]
            if not ready:
                return reacted
            self._apply(ready[0])
            reacted = True

    def _apply(self, number: int) -> None:
        condition, product = self.puzzle.rules[number].condition, self.products[number]
        if condition.predicate == "hold":
            vars(self)["carrying"] = product  # declared as None by MiniGrid
            product.cur_pos = (-1, -1)
            return
        place, other = self._places(condition)
        self.grid.set(*other, None)
        self.grid.set(*place, product)
        product.init_pos = product.cur_pos = place

    def _holds(self, condition: Condition) -> bool:
        if condition.predicate == "hold":
            carried: WorldObj | None = self.carrying
            return carried is not None and looks(carried) == condition.items[0]
        places = self._places(condition)
        if len(places) < 2:
            return False
        (x, y), (other_x, other_y) = places
        return abs(x - other_x) + abs(y - other_y) == 1

    def _places(self, condition: Condition) -> list[tuple[int, int]]:
        """Where the items of a condition lie, in its order, without those that lie nowhere."""
        lying = {
            looks(thing): (number % self.grid.width, number // self.grid.width)
            for number, thing in enumerate(self.grid.grid)
            if thing is not None
        }
        return [lying[item] for item in condition.items if item in lying]


def made(item: Item) -> WorldObj:
    """A new thing that looks like an item."""
    thing: WorldObj = THINGS[item.kind](item.colour)
    return thing


def looks(thing: WorldObj) -> Item:
    """What a thing looks like."""
    return Item(thing.type, thing.color)


def _is_beside_a_thing(env: MiniGridEnv, place: tuple[int, int]) -> bool:
    """Whether a thing at a place would have a neighbour, so that rules could fire too soon."""
    x, y = place
    around = ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1))
    near = [env.grid.get(*cell) for cell in around if 0 < cell[0] < env.width - 1]
    return any(thing is not None and thing.type in THINGS for thing in near)


gymnasium.register(id="Sojourn-Rules-v0", entry_point=f"{__name__}:{RuleRoom.__name__}")
