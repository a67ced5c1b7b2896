"""`gymnasium.make("sojourn/Lifetime-v0")` and the wrapper for agents that know no masks."""

import warnings
from collections.abc import Callable

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from sojourn.envs import (
    Crowd,
    GymnasiumFamily,
    LegalActions,
    Length,
    Lifetime,
    NeverRepeating,
    Stream,
    task_stream,
)

ID = "sojourn/Lifetime-v0"
MIXED = ["CartPole-v1", {"id": "Pendulum-v1", "max_episode_steps": 7}, "Acrobot-v1"]


def test_every_stream_passes_the_checker_of_gymnasium(build: Callable[..., Stream]) -> None:
    env = LegalActions(gymnasium.make(ID, stream=build(seed=0)).unwrapped)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*different from the unwrapped version")
        check_env(env, skip_render_check=True)
    env.reset(seed=1)
    env.action_space.seed(0)
    for _ in range(30):
        *_, ended, _ = env.step(env.action_space.sample())
        if ended:
            env.reset()
    env.close()


def test_it_is_the_lifetime_of_the_stream() -> None:
    stream = task_stream(["CartPole-v1"], seed=3)
    env = gymnasium.make(ID, stream=stream, index=2)
    crowd = Crowd(stream, 1, first_lifetime=2)
    observation, info = env.reset()
    assert info == {"lifetime": 2} and isinstance(env.unwrapped, Lifetime)
    for _ in range(40):
        np.testing.assert_array_equal(observation["vector"], crowd.observation["vector"][0])
        observation, reward, *_ = env.step(1)
        assert reward == crowd.step(np.array([1])).reward[0]


def test_tasks_in_place_of_a_stream() -> None:
    env = gymnasium.make(ID, stream=["CartPole-v1", "Acrobot-v1"], seed=5)
    same = gymnasium.make(ID, stream=task_stream(["CartPole-v1", "Acrobot-v1"], seed=5))
    first, _ = env.reset()
    again, _ = same.reset()
    for name, array in first.items():
        np.testing.assert_array_equal(array, again[name])
    with pytest.raises(ValueError, match="Did you mean: `CartPole`"):
        gymnasium.make(ID, stream="CartPol-v1")


def test_side_by_side() -> None:
    many = gymnasium.make_vec(ID, num_envs=2, vectorization_mode="sync", stream="CartPole-v1")
    observation, _ = many.reset(seed=[4, 9])
    assert observation["vector"].shape == (2, 4)
    assert (observation["vector"][0] != observation["vector"][1]).any()
    many.close()


def masked(env: LegalActions, *options: list[int]) -> LegalActions:
    """With only the given options of every choice possible."""
    sizes, mask = env._sizes, []
    for size, possible in zip(sizes, options, strict=True):
        mask += [option in possible for option in range(size)]
    env._mask = np.array(mask + [True] * env._num_reals)
    return env


def test_numbers_become_legal_choices() -> None:
    env = masked(LegalActions(gymnasium.make(ID, stream=["Acrobot-v1"]).unwrapped), [0, 2])
    assert isinstance(env.action_space, spaces.Discrete)
    assert [env.legal(action) for action in range(3)] == [0, 2, 2]


def test_reals_become_legal_choices_and_reals() -> None:
    env = masked(LegalActions(gymnasium.make(ID, stream=MIXED).unwrapped), [0, 2])
    assert env.action_space == spaces.Box(-1.0, 1.0, (2,))
    chosen = [env.legal(np.array([x, 0.25])) for x in (-1.0, -0.01, 0.0, 1.0)]
    assert [int(action["choices"][0]) for action in chosen] == [0, 0, 2, 2]
    assert chosen[0]["reals"].tolist() == [0.25]
    alone = LegalActions(gymnasium.make(ID, stream="Pendulum-v1").unwrapped)
    assert alone.action_space == spaces.Box(-1.0, 1.0, (1,))


class Levers(gymnasium.Env[np.ndarray, np.ndarray]):
    """Two levers of two and three places; the sum of the places is the reward."""

    observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = spaces.MultiDiscrete([2, 3])

    def reset(self, **options: object) -> tuple[np.ndarray, dict[str, object]]:
        return np.zeros(1, np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, object]]:
        return np.zeros(1, np.float32), float(np.sum(action)), True, False, {}


def test_several_choices() -> None:
    stream = Stream(NeverRepeating([GymnasiumFamily(Levers)]), Length(1), 0)
    env = LegalActions(gymnasium.make(ID, stream=stream))
    assert env.action_space == spaces.MultiDiscrete([2, 3])
    env.reset()
    assert env.step(np.array([1, 2]))[1] == 3.0
    masked(env, [0, 1], [1])
    assert env.legal(np.array([1, 2]))["choices"].tolist() == [1, 1]


def test_only_around_a_lifetime() -> None:
    with pytest.raises(ValueError, match="expected a Lifetime"):
        LegalActions(gymnasium.make("Pendulum-v1"))
