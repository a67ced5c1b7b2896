"""T-maze: a sign at the start says which way to turn at the far end of a corridor.

    reward 4 for the right turn, -0.1 for the wrong one and for every bump into a wall, else 0

The corridor has `corridor` cells between the sign and the junction; nothing shows how far one is.
Actions: up, down, forward, back. A turn at the junction ends the episode.
Source: Bakker 2001, Reinforcement Learning with Long Short-Term Memory, NIPS 14, section 3.
"""

from __future__ import annotations

import numpy as np

from .finite_model import FiniteModel, deterministic
from .finite_simulator import FiniteSimulator
from .finite_task import FiniteTask
from .interface import Array, Channel, Interface
from .simulator import Simulator
from .task import Family, Reference

UP, DOWN, FORWARD, BACK = range(4)
SIGN_UP, SIGN_DOWN, CORRIDOR, JUNCTION = range(4)
RIGHT_TURN, MISTAKE = 4.0, -0.1


class TMaze(Family):
    """The sign is drawn anew for every episode, which ends after `horizon` steps at the latest.

    Scored by episode return. Floor and ceiling are exact; the sign is seen at the first step, so
    the ceiling is that of an agent that remembers it. Raises ValueError where the horizon is too
    short to reach the junction and turn.
    """

    def __init__(self, corridor: int = 10, horizon: int = 40) -> None:
        if corridor < 0:
            raise ValueError(f"corridor: expected at least 0, got {corridor}")
        if horizon < corridor + 2:
            raise ValueError(
                f"horizon: expected at least {corridor + 2} for a corridor of {corridor}, "
                f"got {horizon}"
            )
        self.name = f"t-maze-{corridor}"
        self.corridor = corridor
        model = _model(corridor + 2, horizon)
        floor = float(model.random_values()[model.starts].mean())
        self.reference = Reference(floor, RIGHT_TURN, "analytic", reward_range=RIGHT_TURN)
        self._task = FiniteTask(self.name, model, self.reference)
        self._task.lag = corridor + 1

    @property
    def interface(self) -> Interface:
        """The sign (2 values), corridor or junction; four moves."""
        return Interface({"discrete": Channel("discrete", (), 4)}, 4)

    def draw(self, rng: np.random.Generator) -> FiniteTask:
        """The maze itself: its episodes differ by their sign alone."""
        del rng
        return self._task

    def simulator_type(self) -> type[Simulator] | None:
        """All finite tasks play in one vectorised simulator."""
        return FiniteSimulator


def _model(length: int, horizon: int) -> FiniteModel:
    """State = cell + length x sign (0: up), and the end; cell 0 has the sign, the last turns."""
    parts = [_one_sign(length, sign) for sign in (UP, DOWN)]
    end = 2 * length
    moves = np.concatenate([part[0] for part in parts] + [np.full((1, 4), end)])
    rewards = np.concatenate([part[1] for part in parts] + [np.zeros((1, 4))])
    shown = np.full(end + 1, CORRIDOR)
    shown[[0, length, length - 1, end - 1, end]] = SIGN_UP, SIGN_DOWN, JUNCTION, JUNCTION, JUNCTION
    successors, chances = deterministic(moves)
    return FiniteModel(
        horizon=horizon,
        successors=successors,
        chances=chances,
        rewards=rewards[..., None],
        shown=shown,
        starts=np.array([0, length]),
        final=np.arange(end + 1) == end,
    )


def _one_sign(length: int, sign: int) -> tuple[Array, Array]:
    """Successors and rewards `[length, 4]` of the half of the states with this sign."""
    cells = np.arange(length)
    first, end = sign * length, 2 * length
    moves = first + np.stack([cells, cells, cells + 1, cells - 1], 1).clip(0, length - 1)
    rewards = np.where(moves == (first + cells)[:, None], MISTAKE, 0.0)
    moves[-1, [UP, DOWN]] = end
    rewards[-1, sign], rewards[-1, 1 - sign] = RIGHT_TURN, MISTAKE
    return moves, rewards
