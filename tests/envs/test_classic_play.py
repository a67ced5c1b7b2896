"""Laws of the experts: each reaches the ceiling it stands for, and is what a slow search finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from sojourn.envs import (
    Changes,
    Crowd,
    GymnasiumFamily,
    Length,
    NeverRepeating,
    Oracle,
    Reference,
    Stream,
    best_actions,
    family_of,
    spec_of,
    task_stream,
    unknown_best_play,
)
from sojourn.envs.acrobot_play import swing, swing_plan
from sojourn.envs.blackjack_play import best_value, random_value
from sojourn.envs.gymnasium_family import GymnasiumTask
from sojourn.envs.mountain_car_play import drive, drive_plan
from sojourn.envs.pendulum_play import NUM_ANGLES, NUM_SPEEDS, SWEPT, best_torque, least_costs
from sojourn.envs.reference_files import SHIPPED
from sojourn.envs.task import Family

EPISODES = {"CartPole-v1": 2, "MountainCar-v0": 12, "Acrobot-v1": 4, "Pendulum-v1": 12}
MANY = 400  # short ones


def shipped_families() -> dict[str, Family]:
    """The families of the reference files."""
    ids = sorted(OmegaConf.load(path).task.id for path in SHIPPED.glob("*.yaml"))
    return {id: family_of(spec_of(id)) for id in ids}


def played(family: Family, num_episodes: int) -> tuple[Reference, np.ndarray]:
    """What a family declares, and returns of the oracle in a crowd."""
    stream = Stream(NeverRepeating([family]), Length(1), seed=11)
    crowd, oracle = Crowd(stream, 2), Oracle(stream, 2)
    returns: list[float] = []
    while len(returns) < num_episodes:
        at = crowd.state_dict()["counters"]
        starts = np.equal(at["episode_step"], 0)
        actions = oracle.actions(at["lifetime"], at["segment"], at["episode"], starts)
        returns += [record.total_return for record in crowd.step(actions).episodes]
    reference = crowd.segments[0].task.reference
    oracle.close()
    crowd.close()
    assert reference is not None
    return reference, np.array(returns)


@pytest.mark.parametrize("id", shipped_families())
def test_the_oracle_reaches_the_shipped_reference(id: str) -> None:
    reference, returns = played(shipped_families()[id], EPISODES.get(id, MANY))
    error = returns.std(ddof=1) / np.sqrt(len(returns))
    assert abs(returns.mean() - reference.ceiling) <= 4.5 * np.hypot(error, reference.ceiling_error)


def test_the_oracle_plays_games_of_several_kinds_of_action(shipped_streams: list[Path]) -> None:
    """Every game of the stream that mixes them, whose declared numbers are met too."""
    path = next(path for path in shipped_streams if path.stem == "mixed")
    stream = instantiate(OmegaConf.load(path), seed=3)
    games = [f for f in stream.schedule.families if isinstance(draw(f), GymnasiumTask)]
    assert len(games) == 3
    for family in games:
        short = {"Blackjack-v1": MANY}
        reference, returns = played(family, short.get(family.name, EPISODES.get(family.name, 8)))
        error = returns.std(ddof=1) / np.sqrt(len(returns))
        bound = 4.5 * np.hypot(error, reference.ceiling_error)
        assert abs(returns.mean() - reference.ceiling) <= bound, family.name


def draw(family: Family) -> Any:
    return family.draw(np.random.default_rng(0))


CLIPPED = [{"gymnasium.wrappers:ClipReward": {"min_reward": 0, "max_reward": 1}}]
OTHERS: dict[str, Callable[[], Family]] = {
    "masses": lambda: GymnasiumFamily(
        "Acrobot-v1", changes=Changes(attributes={"LINK_MASS_1": 2.0})
    ),
    "speed": lambda: GymnasiumFamily("MountainCar-v0", {"goal_velocity": 0.01}),
    "gravity": lambda: GymnasiumFamily("Pendulum-v1", {"g": 9.81}),
    "pay": lambda: GymnasiumFamily("Blackjack-v1", {"sab": False}),
    "wrapped": lambda: GymnasiumFamily("CartPole-v1", changes=Changes(CLIPPED)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_rules_and_wrappers_are_not_known(name: str) -> None:
    task = draw(OTHERS[name]())
    env = task.make_env()
    task.configure(env)
    env.reset(seed=0)
    assert list(best_actions(task, env)) == []


def test_blackjack_is_worth_what_is_computed() -> None:
    """Random play in the real game, whose value is computed by the same recursion as the best."""
    env = gymnasium.make("Blackjack-v1", disable_env_checker=True)
    rng, returns = np.random.default_rng(0), []
    for seed in range(4000):
        env.reset(seed=seed)
        reward: Any = 0.0
        terminated = False
        while not terminated:
            _, reward, terminated, _, _ = env.step(int(rng.integers(2)))
        returns.append(float(reward))
    error = np.std(returns) / np.sqrt(len(returns))
    assert abs(np.mean(returns) - random_value()) < 4.5 * error
    assert random_value() < best_value() < 0.0


@pytest.mark.parametrize("start", [(0.3, 0.03), (0.45, 0.01), (0.2, 0.045), (0.49, 0.0)])
def test_near_the_goal_no_car_is_faster(start: tuple[float, float]) -> None:
    """Against all sequences of actions."""
    place, speed = (np.array([part]) for part in start)
    steps = 0
    while not (place >= 0.5).any():
        steps += 1
        actions = np.tile([0, 1, 2], len(place))
        place, speed = drive(np.repeat(place, 3), np.repeat(speed, 3), actions)
    assert 1 < steps < 13
    assert len(drive_plan(*start)) == steps


def test_plans_arrive_in_the_real_game_when_they_say() -> None:
    plans: dict[str, Callable[[Any], list[int]]] = {
        "MountainCar-v0": lambda state: drive_plan(*state),
        "Acrobot-v1": lambda state: swing_plan(np.array(state, float)),
    }
    for id, planned in plans.items():
        env = gymnasium.make(id, disable_env_checker=True)
        for seed in range(3):
            env.reset(seed=seed)
            actions = planned(env.unwrapped.state)  # type: ignore[attr-defined]
            ends = [env.step(action)[2] for action in actions]
            assert ends == [False] * (len(ends) - 1) + [True]


def test_acrobot_moves_as_the_real_one() -> None:
    env: Any = gymnasium.make("Acrobot-v1", disable_env_checker=True).unwrapped
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    for _ in range(50):
        state, action = rng.uniform(-3.0, 3.0, 4), int(rng.integers(3))
        env.state = state
        env.step(action)
        np.testing.assert_allclose(swing(state[None], np.array([action - 1.0]))[0], env.state)


def test_pendulum_costs_satisfy_bellmans_equation_in_the_real_game() -> None:
    env: Any = gymnasium.make("Pendulum-v1", disable_env_checker=True).unwrapped
    env.reset(seed=0)
    costs, rng = least_costs(), np.random.default_rng(0)
    angles = np.arange(NUM_ANGLES + 1) * (2 * np.pi / NUM_ANGLES) - np.pi
    speeds = np.linspace(-8.0, 8.0, NUM_SPEEDS)
    wrapped = np.vstack([costs, costs[:1]])  # the first angle is also the last one

    def between(angle: float, speed: float) -> float:
        by_speed = [np.interp(speed, speeds, row) for row in wrapped]
        return float(np.interp((angle + np.pi) % (2 * np.pi) - np.pi, angles, by_speed))

    for _ in range(20):
        i, j = rng.integers(NUM_ANGLES), rng.integers(NUM_SPEEDS)
        after = []
        for torque in SWEPT:
            env.state = np.array([angles[i], speeds[j]])
            _, reward, *_ = env.step(np.array([torque]))
            after.append(between(*env.state) - reward)
        assert costs[i, j] == pytest.approx(min(after), rel=1e-3)
    assert best_torque(0.0, 0.0) == 0.0 and best_torque(0.1, 0.0) < 0.0 < best_torque(-0.1, 0.0)


def test_tasks_of_plain_ids_have_reference_and_player() -> None:
    stream = task_stream(["Acrobot-v1", "Blackjack-v1", "Pendulum-v1"], seed=0)
    assert [stream.segment(0, k).task.reference is not None for k in range(3)] == [True] * 3
    assert unknown_best_play(stream) == []
