"""A task: one environment with its hidden parameters, and how well it could be played.

A family draws tasks. A segment is a task as one lifetime meets it: with an instance seed and a
length.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import gymnasium
import numpy as np

from .choices import check_choice
from .episode_seeds import episode_seed
from .evidence import Evidence, Informed
from .interface import Interface

if TYPE_CHECKING:
    from .simulator import Simulator

Env = gymnasium.Env[Any, Any]
Unit = Literal["return", "rate"]
InstanceRule = Literal["fixed", "resampled"]
LengthUnit = Literal["episodes", "steps"]


@dataclass(frozen=True)
class Reference:
    """Floor and ceiling of a task in its unit, pooled over the instances of its family.

    The unit is the task's: mean episode return, or mean reward per step for `rate`. `floor` is the
    uniform random policy, `ceiling` the comparator named by `kind` (analytic, planner, user ...);
    the standard errors are zero where the value is exact. `reward_range` is the width of what the
    unit can read (1 for MiniGrid returns and Bernoulli rates); 0 means not declared. `informed` is
    the second ceiling of tasks that hide something from whoever meets them; regret against it is
    never mixed with regret against `ceiling`. `evidence` tells what measured values rest on.
    """

    floor: float
    ceiling: float
    kind: str
    floor_error: float = 0.0
    ceiling_error: float = 0.0
    reward_range: float = 0.0
    informed: Informed | None = None
    evidence: Evidence | None = None


class Task(ABC):
    """One environment and its hidden parameters.

    `name` is what tables group by; tasks with equal `env_key` may share one environment object,
    which `configure` sets to this task's hidden parameters. `unit` says how it is scored: by
    episode `return` or by reward `rate`; `length` is how long a segment of it lasts (None: as long
    as the stream says); `lag` is the fewest steps between a cue and its use (None: no such thing).
    `pays_success`: an episode pays once, for success, the less the later; a return of 0 or below is
    failure (the reward of MiniGrid).
    """

    name: str
    length: Length | None = None
    lag: int | None = None
    pays_success: bool = False
    unit: Unit = "return"
    instance: InstanceRule = "fixed"
    reference: Reference | None = None

    @property
    @abstractmethod
    def env_key(self) -> Hashable:
        """What tasks that may share one environment object have in common."""

    @abstractmethod
    def make_env(self) -> Env:
        """A new environment that can play this task and every other one with its `env_key`."""

    def configure(self, env: Env) -> None:
        """Set the hidden parameters of this task on an environment made for its `env_key`."""

    def descriptor(self) -> Sequence[float]:
        """The hidden parameters as numbers of order 1, for privileged critics alone; at most as
        many as the `descriptor_width` of the family's interface, by default none.
        """
        return ()

    def optimal_return(self, env: Env) -> float:
        """Best episode return of the instance `env` was just reset to; NaN where nobody knows."""
        del env
        return float("nan")

    def floor_return(self, env: Env) -> float:
        """Random policy's return on the instance `env` was just reset to; NaN where unknown."""
        del env
        return float("nan")

    def informed_return(self, env: Env, episode: int) -> float:
        """Best expected return of episode `episode` of the task without knowing what it hides.

        Of the instance `env` was just reset to; NaN where nothing is hidden or nobody knows.
        """
        del env, episode
        return float("nan")


class Family(ABC):
    """A distribution over tasks that share an interface."""

    name: str

    @property
    @abstractmethod
    def interface(self) -> Interface:
        """Channels and number of actions of every task of the family."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Task:
        """A task of this family; all its randomness comes from `rng`."""

    def simulator_type(self) -> type[Simulator] | None:
        """The vectorised simulator of these tasks; None where there is only the environment."""
        return None


@dataclass(frozen=True)
class Length:
    """How long a segment lasts: a number of `episodes` or of environment `steps`."""

    amount: int
    unit: LengthUnit = "episodes"

    def __post_init__(self) -> None:
        if self.amount < 1:
            raise ValueError(f"segment length: expected at least 1, got {self.amount}")
        check_choice("segment length", self.unit, LengthUnit)


@dataclass(frozen=True)
class Segment:
    """One task as one lifetime meets it.

    `seed` fixes the instance (layout, reward draws ...). `task_index` tells the tasks of a lifetime
    apart: segments that return to a task share it.
    """

    task: Task
    seed: int
    length: Length
    task_index: int = 0

    def episode_seed(self, episode: int) -> int:
        """Seed of an episode: the instance's own when that is fixed, else a new one each time."""
        if self.task.instance == "fixed":
            return self.seed
        return episode_seed(self.seed, episode)
