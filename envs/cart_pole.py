"""Cart and pole with hidden physics and hidden offsets of what is seen: task and environment.

    temp = (F + m l w^2 sin a) / M,   a'' = (g sin a - cos a temp) / (l (4/3 - m cos^2 a / M))
    x'' = temp - m l a'' cos a / M,   M = cart + m;   each of x, x', a, a' moves by tau its rate

Reward 1 per step until |x| > 2.4 or |a| > 12 degrees; an episode is truncated at a limit. Seen are
x, x', a, a' plus the offset of the task, or x and a alone. With the physics of `DEFAULT` it is
CartPole-v1, seed by seed. Source: Barto, Sutton and Anderson (1983); Florian (2005);
`gymnasium.envs.classic_control.cartpole`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces

from .first_uniforms import first_uniforms
from .interface import Array
from .task import Env, InstanceRule, Reference, Task, Unit

PHYSICS = ("gravity", "force", "half_length", "cart_mass", "pole_mass", "time_step")
DEFAULT = np.array([9.8, 10.0, 0.5, 1.0, 0.1, 0.02])
START = 0.05
X_LIMIT, ANGLE_LIMIT = 2.4, 12.0 * 2.0 * np.pi / 360.0
GAINS = np.array([0.05, 0.15, 1.0, 0.4])
"""Pushing towards the sign of gains . state kept 4000 of 4000 poles up for 2000 steps, with physics
drawn from gravity 5 to 20, force 6 to 15, half_length 0.25 to 1, cart_mass 0.5 to 2, pole_mass 0.05
to 0.4. Elsewhere the limit is a bound that a controller may miss."""

Shows = Literal["all", "positions"]
SEEN: dict[Shows, list[int]] = {"all": [0, 1, 2, 3], "positions": [0, 2]}


class CartPoleTask(Task):
    """`physics` float64 `[6]` in the order of `PHYSICS`, `offset` `[4]` of x, x', a, a'."""

    unit: Unit = "return"
    instance: InstanceRule = "resampled"

    def __init__(
        self,
        name: str,
        physics: Array,
        offset: Array,
        shows: Shows,
        max_steps: int,
        reference: Reference | None,
    ) -> None:
        self.name = name
        self.physics = physics
        self.offset = offset
        self.shows: Shows = shows
        self.max_steps = max_steps
        self.reference = reference

    @property
    def env_key(self) -> Hashable:
        """Tasks that show as much share an environment."""
        return ("cart pole", self.shows)

    def make_env(self) -> Env:
        """An environment that plays this task until it is given another."""
        env = CartPoleEnv(self.shows)
        self.configure(env)
        return env

    def configure(self, env: Env) -> None:
        """Set physics, offset and limit."""
        played = cart_pole_env(env)
        played.physics, played.offset, played.max_steps = self.physics, self.offset, self.max_steps

    def optimal_return(self, env: Env | None = None) -> float:
        """The limit: a linear controller reaches it."""
        del env
        return float(self.max_steps)

    def best_action(self, env: Env) -> int:
        """The linear controller's action in the present state."""
        return int(GAINS @ cart_pole_env(env).state > 0)


class CartPoleEnv(gymnasium.Env[Array, np.int64]):
    """One cart and pole as a step environment."""

    def __init__(self, shows: Shows = "all") -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (len(SEEN[shows]),), np.float32)
        self.action_space = spaces.Discrete(2)
        self.physics = DEFAULT
        self.offset = np.zeros(4)
        self.max_steps = 500
        self.state = np.zeros(4)
        self._seen = SEEN[shows]
        self._num_steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin near the upright position."""
        super().reset(seed=seed, options=options)
        self.state = draw_start(self.np_random)
        self._num_steps = 0
        return self._shown(), {}

    def step(self, action: np.int64) -> tuple[Array, SupportsFloat, bool, bool, dict[str, Any]]:
        """Push left (0) or right (1)."""
        moved = advance(self.state[None], np.array([action]), self.physics[None])
        self.state = moved[0]
        self._num_steps += 1
        fell = bool(has_fallen(moved)[0])
        late = self._num_steps == self.max_steps and not fell
        return self._shown(), 1.0, fell, late, {"expected_reward": 1.0}

    def _shown(self) -> Array:
        return np.asarray((self.state + self.offset)[self._seen], np.float32)


def draw_start(rng: np.random.Generator) -> Array:
    """A first state `[4]`, each part uniform within `START` of zero."""
    return rng.uniform(-START, START, 4)


def starts_of(seeds: Sequence[int]) -> Array:
    """The first states `[n, 4]` of episodes with these seeds: what `draw_start` would draw."""
    return np.asarray(-START + (START + START) * first_uniforms(seeds, 4))


def advance(state: Array, actions: Array, physics: Array) -> Array:
    """States `[B, 4]` after one time step; `actions` `[B]` 0 or 1, `physics` `[B, 6]`."""
    gravity, force, half_length, cart_mass, pole_mass, time_step = physics.T
    place, speed, angle, spin = state.T
    push = np.where(actions == 1, force, -force)
    cosine, sine = np.cos(angle), np.sin(angle)
    mass, moment = cart_mass + pole_mass, pole_mass * half_length
    temp = (push + moment * np.square(spin) * sine) / mass
    turning = (gravity * sine - cosine * temp) / (
        half_length * (4.0 / 3.0 - pole_mass * np.square(cosine) / mass)
    )
    acceleration = temp - moment * turning * cosine / mass
    moved = np.empty_like(state)
    moved[:, 0] = place + time_step * speed
    moved[:, 1] = speed + time_step * acceleration
    moved[:, 2] = angle + time_step * spin
    moved[:, 3] = spin + time_step * turning
    return moved


def has_fallen(state: Array) -> Array:
    """Whether the cart has left the track or the pole its angle, bool `[B]`."""
    return np.asarray((np.abs(state[:, 0]) > X_LIMIT) | (np.abs(state[:, 2]) > ANGLE_LIMIT))


def cart_pole_env(env: Env) -> CartPoleEnv:
    """The environment under its wrappers; raises ValueError where it plays something else."""
    found = env.unwrapped
    if not isinstance(found, CartPoleEnv):
        raise ValueError(f"expected a cart and pole, got {env}")
    return found
