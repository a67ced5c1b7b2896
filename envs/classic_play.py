"""Best play of Gymnasium's own small games, by the very policies that their references measure.

    CartPole      push to the side on which the linear controller's sum is positive
    Acrobot       a search from the first state            (`acrobot_play`)
    MountainCar   a search from the first state            (`mountain_car_play`)
    Pendulum      the torque of least cost                 (`pendulum_play`)
    Blackjack     the better option, exactly               (`blackjack_play`)

They are known under their own rules alone: with other physics, or inside a wrapper that could
change actions or rewards, nobody knows the best play.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import wrappers
from gymnasium.envs.classic_control import AcrobotEnv, CartPoleEnv, MountainCarEnv, PendulumEnv
from gymnasium.envs.toy_text import BlackjackEnv

from .acrobot_play import swing_plan
from .best_play import BestAction, best_actions
from .blackjack_play import best_option, hand_of
from .cart_pole import GAINS
from .gymnasium_family import GymnasiumTask
from .mountain_car_play import drive_plan
from .pendulum_play import MAX_TORQUE, best_torque
from .shifted import ShiftedObservations
from .task import Env

HARMLESS = (
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.TimeLimit,
    ShiftedObservations,
)
"""Wrappers that change neither what an action does nor what it earns."""


class Expert(NamedTuple):
    """Next actions from the present state of an innermost environment, under these rules."""

    play: Callable[[Any], Sequence[BestAction]]
    rules: Mapping[str, Any]


def _swing(env: Any) -> Sequence[BestAction]:
    return swing_plan(np.array(env.state, np.float64))


def _drive(env: Any) -> Sequence[BestAction]:
    place, speed = env.state
    return drive_plan(float(place), float(speed))


EXPERTS: Mapping[type, Expert] = {
    CartPoleEnv: Expert(
        lambda env: (int(GAINS @ env.state > 0.0),),
        {"gravity": 9.8, "masscart": 1.0, "masspole": 0.1, "length": 0.5, "force_mag": 10.0}
        | {"tau": 0.02, "_sutton_barto_reward": False},
    ),
    AcrobotEnv: Expert(
        _swing,
        {"dt": 0.2, "AVAIL_TORQUE": [-1.0, 0.0, 1.0], "torque_noise_max": 0.0, "LINK_MOI": 1.0}
        | {f"LINK_{what}_{link}": 1.0 for what in ("LENGTH", "MASS") for link in (1, 2)}
        | {f"LINK_COM_POS_{link}": 0.5 for link in (1, 2)}
        | {"book_or_nips": "book"},
    ),
    MountainCarEnv: Expert(
        _drive,
        {"force": 0.001, "gravity": 0.0025, "max_speed": 0.07, "min_position": -1.2}
        | {"goal_position": 0.5, "goal_velocity": 0},
    ),
    PendulumEnv: Expert(
        lambda env: ((best_torque(*map(float, env.state)) / MAX_TORQUE,),),
        {"g": 10.0, "m": 1.0, "l": 1.0, "dt": 0.05, "max_speed": 8, "max_torque": MAX_TORQUE},
    ),
    BlackjackEnv: Expert(
        lambda env: (best_option(hand_of(env.player), env.dealer[0]),),
        {"sab": True},
    ),
}


@best_actions.register
def best_classic_actions(task: GymnasiumTask, env: Env) -> Sequence[BestAction]:
    """The next actions of the expert of this game; empty where there is none for its rules."""
    del task
    expert = EXPERTS.get(type(env.unwrapped))
    if expert is None or not _plays_by(expert.rules, env):
        return ()
    return expert.play(env.unwrapped)


def _plays_by(rules: Mapping[str, Any], env: Env) -> bool:
    """Whether an environment has these rules and no wrapper around it can change them."""
    base = env.unwrapped
    while env is not base:
        if type(env) not in HARMLESS:
            return False
        env = env.env  # type: ignore[attr-defined]
    return all(getattr(base, name) == value for name, value in rules.items())
