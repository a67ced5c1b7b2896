"""A slippery grid with two goals side by side, one of which pays and one of which costs.

    6 x 6 cells, start (0, 0), goals (5, 5) and (5, 4) with rewards +1 and -1, walls (1, 2), (1, 3),
    (2, 3);  a move slips to one of its two sides with chance 0.1;  a goal ends the episode

As a stream the two tasks take turns: what was learned of the way to the goals stays true, which of
them to enter does not. Source: Anand and Precup 2023, Prediction and Control in Continual
Reinforcement Learning, arXiv:2312.11669, tabular control.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from .choices import check_choice
from .finite_model import FiniteModel
from .finite_simulator import FiniteSimulator
from .finite_task import FiniteTask
from .interface import Array, Channel, Interface
from .simulator import Simulator
from .task import Family, Reference

SIZE = 6
CORNER, BESIDE = SIZE**2 - 1, SIZE**2 - 2
WALLS = ((1, 2), (1, 3), (2, 3))
MOVES = ((-1, 0), (0, -1), (1, 0), (0, 1))
SLIP = 0.1

Goal = Literal["corner", "beside"]


class ExchangingGoals(Family):
    """The task in which the goal `paying` gives +1 and the other -1.

    Episodes end after `horizon` steps at the latest (in the source: never). Scored by episode
    return, undiscounted; floor and ceiling are exact.
    """

    def __init__(self, paying: Goal = "corner", horizon: int = 100) -> None:
        check_choice("paying", paying, Goal)
        self.name = f"exchanging-goals-{paying}"
        rewards = np.zeros(SIZE**2)
        rewards[[CORNER, BESIDE]] = (1.0, -1.0) if paying == "corner" else (-1.0, 1.0)
        self._task = FiniteTask(self.name, _model(rewards, horizon), None)
        values = self._task.values
        self._task.reference = Reference(
            float(values.floor[0]), float(values.optimal[0]), "analytic", reward_range=2.0
        )

    @property
    def interface(self) -> Interface:
        """The cell (row x 6 + column), and four moves: up, left, down, right."""
        return Interface({"discrete": Channel("discrete", (), SIZE**2)}, len(MOVES))

    def draw(self, rng: np.random.Generator) -> FiniteTask:
        """The task itself: only its slips are random."""
        del rng
        return self._task

    def simulator_type(self) -> type[Simulator] | None:
        """All finite tasks play in one vectorised simulator."""
        return FiniteSimulator


def _model(entering: Array, horizon: int) -> FiniteModel:
    """The grid whose cells give the rewards `entering` `[36]` when they are entered."""
    reached = np.array([[_moved(cell, move) for move in MOVES] for cell in range(SIZE**2)])
    sides = [np.roll(reached, turn, axis=1) for turn in (1, -1)]
    successors = np.stack([reached, *sides], axis=2)
    chances = np.broadcast_to([1.0 - SLIP, SLIP / 2, SLIP / 2], successors.shape)
    cells = np.arange(SIZE**2)
    return FiniteModel(
        horizon=horizon,
        successors=successors,
        chances=chances,
        rewards=entering[successors],
        shown=cells,
        starts=np.zeros(1, np.int64),
        final=cells >= BESIDE,
    )


def _moved(cell: int, move: tuple[int, int]) -> int:
    row, column = cell // SIZE + move[0], cell % SIZE + move[1]
    inside = 0 <= row < SIZE and 0 <= column < SIZE
    return row * SIZE + column if inside and (row, column) not in WALLS else cell
