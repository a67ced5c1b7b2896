"""MiniGrid in EnvPool: the games of Python's environments, step by step, in layouts of its own."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sojourn.envs import (
    CartPole,
    Crowd,
    Family,
    Length,
    MinigridFamily,
    NeverRepeating,
    Recurring,
    Stream,
    task_stream,
)
from sojourn.envs.episodes import EpisodeRecord

installed = pytest.mark.skipif(find_spec("envpool") is None, reason="envpool is not installed")
IDS = ["MiniGrid-Empty-5x5-v0", "BabyAI-GoToObj-v0", "MiniGrid-Empty-8x8-v0"]
PLAYED = "MiniGrid-Empty-5x5-v0"


def crowd_of(families: list[Family], backend: Any, num_rows: int = 3, **options: Any) -> Crowd:
    stream = Stream(Recurring(families), Length(2), 0, backend=backend, **options)
    return Crowd(stream, num_rows)


def family(id: str = PLAYED, **options: Any) -> MinigridFamily:
    return MinigridFamily(id, **{"instance": "resampled", **options})


def told(record: EpisodeRecord) -> tuple[Any, ...]:
    known = (record.lifetime, record.segment, record.task, record.num_steps, record.status)
    return (*known, pytest.approx(record.total_return), pytest.approx(record.floor_return))


@installed
def test_where_layouts_are_fixed_a_life_is_that_of_pythons_environments() -> None:
    families: list[Family] = [
        family(kwargs={"max_steps": 30}, action_meaning="permuted"),
        family("MiniGrid-Empty-8x8-v0", kwargs={"max_steps": 25}, num_actions=3),
        family("MiniGrid-DistShift1-v0", kwargs={"max_steps": 20}),
    ]
    ours, theirs = crowd_of(families, "auto"), crowd_of(families, "envpool")
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(400):
        for name, array in ours.observation.items():
            np.testing.assert_array_equal(array, theirs.observation[name], err_msg=name)
            assert array.dtype == theirs.observation[name].dtype, name
        mask = ours.observation["action_mask"]
        actions = np.array([rng.choice(np.flatnonzero(row)) for row in mask])
        one, two = ours.step(actions), theirs.step(actions)
        np.testing.assert_allclose(one.reward, two.reward, atol=1e-6)
        np.testing.assert_array_equal(one.terminated, two.terminated)
        np.testing.assert_array_equal(one.truncated, two.truncated)
        np.testing.assert_array_equal(one.task_end, two.task_end)
        assert [told(record) for record in one.episodes] == [told(r) for r in two.episodes]
        ended += len(one.episodes)
    assert ended > 40
    theirs.close()
    theirs.close()


@installed
def test_layouts_and_missions_are_drawn_and_repeat_with_the_run() -> None:
    def life() -> list[np.ndarray]:
        crowd = crowd_of([family("BabyAI-GoToObj-v0", missions="tokens")], "envpool")
        seen = []
        for _ in range(150):
            crowd.step(np.full(3, 2))
            seen.append(
                np.concatenate(
                    [crowd.observation["mission"], crowd.observation["grid"].reshape(3, -1)], 1
                )
            )
        crowd.close()
        return seen

    first, second = life(), life()
    np.testing.assert_array_equal(first, second)
    missions = {tuple(row) for seen in first for row in seen[:, :10].tolist()}
    assert len(missions) > 3 and all(mission[0] > 0 for mission in missions)


@installed
def test_a_restored_life_begins_its_episodes_again_and_says_so_once() -> None:
    crowd = crowd_of([family("MiniGrid-DoorKey-5x5-v0")], "envpool")
    for _ in range(7):
        crowd.step(np.full(3, 1))
    state = crowd.state_dict()
    restored = crowd_of([family("MiniGrid-DoorKey-5x5-v0")], "envpool")
    with pytest.warns(UserWarning, match="3 of 3 running episodes could not be replayed") as found:
        restored.load_state_dict(state)
    assert len(found) == 1
    assert restored.observation["episode_start"].all()
    assert restored.running_episodes() == []
    restored.step(np.full(3, 1))


@installed
@pytest.mark.parametrize(
    ("played", "message"),
    [
        (CartPole(), "envpool plays MiniGrid and BabyAI ids alone, got 'cart-pole'"),
        (family("Sojourn-TwoGoals-v0"), "envpool has no 'Sojourn-TwoGoals-v0'; nearest is"),
        (family(kwargs={"size": 6}), "envpool takes no argument 'size' of MiniGrid-Empty-5x5-v0"),
        (family(instance="fixed"), "instance=fixed, expected instance=resampled"),
    ],
    ids=["CartPole", "id", "argument", "fixed"],
)
def test_what_it_cannot_play_is_refused_by_name(played: Family, message: str) -> None:
    with pytest.raises(ValueError, match=f"^backend: .*{message}"):
        Stream(NeverRepeating([played]), Length(1), 0, backend="envpool")


@installed
def test_workers_are_refused() -> None:
    with pytest.raises(ValueError, match="workers: expected 0 with backend=envpool, got 2"):
        Stream(NeverRepeating([family()]), Length(1), 0, backend="envpool", workers=2)


@installed
@pytest.mark.slow
@pytest.mark.parametrize("id", IDS)
def test_random_play_reaches_the_floor_that_was_measured_in_python(id: str) -> None:
    played = family(id, kwargs={"max_steps": 60})
    crowd = crowd_of([played], "envpool", num_rows=64)
    rng, returns = np.random.default_rng(0), list[float]()
    while len(returns) < 600:
        returns += [r.total_return for r in crowd.step(rng.integers(7, size=64)).episodes]
    crowd.close()
    floor = random_floor(played)
    error = np.hypot(np.std(returns), np.std(floor)) / np.sqrt(600)
    assert abs(np.mean(returns) - np.mean(floor)) < 4.5 * error


def random_floor(played: MinigridFamily) -> list[float]:
    crowd = crowd_of([played], "auto", num_rows=64)
    rng, returns = np.random.default_rng(1), list[float]()
    while len(returns) < 600:
        returns += [r.total_return for r in crowd.step(rng.integers(7, size=64)).episodes]
    return returns


def test_without_the_package_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.raises(ValueError, match=r"backend: envpool cannot be imported .* extra 'envpool'"):
        Stream(NeverRepeating([family()]), Length(1), 0, backend="envpool")


def test_a_family_that_is_covered_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    package: Any = SimpleNamespace(list_all_envs=lambda: [PLAYED])
    monkeypatch.setitem(sys.modules, "envpool", package)
    named = {"id": PLAYED, "instance": "resampled", "length": 3, "name": "mine"}
    assert task_stream([named], 0, backend="envpool").segment(0, 0).task.name == "mine"
    assert Stream(NeverRepeating([family()]), Length(1), 0, backend="envpool").backend == "envpool"
    with pytest.raises(ValueError, match=f"nearest is '{PLAYED}'"):
        Stream(NeverRepeating([family(IDS[2])]), Length(1), 0, backend="envpool")


def test_an_unknown_backend_is_refused_with_the_choices() -> None:
    with pytest.raises(ValueError, match="expected one of auto, gymnasium, envpool, got 'rust'"):
        Stream(NeverRepeating([family()]), Length(1), 0, backend="rust")  # type: ignore[arg-type]
