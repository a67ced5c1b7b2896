"""Tasks that are finite decision processes, and the environment that plays them step by step.

    s_0 ~ uniform(starts),  s_{t+1} ~ p(. | s_t, a_t),  reward_t = r(s_t, a_t, s_{t+1}) + sigma n_t

The random numbers of a step are functions of the episode's seed and the step (`hashed_noise`).
An episode is a problem of known length: its last step terminates it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces

from .finite_model import FiniteModel, best
from .hashed_noise import normals, uniforms
from .interface import Array
from .seeding import draw_seed
from .task import Env, InstanceRule, Reference, Task, Unit

MOVE, NOISE = 0, 1
"""Numbers of the random draws of a step."""


@dataclass(frozen=True, eq=False)
class StartValues:
    """Best and random return from every start of a model, `[num_starts]` each."""

    optimal: Array
    floor: Array


class FiniteTask(Task):
    """A decision process given by its tables.

    `values` are the values of its starts where they are known in closed form; otherwise backward
    induction finds them when they are first asked for. `hidden` are the numbers of its descriptor.
    """

    def __init__(
        self,
        name: str,
        model: FiniteModel,
        reference: Reference | None,
        unit: Unit = "return",
        instance: InstanceRule = "resampled",
        values: StartValues | None = None,
        hidden: Sequence[float] = (),
    ) -> None:
        self.name = name
        self.model = model
        self.reference = reference
        self.unit = unit
        self.instance = instance
        self._values = values
        self._hidden = hidden

    def descriptor(self) -> Sequence[float]:
        """What the family says of it."""
        return self._hidden

    @property
    def env_key(self) -> Hashable:
        """Processes with equal observations and actions share an environment."""
        return ("finite", self.model.num_shown, self.model.num_actions)

    def make_env(self) -> Env:
        """An environment that plays this task until it is given another."""
        return FiniteEnv(self.model)

    def configure(self, env: Env) -> None:
        """Set the tables."""
        finite_env(env).model = self.model

    def optimal_return(self, env: Env) -> float:
        """Expected return of optimal play from where `env` began; exact."""
        return float(self.values.optimal[finite_env(env).start])

    def floor_return(self, env: Env) -> float:
        """Expected return of uniformly random play from where `env` began; exact."""
        return float(self.values.floor[finite_env(env).start])

    @cached_property
    def values(self) -> StartValues:
        """Best and random return from every start."""
        if self._values is not None:
            return self._values
        starts = self.model.starts
        optimal = best(self.action_values[0])[starts]
        return StartValues(optimal, self.model.random_values()[starts])

    @cached_property
    def action_values(self) -> Array:
        """Q under optimal play `[horizon, S, A]`: what the oracle plays by."""
        return self.model.action_values()

    def best_action(self, env: Env) -> int:
        """The oracle's action in the present state of an environment of this task."""
        played = finite_env(env)
        return int(self.action_values[played.num_steps, played.state].argmax())


class FiniteEnv(gymnasium.Env[np.int64, np.int64]):
    """One decision process as a step environment; all of an episode follows from its seed.

    The info of a step holds the `expected_reward` of the action, averaged over what may come of it.
    """

    def __init__(self, model: FiniteModel) -> None:
        self.observation_space = spaces.Discrete(model.num_shown)
        self.action_space = spaces.Discrete(model.num_actions)
        self.model = model
        self.start = 0
        self.state = int(model.starts[0])
        self.num_steps = 0
        self._seed = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Begin an episode in one of the starts."""
        super().reset(seed=seed, options=options)
        self._seed = draw_seed(self.np_random) if seed is None else seed
        self.num_steps = 0
        self.start = start_of(self._seed, len(self.model.starts))
        self.state = int(self.model.starts[self.start])
        return self._shown(), {}

    def step(self, action: np.int64) -> tuple[np.int64, SupportsFloat, bool, bool, dict[str, Any]]:
        """Play an action."""
        model, state = self.model, self.state
        branch = 0
        if model.successors.shape[2] > 1:
            chance = uniforms(self._seed, self.num_steps, MOVE)
            branch = int((chance >= model.cumulative()[state, action]).sum())
        self.state = int(model.successors[state, action, branch])
        reward = float(model.rewards[state, action, branch])
        if model.reward_noise:
            reward += model.reward_noise * float(normals(self._seed, self.num_steps, NOISE)[0])
        self.num_steps += 1
        ended = self.num_steps == model.horizon or bool(model.final[self.state])
        mean = model.chances[state, action] @ model.rewards[state, action]
        return self._shown(), reward, ended, False, {"expected_reward": float(mean)}

    def _shown(self) -> np.int64:
        return np.int64(self.model.shown[self.state])


def start_of(seed: int, num_starts: int) -> int:
    """Which of its starts an episode begins in."""
    if num_starts == 1:
        return 0
    # Steps count from 0, so this address belongs to no step.
    return int(uniforms(seed, 2**32, MOVE)[0] * num_starts)


def finite_env(env: Env) -> FiniteEnv:
    """The environment under its wrappers; raises ValueError where it plays something else."""
    found = env.unwrapped
    if not isinstance(found, FiniteEnv):
        raise ValueError(f"expected an environment of a finite task, got {env}")
    return found
