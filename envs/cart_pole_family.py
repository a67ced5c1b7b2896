"""Carts and poles with drawn physics and drawn offsets, standing still or drifting.

    parameter = low^(1 - q) high^q,   q_i(k) = |2 frac(k / period + phase_i) - 1|,  phase ~ U(0, 1)

so that every q is uniform at every time k; without a period k does not matter. Sources: offsets,
TRAC (Muppidi et al. 2024, arXiv:2405.16642); drawn physics, CARL (Benjamins et al. 2021,
arXiv:2110.02102).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

import numpy as np

from .cart_pole import DEFAULT, PHYSICS, SEEN, CartPoleTask, Shows, advance, draw_start, has_fallen
from .cart_pole_simulator import CartPoleSimulator
from .choices import check_choice
from .evidence import standard_error
from .interface import Array, Channel, Interface
from .schedule_mixed import DriftingFamily
from .seeding import generator
from .simulator import Simulator
from .task import Reference

FLOOR_EPISODES = 4000


class CartPole(DriftingFamily):
    """`physics` gives a number or a range [low, high] to any of gravity, force, half_length,
    cart_mass, pole_mass and time_step; the others are those of CartPole-v1.

    `offset_spread` is the standard deviation of the normal offsets of a task, added to x, x', a, a'
    as they are seen; `shows` hides the two speeds where it is `positions`. In a drifting schedule
    the physics come back after `period` segments. The ceiling is the limit, the floor the mean of
    4000 random episodes with its standard error.
    """

    def __init__(
        self,
        max_steps: int = 500,
        physics: Mapping[str, float | Sequence[float]] | None = None,
        offset_spread: float = 0.0,
        shows: Shows = "all",
        period: float | None = None,
        name: str | None = None,
    ) -> None:
        if max_steps < 1:
            raise ValueError(f"max_steps: expected at least 1, got {max_steps}")
        check_choice("shows", shows, Shows)
        if offset_spread < 0.0:
            raise ValueError(f"offset_spread: expected at least 0, got {offset_spread}")
        if period is not None and not period > 0.0:
            raise ValueError(f"period: expected more than 0 segments, got {period}")
        self.name = name if name is not None else "cart-pole"
        self.max_steps = max_steps
        self.offset_spread = offset_spread
        self.shows: Shows = shows
        self.period = period
        self._range = _ranges(physics or {})
        self.reference = self._measured()

    @property
    def interface(self) -> Interface:
        """What is seen of the state, and two pushes."""
        return Interface({"vector": Channel("vector", (len(SEEN[self.shows]),))}, 2)

    def draw_at(self, rng: np.random.Generator, time: int) -> CartPoleTask:
        """Physics at a time of a path, and the offset of the whole path."""
        phase = rng.random(len(PHYSICS))
        offset = rng.normal(0.0, self.offset_spread, 4)
        moved = 0.0 if self.period is None else time / self.period
        share = np.abs(2.0 * ((moved + phase) % 1.0) - 1.0)
        return CartPoleTask(
            self.name, self._physics(share), offset, self.shows, self.max_steps, self.reference
        )

    def simulator_type(self) -> type[Simulator] | None:
        """All carts and poles play in one vectorised simulator."""
        return CartPoleSimulator

    def _physics(self, share: Array) -> Array:
        low, high = self._range
        # low (high / low)^q is exact where there is nothing to draw.
        return np.asarray(low * (high / low) ** share)

    def _measured(self) -> Reference:
        rng = generator(0)
        physics = self._physics(rng.random((FLOOR_EPISODES, len(PHYSICS))))
        state = np.array([draw_start(rng) for _ in range(FLOOR_EPISODES)])
        length = np.zeros(FLOOR_EPISODES)
        alive = np.ones(FLOOR_EPISODES, bool)
        for _ in range(self.max_steps):
            if not alive.any():
                break
            state[alive] = advance(
                state[alive], rng.integers(2, size=int(alive.sum())), physics[alive]
            )
            length += alive
            alive &= ~has_fallen(state)
        error = standard_error(length)
        return Reference(
            float(length.mean()), float(self.max_steps), "controller", error, 0.0, self.max_steps
        )


def _ranges(physics: Mapping[str, float | Sequence[float]]) -> Array:
    """Low and high `[2, 6]` of every parameter; raises ValueError naming an invalid one."""
    ranges = np.stack([DEFAULT, DEFAULT])
    for name, value in physics.items():
        if name not in PHYSICS:
            nearest = get_close_matches(name, PHYSICS, n=1, cutoff=0.0)[0]
            raise ValueError(
                f"physics: expected any of {', '.join(PHYSICS)}, got {name!r}; "
                f"nearest is {nearest!r}"
            )
        low, high = (value, value) if isinstance(value, int | float) else value
        if not 0.0 < low <= high:
            raise ValueError(f"physics.{name}: expected 0 < low <= high, got {value}")
        ranges[:, PHYSICS.index(name)] = low, high
    return ranges
