"""Native spaces to channels, and what environments may return."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from sojourn.envs import (
    Adapter,
    Channel,
    GymnasiumSimulator,
    Interface,
    Length,
    Segment,
    Task,
    interface_of,
)


class Stub(gymnasium.Env[Any, Any]):
    """Gives what it is told to give and remembers the actions it got."""

    def __init__(
        self, observation: Any, space: Any, actions: Any = None, reward: Any = 0.0
    ) -> None:
        self.observation_space = space
        self.action_space = actions or spaces.Discrete(2)
        self.observation, self.reward = observation, reward
        self.got: list[Any] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self.observation, {}

    def step(self, action: Any) -> Any:
        self.got.append(action)
        if isinstance(self.reward, str):
            raise ValueError("stepped past the limit")
        return self.observation, self.reward, np.bool_(False), False, {}


class StubTask(Task):
    name = "stub"
    env_key = "stub"

    def __init__(self, env: Stub) -> None:
        self.env = env

    def make_env(self) -> Stub:
        return self.env


def simulate(env: Stub, interface: Interface | None = None) -> GymnasiumSimulator:
    simulator = GymnasiumSimulator(interface or interface_of(env), 1)
    simulator.begin_segment(0, Segment(StubTask(env), 0, Length(1)))
    simulator.begin_episode(0, 0)
    return simulator


BOX = spaces.Box(-1, 1, (3,), np.float64)


def test_box_discrete_and_dict_become_channels() -> None:
    space = spaces.Dict(where=BOX, what=spaces.Discrete(3, start=-1))
    env = Stub({"where": np.array([1.0, 0.5, 0.0]), "what": np.int64(1)}, space)
    simulator = simulate(env)
    assert simulator.interface.channels == {
        "what": Channel("discrete", (), 3),
        "where": Channel("vector", (3,)),
    }
    shown = simulator.observation()
    assert shown["what"].tolist() == [2] and shown["where"].tolist() == [[1.0, 0.5, 0.0]]
    assert simulate(Stub(np.ones(3), BOX)).observation()["vector"].tolist() == [[1, 1, 1]]
    whole = simulate(Stub(7, spaces.Discrete(4, start=5))).observation()["discrete"]
    assert whole.tolist() == [2] and whole.dtype == np.int64


def test_actions_reach_the_environment_in_its_own_range() -> None:
    env = Stub(np.zeros(3), BOX, spaces.Discrete(2, start=1))
    simulator = simulate(env, Interface({"vector": Channel("vector", (5,))}, 4))
    simulator.step(np.array([0]))
    simulator.step(np.array([1]))
    assert env.got == [1, 2]
    shown = simulator.observation()
    assert shown["action_mask"].tolist() == [[True, True, False, False]]
    assert shown["vector"].shape == (1, 5)


NESTED = spaces.Tuple([BOX, spaces.Sequence(BOX)])


@pytest.mark.parametrize(
    ("space", "path"),
    [
        (spaces.Sequence(BOX), r"observation_space: expected a Box.*got Sequence"),
        (spaces.Dict(arm=NESTED), r"observation_space\['arm'\]\[1\]: .*got Sequence"),
        (spaces.Dict(a=spaces.Graph(BOX, None)), r"observation_space\['a'\]: .*got Graph"),
        (spaces.Box(0, 1, (0,)), r"observation_space: .*got Box"),
        (spaces.Dict(task_start=BOX), "'task_start' is an input of the agent"),
        (spaces.Dict({"a.b": BOX, "a": spaces.Dict(b=BOX)}), "two parts have the path 'a.b'"),
    ],
)
def test_other_spaces_are_refused_by_path(space: Any, path: str) -> None:
    with pytest.raises(ValueError, match=path):
        interface_of(Stub(None, space))


def test_other_actions_are_refused_by_path() -> None:
    wide = spaces.Box(-np.inf, np.inf, (2,))
    with pytest.raises(ValueError, match="action_space: expected a Box with bounds"):
        interface_of(Stub(None, BOX, wide))
    nested = spaces.Dict(arm=spaces.Tuple([BOX, spaces.Text(4)]))
    with pytest.raises(ValueError, match=r"action_space\['arm'\]\[1\]: expected .*got Text"):
        interface_of(Stub(None, BOX, nested))
    with pytest.raises(ValueError, match="has 2, expected at most 1"):
        Adapter(Stub(None, BOX), Interface({"vector": Channel("vector", (3,))}, 1))
    with pytest.raises(ValueError, match="and 3 reals, expected at most"):
        Adapter(Stub(None, BOX, BOX), Interface({"vector": Channel("vector", (3,))}, 2))
    with pytest.raises(ValueError, match="channel 'vector'"):
        Adapter(Stub(None, BOX), Interface({"vector": Channel("vector", (2,))}, 2))


def numbers() -> list[Any]:
    import torch

    return [0, 1, np.int64(1), np.float64(0.5), np.array([1.0]), torch.tensor(1.0), True, np.True_]


@pytest.mark.parametrize("reward", numbers(), ids=repr)
def test_every_kind_of_reward_becomes_a_float32(reward: Any) -> None:
    outcome = simulate(Stub(np.zeros(3), BOX, reward=reward)).step(np.array([0]))
    assert outcome.reward.dtype == np.float32 and outcome.reward.shape == (1,)
    assert outcome.reward[0] == float(np.asarray(reward).reshape(()))
    assert np.isnan(outcome.expected_reward[0]) and outcome.terminated.dtype == bool


@pytest.mark.parametrize("reward", [np.nan, -np.inf, 1e300, np.array([1.0, 2.0]), None], ids=repr)
def test_a_reward_that_is_no_finite_number_stops(reward: Any) -> None:
    simulator = simulate(Stub(np.zeros(3), BOX, reward=0.0))
    simulator.step(np.array([0]))
    simulator._played(0)[0].env.reward = reward  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="stub, row 0, step 2 of the episode: expected a"):
        simulator.step(np.array([0]))


def test_a_failing_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match=r"stub, row 0, step 1 .* set max_episode_steps"):
        simulate(Stub(np.zeros(3), BOX, reward="fail")).step(np.array([0]))

    def fail(*_: object, **__: object) -> None:
        raise ValueError("boom")

    monkeypatch.setattr(Stub, "reset", fail)
    with pytest.raises(RuntimeError, match=r"stub, row 0: .* reset\(seed=0\) \(ValueError: boom"):
        simulate(Stub(np.zeros(3), BOX))
    monkeypatch.setattr(StubTask, "make_env", fail)
    with pytest.raises(RuntimeError, match=r"stub, row 0: .* being made \(ValueError: boom"):
        simulate(Stub(np.zeros(3), BOX))


def test_an_observation_of_another_shape_is_named() -> None:
    space = spaces.Dict(a=spaces.Discrete(3), b=BOX)
    env = Stub({"a": 1, "b": np.zeros(3)}, space)
    simulator = simulate(env)
    for step, (observation, problem) in enumerate(
        (
            ({"a": 1, "b": np.zeros(4)}, r"observation\['b'\]: expected shape \(3,\), got \(4,\)"),
            ({"b": np.zeros(3)}, r"observation\['a'\]: missing"),
        ),
        start=1,
    ):
        env.observation = observation
        with pytest.raises(ValueError, match=f"stub, row 0, step {step} of the episode: {problem}"):
            simulator.step(np.array([0]))
    with pytest.raises(ValueError, match=r"step 0 .*: observation: expected .* got \(1,\)"):
        simulate(Stub(np.zeros(1), BOX), Interface({"vector": Channel("vector", (3,))}, 2))
    with pytest.raises(ValueError, match=r"step 0 .*channel 'vector': expected finite .* got nan"):
        simulate(Stub(np.array([0, np.nan, 0]), BOX))
    with pytest.raises(ValueError, match=r"step 0 .*channel 'vector': expected finite .* got inf"):
        simulate(Stub(np.array([0, 1e300, 0]), BOX))
    with pytest.raises(ValueError, match="channel 'discrete': expected codes from 0 to 2, got 3"):
        simulate(Stub(3, spaces.Discrete(3)))
