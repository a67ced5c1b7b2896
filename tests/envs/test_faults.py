"""Environments that break: the run stops, or the episode, or the task; counted either way."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from sojourn.envs import (
    Crowd,
    CrowdStep,
    EnvironmentFailed,
    EnvironmentFault,
    EnvironmentMisbehaved,
    GymnasiumFamily,
    Length,
    Recurring,
    Stream,
    task_stream,
)


class Fragile(gymnasium.Env[Any, Any]):
    """Lives ten steps and breaks `how` at the third, or already at its reset."""

    def __init__(self, how: str = "raise") -> None:
        self.observation_space = spaces.Box(-1, 1, (2,))
        self.action_space = spaces.Discrete(2)
        self.how, self.broken = how, False

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        if self.how == "reset":
            raise OSError("no simulator")
        self.count = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        assert not self.broken, "a broken environment is never stepped again"
        self.count += 1
        shown, reward = np.full(2, 0.5, np.float32), 1.0
        if self.count == 3:
            self.broken = True
            if self.how == "raise":
                raise ValueError("boom")
            reward = np.nan if self.how == "reward" else 1.0
            shown = {"shape": np.zeros(3), "nan": np.array([np.nan, 0])}.get(self.how, shown)
        return shown, reward, False, self.count == 10, {}

    def close(self) -> None:
        if self.broken:
            raise OSError("cannot even be closed")


def crowd_of(on_error: str, how: str = "raise", rows: int = 1) -> Crowd:
    fragile = GymnasiumFamily(Fragile, {"how": how})
    sound = GymnasiumFamily("CartPole-v1", max_episode_steps=5)
    stream = Stream(
        Recurring([fragile, sound]),
        Length(3),
        0,
        on_error=on_error,  # type: ignore[arg-type]
    )
    return Crowd(stream, rows)


def live(crowd: Crowd, num_steps: int) -> list[CrowdStep]:
    return [crowd.step(np.zeros(crowd.num_lifetimes, np.int64)) for _ in range(num_steps)]


HOWS = {"raise": EnvironmentFailed} | dict.fromkeys(
    ("reward", "shape", "nan"), EnvironmentMisbehaved
)


@pytest.mark.parametrize("how", HOWS)
def test_an_error_stops_and_names_task_row_and_step(how: str) -> None:
    with pytest.raises(HOWS[how], match="Fragile, row 0, step 3 of the episode") as found:
        live(crowd_of("raise", how), 5)
    assert isinstance(found.value, RuntimeError if how == "raise" else ValueError)


@pytest.mark.parametrize("how", HOWS)
def test_a_skipped_episode_is_a_truncated_one(how: str) -> None:
    crowd = crowd_of("skip_episode", how, rows=2)
    with pytest.warns(UserWarning, match=r"fault \d, skip_episode: Fragile, row \d, step 3"):
        steps = live(crowd, 9)
    third = steps[2]
    assert third.truncated.all() and not third.terminated.any() and not third.reward.any()
    assert third.final_observation is not None
    for array in (*third.final_observation.values(), *third.observation.values()):
        assert np.isfinite(array).all()
    records = [record for step in steps for record in step.episodes if record.lifetime == 0]
    assert [(r.status, r.episode, r.num_steps) for r in records] == [
        ("failed", episode, 3) for episode in range(3)
    ]
    assert all(np.isnan([r.optimal_return, r.floor_return]).all() for r in records)
    assert [bool(step.task_end[0]) for step in steps] == [False] * 8 + [True]
    assert crowd.num_faults == 6 and crowd.task_names == ["CartPole-v1"] * 2
    assert sum(record.num_steps for s in steps for record in s.episodes) == 2 * 9


def test_a_replaced_task_ends_its_segment() -> None:
    crowd = crowd_of("replace_task")
    with pytest.warns(UserWarning, match="fault 1, replace_task"):
        steps = live(crowd, 3)
    assert steps[-1].task_end[0] and crowd.task_names == ["CartPole-v1"]
    assert crowd.segments[0].task_index == 1 and crowd.num_faults == 1


def test_a_task_that_cannot_even_begin_is_replaced_at_once() -> None:
    with pytest.warns(UserWarning, match="no simulator"):
        crowd = crowd_of("replace_task", "reset")
    assert crowd.task_names == ["CartPole-v1"] and crowd.num_faults == 1
    assert crowd.observation["task_start"].shape == (1,)
    with pytest.warns(UserWarning, match=r"fault \d+, replace_task"):
        live(crowd, 40)  # every return to the broken task is passed over
    assert crowd.task_names == ["CartPole-v1"] and crowd.num_faults > 1


def test_nothing_but_faults_stops_any_run() -> None:
    stream = Stream(
        Recurring([GymnasiumFamily(Fragile, {"how": "reset"})]),
        Length(3),
        0,
        on_error="skip_episode",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(EnvironmentFault, match="no simulator"):
            Crowd(stream, 1)


def test_a_log_is_not_flooded() -> None:
    crowd = crowd_of("skip_episode")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        live(crowd, 60)
    assert crowd.num_faults > 8
    assert [str(w.message)[:8] for w in caught] == ["fault 1,", "fault 2,", "fault 4,", "fault 8,"]


def test_faults_are_restored_with_the_crowd() -> None:
    crowd, other = crowd_of("skip_episode"), crowd_of("skip_episode")
    with pytest.warns(UserWarning, match="fault 1"):
        live(crowd, 4)
    other.load_state_dict(crowd.state_dict())
    assert other.num_faults == crowd.num_faults == 1
    for name, array in crowd.observation.items():
        np.testing.assert_array_equal(array, other.observation[name])


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(ValueError, match="on_error: expected one of raise, skip_episode, replace"):
        task_stream(["CartPole-v1"], 0, on_error="ignore")  # type: ignore[arg-type]
