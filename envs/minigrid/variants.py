"""MiniGrid environments that the package lacks: registered here under ids that begin with Sojourn-.

    Sojourn-Memory-v0    MiniGrid's Memory, begun beside the cue:  steps from cue to use ~ size
    Sojourn-Unlock-v0    MiniGrid's Unlock with rooms of any size
    Sojourn-TwoGoals-v0  two coloured tiles, one of which pays; both end the episode

Their rules are those of their base classes, so the planner knows them. Sources: Chevalier-Boisvert
et al. 2023, arXiv:2306.13831 (Memory, Unlock); room sizes as in tella's M21 curriculum; the two
goals are ours.
"""

from __future__ import annotations

from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from minigrid.core.grid import Grid
from minigrid.core.mission import MissionSpace
from minigrid.core.roomgrid import RoomGrid
from minigrid.core.world_object import Floor
from minigrid.envs.memory import MemoryEnv
from minigrid.envs.unlock import UnlockEnv
from minigrid.minigrid_env import MiniGridEnv


class MemoryFromCue(MemoryEnv):
    """Memory whose episodes begin beside the cue, which is in view; `size` is odd, at least 7."""

    def __init__(self, size: int = 13, max_steps: int | None = None, **options: Any) -> None:
        if size < 7 or size % 2 == 0:
            raise ValueError(f"size: expected an odd number >= 7, got {size}")
        super().__init__(size=size, max_steps=max_steps, **options)

    def _gen_grid(self, width: int, height: int) -> None:
        super()._gen_grid(width, height)  # type: ignore[no-untyped-call]
        self.agent_pos = np.array((1, height // 2))


class UnlockRooms(UnlockEnv):
    """Unlock with two rooms of `room_size` cells, walls included."""

    def __init__(self, room_size: int = 6, max_steps: int | None = None, **options: Any) -> None:
        if room_size < 4:
            raise ValueError(f"room_size: expected at least 4, got {room_size}")
        RoomGrid.__init__(
            self,
            mission_space=MissionSpace(mission_func=self._gen_mission),
            num_rows=1,
            num_cols=2,
            room_size=room_size,
            max_steps=8 * room_size**2 if max_steps is None else max_steps,
            **options,
        )


class TwoGoals(MiniGridEnv):
    """A red and a blue tile in an empty room of `size` cells, walls included; one `pays`.

    Either tile ends the episode; nothing shows which of them gives the reward.
    """

    COLOURS = ("red", "blue")

    def __init__(
        self, size: int = 5, pays: str = "red", max_steps: int | None = None, **options: Any
    ) -> None:
        if pays not in self.COLOURS:
            raise ValueError(f"pays: expected one of {', '.join(self.COLOURS)}, got {pays!r}")
        self.pays = pays
        super().__init__(
            mission_space=MissionSpace(mission_func=self._gen_mission),
            grid_size=size,
            max_steps=4 * size**2 if max_steps is None else max_steps,
            see_through_walls=True,
            **options,
        )

    @staticmethod
    def _gen_mission() -> str:
        return "find the tile that pays"

    def _gen_grid(self, width: int, height: int) -> None:
        self.grid = Grid(width, height)
        self.grid.wall_rect(0, 0, width, height)
        places = [self.place_obj(Floor(colour)) for colour in self.COLOURS]
        paying = self.COLOURS.index(self.pays)
        self.success_pos = tuple(map(int, places[paying]))
        self.failure_pos = tuple(map(int, places[1 - paying]))
        self.place_agent()  # type: ignore[no-untyped-call]
        self.mission = self._gen_mission()

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Move; both tiles end the episode."""
        shown, reward, terminated, truncated, info = super().step(action)
        place = tuple(map(int, self.agent_pos))
        if place == self.success_pos:
            reward, terminated = self._reward(), True
        elif place == self.failure_pos:
            terminated = True
        return shown, reward, terminated, truncated, info


CLASSES = {"Memory": MemoryFromCue, "Unlock": UnlockRooms, "TwoGoals": TwoGoals}

for _name, _class in CLASSES.items():
    gymnasium.register(id=f"Sojourn-{_name}-v0", entry_point=f"{__name__}:{_class.__name__}")
