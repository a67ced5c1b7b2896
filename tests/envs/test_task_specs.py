"""Tasks as users write them: ids, modules, factories, plug-ins, drawn parameters, refusals."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv

from sojourn.envs import (
    BernoulliBandit,
    Changes,
    Crowd,
    Family,
    GymnasiumFamily,
    Length,
    MinigridFamily,
    RandomCount,
    RandomLength,
    TaskSpec,
    family_of,
    spec_of,
    task_specs,
    task_stream,
)
from sojourn.envs.draws import drawn, extremes

MODULE = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv
gymnasium.register("Cart-v0", entry_point=CartPoleEnv, max_episode_steps=7)
def make_cart(gravity=9.8):
    env = CartPoleEnv()
    env.gravity = gravity
    return env
number = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's with an environment, importable by name."""
    name = "carts_of_the_user"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop(name, None)
    return name


def tasks_of(stream: Any, num: int = 6) -> list[Any]:
    return [stream.segment(0, k).task for k in range(num)]


def test_every_way_to_name_a_task(module: str) -> None:
    tasks = [
        "CartPole-v1",
        f"{module}:Cart-v0",
        f"{module}:make_cart",
        CartPoleEnv,
        "MiniGrid-Empty-5x5-v0",
        {"id": "CartPole-v1", "name": "twice as heavy", "attributes": {"masscart": 2.0}},
        TaskSpec("CartPole-v1", max_episode_steps=4),
        BernoulliBandit(2, 4),
    ]
    stream = task_stream(tasks, seed=0)
    assert [task.name for task in tasks_of(stream, 8)] == [
        "CartPole-v1",
        f"{module}:Cart-v0",
        f"{module}:make_cart",
        "CartPoleEnv",
        "MiniGrid-Empty-5x5-v0",
        "twice as heavy",
        "CartPole-v1",
        "bandit-2x4",
    ]
    crowd = Crowd(stream, 8)
    for _ in range(60):
        crowd.step(crowd.observation["action_mask"].argmax(1))


def test_minigrid_keeps_its_planner_unless_it_is_changed() -> None:
    assert isinstance(family_of(spec_of("MiniGrid-Empty-5x5-v0")), MinigridFamily)
    changed = {"id": "MiniGrid-Empty-5x5-v0", "wrappers": ["minigrid.wrappers:ImgObsWrapper"]}
    assert isinstance(family_of(spec_of(changed)), GymnasiumFamily)


def test_parameters_are_drawn_for_every_task_and_hidden() -> None:
    spec = {
        "id": "CartPole-v1",
        "attributes": {"gravity": {"uniform": [8, 12]}, "force_mag": {"choice": [5.0, 20.0]}},
        "kwargs": {"sutton_barto_reward": {"choice": [True, False]}},
    }
    stream = task_stream([spec], seed=0)
    seen = []
    for task in tasks_of(stream, 40):
        env: Any = task.make_env()
        task.configure(env)
        seen.append((env.unwrapped.gravity, env.unwrapped.force_mag))
    gravity, force = np.array(seen).T
    assert 8 <= gravity.min() < 8.5 and 11.5 < gravity.max() <= 12 and len(set(gravity)) == 40
    assert set(force) == {5.0, 20.0}
    assert tasks_of(stream, 3)[2].env_key == tasks_of(task_stream([spec], seed=0), 3)[2].env_key


def test_tasks_share_environments_only_where_all_parameters_are_set_anew() -> None:
    def key(**attributes: float) -> Any:
        family = GymnasiumFamily("CartPole-v1", changes=Changes(attributes=attributes))
        return family.draw(np.random.default_rng(0)).env_key

    assert key(gravity=1.0) == key(gravity=2.0) != key(length=1.0) != key()


def test_rules_follow_their_laws() -> None:
    rng = np.random.default_rng(0)
    rules = {"a": {"integers": [1, 3]}, "b": {"log_uniform": [1, 100]}, "c": 5, "d": {"x": 1}}
    values = [drawn(rules, rng) for _ in range(2000)]
    assert {value["a"] for value in values} == {1, 2, 3}
    b = np.array([value["b"] for value in values])
    assert b.min() >= 1 and b.max() <= 100 and abs(np.median(b) - 10) < 1.5
    assert all(value["c"] == 5 and value["d"] == {"x": 1} for value in values)
    assert [value["a"] for value in extremes(rules)] == [1, 3, 1]


def test_the_interface_holds_all_that_can_be_drawn() -> None:
    spec = {"id": "FrozenLake-v1", "kwargs": {"map_name": {"choice": ["4x4", "8x8"]}}}
    stream = task_stream([spec], seed=0)
    assert stream.interface.channels["discrete"].num_values == 64


def test_lengths_weights_and_references_of_a_task() -> None:
    tasks = [
        {"id": "CartPole-v1", "length": {"amount": 7, "unit": "steps"}, "weight": 3},
        {"id": "Acrobot-v1", "reference": {"floor": -500, "ceiling": -80, "reward_range": 500}},
    ]
    stream = task_stream(tasks, 0, order="independent", length=Length(2))
    segments = [stream.segment(0, k) for k in range(50)]
    for segment in segments:
        expected = Length(7, "steps") if segment.task.name == "CartPole-v1" else Length(2)
        assert segment.length == expected
    acrobot = next(s.task for s in segments if s.task.name == "Acrobot-v1")
    assert acrobot.reference is not None and acrobot.reference.kind == "user"
    names = [task.name for task in tasks_of(task_stream(tasks, 0), 400)]
    assert 250 < names.count("CartPole-v1") < 350


def test_plug_ins_are_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {
        name: EntryPoint(name, f"sojourn.envs:{value}", "sojourn.envs")
        for name, value in (("slots", "BernoulliBandit"), ("wagon", "CartPoleEnv"))
    }
    monkeypatch.setattr(task_specs, "plugins", lambda: points)
    monkeypatch.setattr("sojourn.envs.CartPoleEnv", CartPoleEnv, raising=False)
    family = family_of(spec_of({"id": "slots", "kwargs": {"num_arms": 4}}))
    assert isinstance(family, Family) and family.interface.num_actions == 4
    assert family_of(spec_of("wagon")).interface.num_actions == 2


REFUSED: list[tuple[Any, str]] = [
    ("CartPol-v1", "tasks.0: id: .*Did you mean: `CartPole`"),
    ("MiniGrid-Emty-5x5-v0", "tasks.0: id: .*nearest: MiniGrid-Empty-5x5-v0"),
    ("nosuchmod:Bar-v0", "tasks.0: id: No module named 'nosuchmod'"),
    ("nosuchmod:make_bar", "tasks.0: id: nosuchmod:make_bar: cannot import 'nosuchmod'"),
    ("gymnasium:mak", "tasks.0: id: gymnasium has no 'mak'; nearest: make"),
    (3, "tasks.0: expected an id"),
    ({"kwargs": {}}, "tasks.0: expected the key 'id'"),
    ({"id": "CartPole-v1", "kwarg": 1}, "tasks.0: no such key 'kwarg'; nearest is 'kwargs'"),
    (
        {"id": "CartPole-v1", "kwargs": {"size": 1}},
        "tasks.0: kwargs: CartPole-v1 takes no 'size'; it takes sutton_barto_reward, render_mode$",
    ),
    (
        {"id": "MiniGrid-Empty-5x5-v0", "kwargs": {"max_episode_steps": 7}},
        "max_episode_steps is not an argument of MiniGrid-Empty-5x5-v0; its own is max_steps=7",
    ),
    ({"id": "CartPole-v1", "kwargs": {"render_mode": ["x"]}}, "cannot be made with kwargs"),
    (
        {"id": "CartPole-v1", "kwargs": {"max_episode_steps": 7}},
        "kwargs: max_episode_steps is a key of the task, .* max_episode_steps=7",
    ),
    ({"id": "CartPole-v1", "kwargs": 7}, "kwargs: expected {name: value}, got 7"),
    ({"id": "CartPole-v1", "attributes": [7]}, "attributes: expected {name: value}, got .7"),
    ({"id": "CartPole-v1", "attributes": {"gravty": 1}}, "has no 'gravty'; nearest: gravity"),
    (
        {"id": "CartPole-v1", "attributes": {"gravity": {"unifrm": [1, 2]}}},
        "attributes.gravity: no rule 'unifrm'; did you mean uniform",
    ),
    ({"id": "CartPole-v1", "attributes": {"gravity": {"uniform": [2, 1]}}}, "expects .lowest"),
    ({"id": "CartPole-v1", "attributes": {"gravity": {"choice": []}}}, "expects a list"),
    ({"id": "CartPole-v1", "attributes": {"gravity": {"log_uniform": [0, 1]}}}, "above 0"),
    ({"id": "CartPole-v1", "wrappers": ["gymnasium.wrappers:Nope"]}, "wrappers has no 'Nope'"),
    ({"id": "CartPole-v1", "wrappers": ["no colon"]}, "wrappers: "),
    ({"id": "CartPole-v1", "wrappers": [{"a:B": {}, "kwargs": {}}]}, "wrappers: expected {'module"),
    (
        {"id": "CartPole-v1", "wrappers": [{"gymnasium.wrappers:TimeLimit": {"steps": 1}}]},
        "wrappers: gymnasium.wrappers:TimeLimit cannot be put around",
    ),
    ({"id": "CartPole-v1", "length": 0}, "segment length: expected at least 1"),
    ({"id": "CartPole-v1", "length": {"number": 1}}, "length: "),
    ({"id": "CartPole-v1", "reference": {"floor": 1}}, "reference of CartPole-v1: .*ceiling"),
]


@pytest.mark.parametrize(("task", "told"), REFUSED, ids=lambda value: str(value)[:50])
def test_a_task_that_cannot_be_played_is_refused_in_one_line(task: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told) as found:
        task_stream([task], seed=0)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(("tasks", "told"), [([], "expected a list"), ({}, "expected a list")])
def test_no_tasks_are_no_stream(tasks: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        task_stream(tasks, seed=0)
    with pytest.raises(ValueError, match=r"order: .*'recuring'; nearest is 'recurring'"):
        task_stream(["CartPole-v1"], seed=0, order="recuring")  # type: ignore[arg-type]


def test_wrappers_go_around_in_order() -> None:
    spec = {
        "id": "CartPole-v1",
        "wrappers": [
            "gymnasium.wrappers:TimeAwareObservation",
            {"gymnasium.wrappers:FrameStackObservation": {"stack_size": 3}},
        ],
    }
    family = family_of(spec_of(spec))
    assert family.interface.channels["vector"].shape == (15,)


def test_our_own_grids_keep_their_planner_or_are_played_as_any_environment() -> None:
    assert isinstance(family_of(spec_of("Sojourn-TwoGoals-v0")), MinigridFamily)
    short = family_of(spec_of({"id": "Sojourn-Unlock-v0", "max_episode_steps": 9}))
    assert isinstance(short, GymnasiumFamily)
    short.draw(np.random.default_rng(0)).make_env().close()


def test_lengths_of_segments_and_lives_may_be_hidden() -> None:
    stream = task_stream(
        ["CartPole-v1"],
        seed=0,
        length=RandomLength(2, 5, "episodes"),
        lifetime_segments=RandomCount(1, 4),
    )
    amounts = {stream.segment(0, k).length.amount for k in range(40)}
    assert amounts == {2, 3, 4, 5}
    assert {stream.num_segments(life) for life in range(40)} == {1, 2, 3, 4}
