"""Every space that a task can have is lived in and learned from, alone and beside others."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from sojourn.agents import LifetimeReturns, MetaTrainer, PPOLoss, Rollout
from sojourn.envs import Crowd, Length, task_stream

from .conftest import make_agent

TWO = spaces.Discrete(2)
BOX = spaces.Box(-2.0, 4.0, (3,), np.float64)
SEEN: dict[str, Any] = {
    "image of bytes": spaces.Box(0, 255, (9, 8, 3), np.uint8),
    "image, channels first": spaces.Box(0, 255, (3, 9, 8), np.uint8),
    "matrix of bytes": spaces.Box(0, 255, (5, 4), np.uint8),
    "vector of float64": BOX,
    "unbounded": spaces.Box(-np.inf, np.inf, (2, 2), np.float32),
    "bounded on one side": spaces.Box(0.0, np.inf, (1,), np.float32),
    "integers": spaces.Box(-5, 5, (2,), np.int32),
    "a number": spaces.Box(-1.0, 1.0, (), np.float32),
    "discrete from -1": spaces.Discrete(3, start=-1),
    "multi-discrete": spaces.MultiDiscrete([5, 2], start=[1, -1]),
    "multi-binary": spaces.MultiBinary([2, 2]),
    "text": spaces.Text(5),
    "nested": spaces.Tuple(
        [TWO, spaces.Dict(at=BOX, deeper=spaces.Dict(on=spaces.MultiBinary(2), say=spaces.Text(3)))]
    ),
}
ACTED: dict[str, Any] = {
    "discrete from 5": spaces.Discrete(3, start=5),
    "multi-discrete": spaces.MultiDiscrete([5, 5]),
    "multi-binary": spaces.MultiBinary(3),
    "box": spaces.Box(-2.0, 4.0, (3,), np.float32),
    "box of float64": spaces.Box(np.array([0.1, -9.0]), np.array([0.3, 9.0]), dtype=np.float64),
    "box of integers": spaces.Box(0, 10, (2, 2), np.int64),
    "tuple": spaces.Tuple([spaces.Discrete(4), BOX]),
    "dictionary": spaces.Dict(go=spaces.Dict(a=BOX), use=spaces.MultiBinary(1)),
}


class Anything(gymnasium.Env[Any, Any]):
    """Three steps of anything its spaces hold; stops whoever acts outside of them."""

    def __init__(self, seen: Any, acted: Any = TWO) -> None:
        self.observation_space, self.action_space = seen, acted

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.count = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), action
        self.count += 1
        reward = float(self.np_random.random())
        return self.observation_space.sample(), reward, False, self.count == 3, {}


def trains(*tasks: Any) -> Rollout:
    """Two updates on a stream of the tasks in turn: finite, the first ratio 1, all inputs used."""
    crowd = Crowd(task_stream(list(tasks), 0, length=Length(1)), 2)
    rollout = Rollout(make_agent(crowd.interface), crowd)
    trainer = MetaTrainer(rollout.agent, LifetimeReturns(discount=0.9), PPOLoss(), num_epochs=1)
    for _ in range(2):
        metrics = trainer.update(rollout.collect(4 * len(tasks))[0], progress=0.0)
        assert metrics["losses/first_ratio_error"] < 1e-4
        assert all(math.isfinite(v) for name, v in metrics.items() if "variance" not in name)
    seen = [p for name, p in rollout.agent.named_parameters() if name.startswith("encoder.")]
    assert seen and all(p.grad is not None for p in seen)
    return rollout


@pytest.mark.parametrize("name", SEEN)
def test_every_observation_space_trains(name: str) -> None:
    trains(lambda: Anything(SEEN[name]))


@pytest.mark.parametrize("name", ACTED)
def test_every_action_space_trains(name: str) -> None:
    trains(lambda: Anything(BOX, ACTED[name]))


MISSIONS: dict[str, dict[str, Any]] = {
    "planned by us": {"id": "BabyAI-GoToObjS4-v0"},
    "as any environment": {
        "id": "MiniGrid-Fetch-5x5-N2-v0",
        "reference": {"floor": 0, "ceiling": 1},
    },
}


@pytest.mark.parametrize("name", MISSIONS)
def test_missions_train(name: str) -> None:
    task = MISSIONS[name] | {"missions": "tokens", "kwargs": {"max_steps": 4}}
    rollout = trains(task)
    assert rollout.crowd.interface.channels["mission"].kind == "tokens"


def test_all_spaces_train_in_one_stream() -> None:
    seen = [lambda space=space: Anything(space) for space in SEEN.values()]
    acted = [lambda space=space: Anything(BOX, space) for space in ACTED.values()]
    rollout = trains(*seen, *acted)
    interface = rollout.crowd.interface
    assert interface.num_reals == 4 and interface.choices == (5, 5, 2)
    kinds = {channel.kind for channel in interface.channels.values()}
    assert kinds == {"image", "vector", "discrete", "tokens"}
