"""Random decision processes of few states: what RL^2 was first shown to explore.

    p(. | s, a) ~ Dirichlet(1, ..., 1),   mean reward r(s, a) ~ N(1, 1),   reward ~ N(r(s, a), 1)

Every episode starts in state 0 and lasts `horizon` steps. Source: Duan et al., RL^2 (2016), section
3.2; Osband et al. (2013), PSRL.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from .evidence import standard_error
from .finite_model import FiniteModel, ValueOf, average, backward_induction, best
from .finite_simulator import FiniteSimulator
from .finite_task import FiniteTask
from .interface import Array, Channel, Interface
from .seeding import generator
from .simulator import Simulator
from .task import Family, Reference

REWARD_MEAN, REWARD_SPREAD, REWARD_NOISE = 1.0, 1.0, 1.0
CEILING_PROCESSES = 4000


class TabularMDP(Family):
    """`num_states` states, `num_actions` actions; the state is seen.

    Scored by episode return. Floor and ceiling of each process are exact; pooled over processes the
    floor is exact (the horizon), the ceiling the mean of 4000 processes with its standard error.
    """

    def __init__(self, num_states: int = 10, num_actions: int = 5, horizon: int = 10) -> None:
        sizes = {"num_states": num_states, "num_actions": num_actions, "horizon": horizon}
        for name, size in sizes.items():
            least = 1 if name == "horizon" else 2
            if size < least:
                raise ValueError(f"{name}: expected at least {least}, got {size}")
        self.name = f"mdp-{num_states}x{num_actions}"
        self.num_states = num_states
        self.num_actions = num_actions
        self.horizon = horizon
        self.reference = _pooled(num_states, num_actions, horizon)
        self._shape = (num_states, num_actions, num_states)
        self._successors = np.broadcast_to(np.arange(num_states), self._shape)

    @property
    def interface(self) -> Interface:
        """The state and an action each."""
        return Interface({"discrete": Channel("discrete", (), self.num_states)}, self.num_actions)

    def draw(self, rng: np.random.Generator) -> FiniteTask:
        """A process."""
        chances, rewards = draw_processes(rng, 1, self.num_states, self.num_actions)
        model = FiniteModel(
            horizon=self.horizon,
            successors=self._successors,
            chances=chances[0],
            rewards=np.broadcast_to(rewards[0][..., None], self._shape),
            shown=np.arange(self.num_states),
            starts=np.zeros(1, np.int64),
            final=np.zeros(self.num_states, bool),
            reward_noise=REWARD_NOISE,
        )
        return FiniteTask(self.name, model, self.reference)

    def simulator_type(self) -> type[Simulator] | None:
        """All finite tasks play in one vectorised simulator."""
        return FiniteSimulator


def draw_processes(
    rng: np.random.Generator, num: int, num_states: int, num_actions: int
) -> tuple[Array, Array]:
    """Transition chances `[num, S, A, S]` and mean rewards `[num, S, A]`."""
    shape = (num, num_states, num_actions)
    chances = rng.standard_exponential((*shape, num_states))
    chances /= chances.sum(-1, keepdims=True)
    return chances, rng.normal(REWARD_MEAN, REWARD_SPREAD, shape)


def process_values(chances: Array, rewards: Array, horizon: int, value_of: ValueOf = best) -> Array:
    """Q `[horizon, L, S, A]` of L processes with dense chances `[L, S, A, S]`."""
    expected = partial(np.einsum, "lsaj,lj->lsa", chances)
    return backward_induction(rewards, expected, horizon, value_of)


@cache
def _pooled(num_states: int, num_actions: int, horizon: int) -> Reference:
    chances, rewards = draw_processes(generator(0), CEILING_PROCESSES, num_states, num_actions)
    values = best(process_values(chances, rewards, horizon)[0][:, 0])
    return Reference(
        floor=REWARD_MEAN * horizon,
        ceiling=float(values.mean()),
        kind="value iteration",
        ceiling_error=standard_error(values),
    )


def random_return(chances: Array, rewards: Array, horizon: int) -> Array:
    """Exact return of uniformly random play from state 0, `[L]`."""
    return average(process_values(chances, rewards, horizon, average)[0][:, 0])
