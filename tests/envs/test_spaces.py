"""Every space that Gymnasium has: what the agent sees of it, and what the environment gets."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from sojourn.envs import (
    Channel,
    Crowd,
    GymnasiumFamily,
    Interface,
    Length,
    NeverRepeating,
    Recurring,
    Stream,
    interface_of,
    random_actions,
)

BOX = spaces.Box(-2.0, 4.0, (3,), np.float64)


class Echo(gymnasium.Env[Any, Any]):
    """Shows samples of its observation space, checks and remembers every action."""

    def __init__(self, seen: Any = BOX, acted: Any = None, mask: Any = None) -> None:
        self.observation_space = seen
        self.action_space = acted if acted is not None else spaces.Discrete(2)
        self.mask = mask
        self.got: list[Any] = []
        self.shown: list[Any] = []

    def _show(self) -> Any:
        self.shown.append(self.observation_space.sample())
        return self.shown[-1]

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.observation_space.seed(seed)
        self.got, self.shown = [], []
        return self._show(), self._info()

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), action
        self.got.append(action)
        return self._show(), 0.0, False, len(self.got) >= 6, self._info()

    def _info(self) -> dict[str, Any]:
        return {} if self.mask is None else {"action_mask": self.mask(len(self.got))}


def life_of(*envs: Echo, rows: int = 1) -> Crowd:
    families = [GymnasiumFamily(lambda env=env: env) for env in envs]
    return Crowd(Stream(Recurring(families), Length(1), 0), rows)


SEEN: list[tuple[Any, dict[str, Channel]]] = [
    (spaces.Box(0, 255, (5, 4, 3), np.uint8), {"image": Channel("image", (5, 4, 3))}),
    (spaces.Box(0, 255, (5, 4), np.uint8), {"image": Channel("image", (5, 4, 1))}),
    (spaces.Box(0, 255, (3, 9, 8), np.uint8), {"image": Channel("image", (9, 8, 3))}),
    (spaces.Box(-1, 1, (2, 3), np.float32), {"vector": Channel("vector", (6,))}),
    (spaces.Box(-np.inf, np.inf, (), np.float64), {"vector": Channel("vector", (1,))}),
    (spaces.Discrete(3, start=-1), {"discrete": Channel("discrete", (), 3)}),
    (spaces.MultiDiscrete([5, 2], start=[1, -1]), {"discrete": Channel("discrete", (2,), 5)}),
    (spaces.MultiDiscrete([[2, 3], [4, 1]]), {"discrete": Channel("discrete", (4,), 4)}),
    (spaces.MultiBinary([2, 2]), {"vector": Channel("vector", (4,))}),
    (spaces.Text(5), {"tokens": Channel("tokens", (5,), 97)}),
    (
        spaces.Tuple([spaces.Discrete(2), spaces.Dict(at=BOX, on=spaces.MultiBinary(2))]),
        {
            "0": Channel("discrete", (), 2),
            "1.at": Channel("vector", (3,)),
            "1.on": Channel("vector", (2,)),
        },
    ),
]


@pytest.mark.parametrize(("space", "channels"), SEEN, ids=lambda value: str(value)[:40])
def test_every_observation_space_becomes_channels(space: Any, channels: dict[str, Channel]) -> None:
    env = Echo(space)
    crowd = life_of(env)
    assert crowd.interface.channels == channels
    for _ in range(5):
        shown = crowd.observation
        for name, channel in channels.items():
            assert shown[name].shape == (1, *channel.shape) and shown[name].dtype == channel.dtype
            if channel.kind == "discrete":
                assert (shown[name] >= 0).all() and (shown[name] < channel.num_values).all()
        crowd.step(np.array([0]))


def test_values_arrive_where_they_belong() -> None:
    env = Echo(SEEN[2][0])
    image = life_of(env).observation["image"][0]
    np.testing.assert_array_equal(image, np.moveaxis(env.shown[-1], 0, -1))
    env = Echo(SEEN[6][0])
    np.testing.assert_array_equal(life_of(env).observation["discrete"][0], env.shown[-1] - [1, -1])
    env = Echo(SEEN[10][0])
    shown = life_of(env).observation
    native = env.shown[-1]
    assert shown["0"][0] == native[0]
    np.testing.assert_array_equal(shown["1.at"][0], native[1]["at"].astype(np.float32))
    env = Echo(spaces.Text(5, charset="aé~"))
    env._show = lambda: "aé~"  # type: ignore[method-assign]
    assert life_of(env).observation["tokens"][0].tolist() == [ord("a") - 30, 1, 96, 0, 0]


ACTED: list[tuple[Any, tuple[int, ...], int]] = [
    (spaces.Discrete(3, start=5), (3,), 0),
    (spaces.MultiDiscrete([5, 5]), (5, 5), 0),
    (spaces.MultiDiscrete([[2, 3]], start=[[1, -1]]), (2, 3), 0),
    (spaces.MultiDiscrete([7]), (7,), 0),
    (spaces.MultiBinary(3), (2, 2, 2), 0),
    (spaces.Box(-2.0, 4.0, (3,), np.float32), (1,), 3),
    (spaces.Box(np.array([0.1, -9.0]), np.array([0.3, 9.0]), dtype=np.float64), (1,), 2),
    (spaces.Box(0, 10, (2, 2), np.int64), (1,), 4),
    (spaces.Tuple([spaces.Discrete(4), BOX]), (4,), 3),
    (spaces.Dict(go=spaces.Dict(a=BOX), use=spaces.MultiBinary(1)), (2,), 3),
]


@pytest.mark.parametrize(("space", "choices", "num_reals"), ACTED, ids=lambda v: str(v)[:40])
def test_the_environment_gets_actions_of_its_own_space(
    space: Any, choices: tuple[int, ...], num_reals: int
) -> None:
    env = Echo(acted=space)
    crowd = life_of(env, rows=1)
    interface = crowd.interface
    assert (interface.choices, interface.num_reals) == (choices, num_reals)
    rng = np.random.default_rng(0)
    for _ in range(40):  # the environment itself asserts that they are its own
        crowd.step(random_actions(interface, crowd.observation["action_mask"], rng))
    if interface.num_parts > 1:
        for end in (-1.0, 1.0):
            crowd.step(np.array([[0.0] * len(choices) + [end] * num_reals]))


def test_reals_span_the_range_of_the_space() -> None:
    env = Echo(acted=BOX)
    crowd = life_of(env)
    for a, native in ((-1.0, -2.0), (0.0, 1.0), (1.0, 4.0)):
        crowd.step(np.array([[0, a, a, a]]))
        np.testing.assert_allclose(env.got[-1], native)


@pytest.mark.parametrize(
    "wrong", [[1, 0, 0, 0], [0, 1.01, 0, 0], [0, np.nan, 0, 0], [0.5, 0, 0, 0]]
)
def test_actions_of_several_parts_are_checked(wrong: list[float]) -> None:
    crowd = life_of(Echo(acted=BOX))
    with pytest.raises(ValueError, match=r"actions: row 0 plays .*reals in \[-1, 1\]"):
        crowd.step(np.array([wrong]))
    with pytest.raises(ValueError, match=r"actions: expected \[1, 4\]"):
        crowd.step(np.array([0]))


def test_tasks_of_all_action_spaces_share_a_stream() -> None:
    envs = [Echo(acted=space) for space, _, _ in ACTED] + [Echo(spaces.Discrete(9))]
    crowd = life_of(*envs)
    assert crowd.interface.choices == (7, 5, 2) and crowd.interface.num_reals == 4
    rng, played = np.random.default_rng(1), set()
    for _ in range(6 * len(envs)):
        mask = crowd.observation["action_mask"]
        played.add(tuple(mask[0].tolist()))
        crowd.step(random_actions(crowd.interface, mask, rng))
    assert all(len(env.got) == 6 for env in envs[1:])
    assert len(played) >= 9, "nearly every space has a mask of its own"


def test_a_part_that_means_something_else_elsewhere_stands_beside() -> None:
    one = Interface({"x": Channel("vector", (2,)), "y": Channel("discrete", (), 3)}, 2)
    other = Interface({"x": Channel("discrete", (), 4), "y": Channel("discrete", (), 5)}, 3)
    both = one.union(other)
    assert both.channels == {
        "x": Channel("vector", (2,)),
        "y": Channel("discrete", (), 5),
        "x:discrete0": Channel("discrete", (), 4),
    }
    assert both.union(other) == both.union(one) == both
    crowd = life_of(Echo(spaces.Dict(x=BOX)), Echo(spaces.Dict(x=spaces.Discrete(4, start=9))))
    for _ in range(12):
        crowd.step(np.array([0]))
        assert set(crowd.observation) >= {"x", "x:discrete0"}


def test_masks_of_the_environment_reach_the_agent_and_end_with_the_task() -> None:
    def alternate(step: int) -> Any:
        return np.array([step % 2, 1, 0], np.int8)

    masked, plain = Echo(acted=spaces.Discrete(3), mask=alternate), Echo(acted=spaces.Discrete(4))
    crowd = life_of(masked, plain)
    seen = [crowd.observation["action_mask"][0].tolist()]
    for _ in range(7):
        action = np.array([1])
        seen.append(crowd.step(action).observation["action_mask"][0].tolist())
    assert seen[:2] == [[False, True, False, False], [True, True, False, False]]
    assert seen[6:] == [[True] * 4] * 2
    with pytest.raises(ValueError, match="which has 1 actions; got 0"):
        life_of(masked).step(np.array([0]))


def test_masks_of_several_choices_and_masks_in_the_observation() -> None:
    both = (np.array([1, 0], np.int8), np.array([0, 0, 1], np.int8))
    crowd = life_of(Echo(acted=spaces.MultiDiscrete([2, 3]), mask=lambda _: both))
    assert crowd.observation["action_mask"][0].tolist() == [True, False, False, False, True]
    space = spaces.Dict(action_mask=spaces.Box(1, 1, (2,), np.int8), x=BOX)
    assert set(interface_of(Echo(space)).channels) == {"x"}
    assert life_of(Echo(space)).observation["action_mask"].all()


@pytest.mark.parametrize(("mask", "told"), [([0, 0], "at least one"), ([1], "expected 2 entries")])
def test_impossible_masks_stop(mask: list[int], told: str) -> None:
    with pytest.raises(ValueError, match=f"row 0, step 0 of the episode: action_mask: .*{told}"):
        life_of(Echo(mask=lambda _: np.array(mask)))


def test_lives_with_several_parts_are_restored_in_mid_episode() -> None:
    def crowd() -> Crowd:
        family = GymnasiumFamily("Pendulum-v1")
        return Crowd(Stream(NeverRepeating([family]), Length(3), 0), 2)

    one, rng = crowd(), np.random.default_rng(0)
    for _ in range(90):
        one.step(random_actions(one.interface, one.observation["action_mask"], rng))
    other = crowd()
    other.load_state_dict(one.state_dict())
    action = random_actions(one.interface, one.observation["action_mask"], rng)
    a, b = one.step(action), other.step(action)
    assert (a.reward == b.reward).all()
    for name, array in a.observation.items():
        np.testing.assert_array_equal(array, b.observation[name])
