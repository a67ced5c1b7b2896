"""Dark rooms: the agent sees where it is, never where the goal is.

    room:      reward 1 on every step that ends on the goal;         best = H + 1 - d(start, goal)
    key-door:  reward 1 for the key, then 1 for the door, which ends the episode;  best = 2 where
               d(start, key) + d(key, door) <= H, else 1 where the key is within H, else 0

d is the Manhattan distance, H the steps of an episode. Moves: up, down, left, right, stay; walls
stop them. Source: Laskin et al. 2022, Algorithm Distillation, arXiv:2210.14215 (Dark Room and Dark
Key-to-Door).
"""

from __future__ import annotations

import numpy as np

from .finite_model import FiniteModel, deterministic
from .finite_simulator import FiniteSimulator
from .finite_task import FiniteTask, StartValues
from .grid_walk import GridWalk
from .interface import Array, Channel, Interface
from .simulator import Simulator
from .task import Family, Reference


class DarkRoom(Family):
    """`size` x `size` cells, start in the centre, goal uniform over the other cells.

    Every episode lasts `horizon` steps. Scored by reward rate; floor and ceiling are exact.
    """

    def __init__(self, size: int = 5, horizon: int = 16) -> None:
        _check(size, horizon)
        self.name = f"dark-room-{size}x{size}"
        self.size = size
        self.horizon = horizon
        self.walk = GridWalk(size)
        self._floor = self.walk.occupancy(horizon).sum(0)
        self._optimal = np.maximum(horizon + 1 - self.walk.distances[self.walk.centre], 0)
        goals = self.walk.other_cells
        self.reference = Reference(
            floor=float(self._floor[goals].mean()) / horizon,
            ceiling=float(self._optimal[goals].mean()) / horizon,
            kind="analytic",
            reward_range=1.0,
        )
        self._successors, self._chances = deterministic(self.walk.successors)
        self._tasks: dict[int, FiniteTask] = {}

    @property
    def interface(self) -> Interface:
        """The cell the agent is in, and five moves; described by the cells that are hidden."""
        return _room_interface(self.size, num_hidden=1)

    def draw(self, rng: np.random.Generator) -> FiniteTask:
        """A goal."""
        return self.task(int(self.walk.other_cells[rng.integers(self.size**2 - 1)]))

    def task(self, goal: int) -> FiniteTask:
        """The room whose goal is cell `goal` (row x size + column)."""
        if goal not in self._tasks:
            self._tasks[goal] = self._new_task(goal)
        return self._tasks[goal]

    def _new_task(self, goal: int) -> FiniteTask:
        model = FiniteModel(
            horizon=self.horizon,
            successors=self._successors,
            chances=self._chances,
            rewards=(self._successors == goal).astype(np.float64),
            shown=np.arange(self.size**2),
            starts=np.array([self.walk.centre]),
            final=np.zeros(self.size**2, bool),
        )
        values = StartValues(self._optimal[[goal]], self._floor[[goal]])
        hidden = _one_hot(self.size, goal)
        return FiniteTask(self.name, model, self.reference, "rate", "fixed", values, hidden)

    def simulator_type(self) -> type[Simulator] | None:
        """All finite tasks play in one vectorised simulator."""
        return FiniteSimulator


class KeyDoor(Family):
    """`size` x `size` cells, start in the centre; key and door are two uniform other cells.

    The agent does not see whether it has the key. An episode ends at the door, or after `horizon`
    steps. Scored by episode return; floor and ceiling are exact.
    """

    def __init__(self, size: int = 9, horizon: int = 50) -> None:
        _check(size, horizon)
        self.name = f"key-door-{size}x{size}"
        self.size = size
        self.horizon = horizon
        self.walk = GridWalk(size)
        self._floor, self._optimal = self._pair_values()
        cells = self.walk.other_cells
        pairs = np.ix_(cells, cells)
        distinct = ~np.eye(len(cells), dtype=bool)
        self.reference = Reference(
            floor=float(self._floor[pairs][distinct].mean()),
            ceiling=float(self._optimal[pairs][distinct].mean()),
            kind="analytic",
            reward_range=2.0,
        )

    @property
    def interface(self) -> Interface:
        """The cell the agent is in, and five moves; described by the cells that are hidden."""
        return _room_interface(self.size, num_hidden=2)

    def draw(self, rng: np.random.Generator) -> FiniteTask:
        """A key and a door."""
        num_others = self.size**2 - 1
        key, door = int(rng.integers(num_others)), int(rng.integers(num_others - 1))
        cells = self.walk.other_cells
        return self.task(int(cells[key]), int(cells[door + (door >= key)]))

    def task(self, key: int, door: int) -> FiniteTask:
        """The room with its key and door in these cells; state = cell + size^2 x has key."""
        num_cells = self.size**2
        without = self.walk.successors + num_cells * (self.walk.successors == key)
        successors, chances = deterministic(
            np.concatenate([without, self.walk.successors + num_cells])
        )
        finds = np.concatenate([self.walk.successors == key, self.walk.successors == door])
        cells = np.arange(num_cells)
        model = FiniteModel(
            horizon=self.horizon,
            successors=successors,
            chances=chances,
            rewards=finds[..., None].astype(np.float64),
            shown=np.concatenate([cells, cells]),
            starts=np.array([self.walk.centre]),
            final=np.arange(2 * num_cells) == num_cells + door,
        )
        values = StartValues(self._optimal[[key], [door]], self._floor[[key], [door]])
        hidden = _one_hot(self.size, key, door)
        return FiniteTask(self.name, model, self.reference, "return", "fixed", values, hidden)

    def simulator_type(self) -> type[Simulator] | None:
        """All finite tasks play in one vectorised simulator."""
        return FiniteSimulator

    def _pair_values(self) -> tuple[Array, Array]:
        """Random and best return for every key and door, `[cells, cells]` each.

        Random: P(T_key <= H) + sum_t P(T_key = t) P(T_door <= H - t from the key).
        """
        hits = self.walk.hits_within(self.horizon)  # [H + 1, from, to]
        first = hits[:, self.walk.centre]
        arrival = np.diff(first, axis=0)
        floor = first[-1][:, None] + np.einsum("tk,tkd->kd", arrival, hits[-2::-1])
        to_key = self.walk.distances[self.walk.centre][:, None]
        to_door = to_key + self.walk.distances
        optimal = (to_key <= self.horizon) + (to_door <= self.horizon).astype(np.float64)
        return np.asarray(floor), np.asarray(optimal)


def _check(size: int, horizon: int) -> None:
    if size < 3 or size % 2 == 0:
        nearest = max(3, size + 1 - size % 2)
        raise ValueError(f"size: expected an odd number >= 3, got {size}; nearest is {nearest}")
    if horizon < 1:
        raise ValueError(f"horizon: expected at least 1, got {horizon}")


def _room_interface(size: int, num_hidden: int) -> Interface:
    cells = size**2
    shown = {"discrete": Channel("discrete", (), cells)}
    return Interface(shown, 5, descriptor_width=num_hidden * cells)


def _one_hot(size: int, *cells: int) -> list[float]:
    """Cells one after the other, each as `size`^2 numbers."""
    return [float(place == cell) for cell in cells for place in range(size**2)]
