"""The environments that MiniGrid lacks: where they begin, what they pay, what the planner says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from minigrid.core.constants import OBJECT_TO_IDX

from sojourn.envs import MinigridFamily
from sojourn.envs.minigrid import plan
from sojourn.envs.minigrid.recipe import make_bare

CUES = {OBJECT_TO_IDX["key"], OBJECT_TO_IDX["ball"]}
LEFT, RIGHT, FORWARD = range(3)


@pytest.mark.parametrize("size", [7, 11, 13, 25])
def test_memory_begins_beside_its_cue(size: int) -> None:
    env: Any = make_bare("Sojourn-Memory-v0", {"size": size})
    shown_cues, ways = set(), set()
    for seed in range(20):
        shown, _ = env.reset(seed=seed)
        cue = env.unwrapped.grid.get(1, size // 2 - 1)
        seen = CUES & set(shown["image"][:, :, 0].ravel().tolist())
        assert OBJECT_TO_IDX[cue.type] in seen
        if size > 7:
            assert len(seen) == 1  # the choice is not in view yet
        found = plan(env)
        assert found is not None and found.actions is not None and found.is_exact
        assert len(found.actions) == size - 1  # through the hallway, turn, choose
        shown_cues.add(cue.type)
        ways.add(found.actions[-2])
        *_, last = (env.step(action) for action in found.actions)
        assert last[2] and last[1] == pytest.approx(1 - 0.9 * (size - 1) / env.unwrapped.max_steps)
    assert shown_cues == {"key", "ball"} and ways == {LEFT, RIGHT}


def test_two_ways_from_one_cue_earn_half() -> None:
    """Cue and places are drawn apart: whoever does not look is right half of the time."""
    env: Any = make_bare("Sojourn-Memory-v0", {"size": 11})
    right = []
    for seed in range(400):
        env.reset(seed=seed)
        *_, last = (env.step(action) for action in [FORWARD] * 8 + [LEFT, FORWARD])
        assert last[2]
        right.append(last[1] > 0)
    assert abs(np.mean(right) - 0.5) < 4.5 * 0.5 / 20


def test_unlock_with_rooms_of_the_usual_size_is_unlock(
    same_observation: Callable[[Any, Any], None],
) -> None:
    ours: Any = make_bare("Sojourn-Unlock-v0", {"room_size": 6})
    theirs: Any = make_bare("MiniGrid-Unlock-v0", {})
    for seed in range(5):
        same_observation(ours.reset(seed=seed)[0], theirs.reset(seed=seed)[0])
        found = plan(ours)
        assert found is not None and found == plan(theirs) and found.actions is not None
        for action in found.actions:
            one, other = ours.step(action), theirs.step(action)
            same_observation(one[0], other[0])
            assert one[1:4] == other[1:4]


@pytest.mark.parametrize("pays", ["red", "blue"])
def test_only_one_of_two_goals_pays(pays: str) -> None:
    other = {"red": "blue", "blue": "red"}[pays]
    env: Any = make_bare("Sojourn-TwoGoals-v0", {"pays": pays})
    twin: Any = make_bare("Sojourn-TwoGoals-v0", {"pays": other})
    for seed in range(20):
        shown, twin_shown = env.reset(seed=seed)[0], twin.reset(seed=seed)[0]
        np.testing.assert_array_equal(shown["image"], twin_shown["image"])
        assert shown["mission"] == twin_shown["mission"]
        found, wrong = plan(env), plan(twin)
        assert found is not None and found.actions is not None and found.is_exact
        assert wrong is not None and wrong.actions is not None
        *_, last = (env.step(action) for action in found.actions)
        assert last[2] and last[1] == pytest.approx(1 - 0.9 * len(found.actions) / 100)
        env.reset(seed=seed)
        *_, last = (env.step(action) for action in wrong.actions)
        assert last[1:3] == (0, True)


def test_two_goals_are_worth_the_same() -> None:
    options: Any = {"num_actions": 3, "name": "two-goals"}
    kwargs = {"max_steps": 40}
    tasks = [
        MinigridFamily("Sojourn-TwoGoals-v0", kwargs | {"pays": pays}, **options).draw(
            np.random.default_rng(0)
        )
        for pays in ("red", "blue")
    ]
    red, blue = (task.reference for task in tasks)
    assert red is not None and blue is not None
    assert abs(red.ceiling - blue.ceiling) < 4.5 * np.hypot(red.ceiling_error, blue.ceiling_error)
    assert abs(red.floor - blue.floor) < 4.5 * np.hypot(red.floor_error, blue.floor_error)


@pytest.mark.parametrize(
    ("id", "kwargs", "message"),
    [
        ("Sojourn-Memory-v0", {"size": 12}, "size: expected an odd number >= 7, got 12"),
        ("Sojourn-Unlock-v0", {"room_size": 3}, "room_size: expected at least 4, got 3"),
        ("Sojourn-TwoGoals-v0", {"pays": "green"}, "pays: expected one of red, blue, got 'green'"),
    ],
)
def test_invalid_arguments_are_named(id: str, kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_bare(id, kwargs)
