"""Worker processes: the same lives bit for bit, and no silence when one dies, hangs or raises."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.classic_control import CartPoleEnv

from sojourn.envs import (
    Crowd,
    CrowdStep,
    EnvironmentFailed,
    GymnasiumFamily,
    Length,
    NeverRepeating,
    Stream,
    TMaze,
    WorkerFailed,
    Workers,
    random_actions,
    task_stream,
)

FORKED = Workers(2, "fork", timeout=20.0)
MIXED = [
    "CartPole-v1",
    {"id": "Pendulum-v1", "attributes": {"g": {"uniform": [8, 12]}}, "max_episode_steps": 9},
    "Blackjack-v1",
    "MiniGrid-Empty-Random-5x5-v0",
]


class Troubled(gymnasium.Env[Any, Any]):
    """Lives ten steps and gets into trouble at the third, or when it is made or reset."""

    def __init__(self, how: str = "none") -> None:
        self.observation_space = spaces.Box(-1, 1, (2,))
        self.action_space = spaces.Discrete(2)
        self.how = how
        self._get_into("make")

    def _get_into(self, where: str) -> None:
        trouble, _, place = self.how.partition(" in ")
        if place != where or (where == "make" and os.getpid() == PARENT):
            return
        if trouble == "raise":
            raise ValueError("boom")
        if trouble == "die":
            os._exit(3)
        if trouble == "hang":
            time.sleep(60)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._get_into("reset")
        self.count = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self.count += 1
        if self.count == 3:
            self._get_into("step")
        shown = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return shown, float(shown[0]), False, self.count == 10, {}


PARENT = os.getpid()
"""A family makes its environment once where it is declared: no trouble there."""


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


def stream_of(name: str, workers: int | Workers) -> Stream:
    if name == "arrays":
        return Stream(NeverRepeating([TMaze(3, 12)]), Length(2), 5, 3, workers=workers)
    if name == "faults":
        family = GymnasiumFamily(Troubled, {"how": "raise in step"})
        schedule = NeverRepeating([family, GymnasiumFamily("CartPole-v1")])
        return Stream(schedule, Length(2), 5, on_error="replace_task", workers=workers)
    return task_stream(MIXED, 5, length=Length(2), lifetime_segments=6, workers=workers)


def same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return all(
        x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
        for x, y in ((a[name], b[name]) for name in a.keys() | b.keys())
    )


def assert_same(one: CrowdStep, other: CrowdStep) -> None:
    assert same(one.observation, other.observation)
    assert same(one.final_observation, other.final_observation)
    arrays = ("reward", "expected_reward", "terminated", "truncated", "task_end", "lifetime_end")
    assert same({n: getattr(one, n) for n in arrays}, {n: getattr(other, n) for n in arrays})
    assert list(map(repr, one.episodes)) == list(map(repr, other.episodes))


def actions_of(crowd: Crowd, rng: np.random.Generator) -> Any:
    return random_actions(crowd.interface, crowd.observation["action_mask"], rng)


@pytest.mark.parametrize("name", ["arrays", "mixed", "faults"])
@pytest.mark.parametrize("workers", [Workers(1, "fork"), Workers(3, "fork"), Workers(99, "fork")])
def test_the_same_lives_with_any_number_of_workers(name: str, workers: Workers) -> None:
    alone, spread = Crowd(stream_of(name, 0), 5), Crowd(stream_of(name, workers), 5)
    one, other = np.random.default_rng(0), np.random.default_rng(0)
    assert same(alone.observation, spread.observation)
    num_episodes = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if name == "faults" else "error")
        for _ in range(60):
            lived = alone.step(actions_of(alone, one))
            assert_same(lived, spread.step(actions_of(spread, other)))
            num_episodes += len(lived.episodes)
    assert num_episodes > 5
    assert alone.num_faults == spread.num_faults
    assert (alone.num_faults > 0) == (name == "faults")
    spread.close()


def test_a_life_goes_on_with_another_number_of_workers() -> None:
    alone = Crowd(stream_of("mixed", 0), 4)
    rng = np.random.default_rng(1)
    for _ in range(37):
        alone.step(actions_of(alone, rng))
    saved = alone.state_dict()
    spread = Crowd(stream_of("mixed", FORKED), 4)
    spread.load_state_dict(saved)
    for number in range(40):
        action = actions_of(alone, np.random.default_rng(number))
        assert_same(alone.step(action), spread.step(action))
    back = Crowd(stream_of("mixed", 0), 4)
    back.load_state_dict(spread.state_dict())
    assert same(back.observation, spread.observation)
    spread.close()


def test_spawned_workers_know_what_is_registered_here() -> None:
    gymnasium.register("RegisteredHere-v0", CartPoleEnv, max_episode_steps=10)
    try:
        spread = Crowd(task_stream(["RegisteredHere-v0"], 0, workers=2), 3)
        alone = Crowd(task_stream(["RegisteredHere-v0"], 0), 3)
        for _ in range(12):
            assert_same(alone.step(np.zeros(3, np.int64)), spread.step(np.zeros(3, np.int64)))
        spread.close()
    finally:
        del gymnasium.registry["RegisteredHere-v0"]


class TroubleInTheLast(NeverRepeating):
    """The second family for lifetime 3, the first for the others."""

    def assign(self, seed: int, lifetime: int, index: int) -> Any:
        task = self.families[int(lifetime == 3)].draw(np.random.default_rng(0))
        return super().assign(seed, lifetime, index)._replace(task=task)


def crowd_in_trouble(how: str, timeout: float = 20.0) -> Crowd:
    families = [GymnasiumFamily("CartPole-v1"), GymnasiumFamily(Troubled, {"how": how})]
    workers = Workers(2, "fork", timeout)
    return Crowd(Stream(TroubleInTheLast(families), Length(99), 0, workers=workers), 4)


def live(crowd: Crowd, num_steps: int) -> None:
    for _ in range(num_steps):
        crowd.step(np.zeros(crowd.num_lifetimes, np.int64))


@pytest.mark.parametrize("place", ["make", "reset", "step"])
def test_an_error_in_a_worker_is_told_with_task_row_worker_and_seed(place: str) -> None:
    with pytest.raises(EnvironmentFailed, match=r"Troubled, row 3.*boom.*worker 1, seed") as told:
        crowd = crowd_in_trouble(f"raise in {place}")
        seed = crowd.segments[3].episode_seed(0)
        live(crowd, 5)
    assert "\n" not in str(told.value)
    assert 'raise ValueError("boom")' in told.value.__notes__[0], "the original traceback"
    if place == "step":
        assert f"seed {seed})" in str(told.value)
        assert "step 3 of the episode" in str(told.value)
        crowd.close()
    else:
        told.value.__traceback__ = None  # it holds the half-made crowd, whose end ends its workers
    del told


ENDS = {"die": "ended with code 3", "hang": "gave no answer for 0.5 seconds"}


@pytest.mark.parametrize("place", ["make", "reset", "step"])
@pytest.mark.parametrize("how", ENDS)
def test_a_worker_that_dies_or_hangs_is_named_and_none_is_left(how: str, place: str) -> None:
    timeout = 0.5 if how == "hang" else 20.0
    begin = time.monotonic()
    with pytest.raises(WorkerFailed, match=rf"worker 1, .*Troubled, row 3, seed.*{ENDS[how]}"):
        live(crowd_in_trouble(f"{how} in {place}", timeout=timeout), 5)
    assert time.monotonic() - begin < 10
    assert multiprocessing.active_children() == []


def test_after_the_end_nothing_can_be_played_and_closing_again_is_allowed() -> None:
    crowd = Crowd(stream_of("mixed", FORKED), 4)
    begin = time.monotonic()
    crowd.close()
    crowd.close()
    assert time.monotonic() - begin < 5
    with pytest.raises(WorkerFailed, match="ended"):
        crowd.step(actions_of(crowd, np.random.default_rng(0)))


def test_closing_does_not_wait_for_an_environment_that_does_not_close() -> None:
    class Sticky(Troubled):
        def close(self) -> None:
            if os.getpid() != PARENT:
                time.sleep(60)

    crowd = Crowd(
        Stream(NeverRepeating([GymnasiumFamily(Sticky)]), Length(1), 0, workers=FORKED), 2
    )
    begin = time.monotonic()
    crowd.close()
    assert time.monotonic() - begin < 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1,), "workers: expected at least 0, got -1"),
        ((2, "thread"), "workers.start: expected one of spawn, fork, forkserver, got 'thread'"),
        ((2, "fork", 0.0), "workers.timeout: expected seconds > 0, got 0.0"),
    ],
)
def test_invalid_arguments_are_named(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Workers(*arguments)


SCRIPT = """
import numpy as np, os, sys, time
from sojourn.envs import Crowd, Workers, task_stream
if __name__ == "__main__":
    crowd = Crowd(task_stream(["CartPole-v1"], 0, workers=Workers(2, sys.argv[1])), 4)
    print(*[worker._process.pid for worker in crowd._simulator._workers], flush=True)
    crowd.step(np.zeros(4, np.int64))
    if sys.argv[2] == "raise":
        raise RuntimeError("the training failed")
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(
    ("start", "end"),
    [("fork", "raise"), ("fork", "kill"), pytest.param("spawn", "kill", marks=pytest.mark.slow)],
)
def test_no_worker_outlives_the_run(start: str, end: str, tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    command = [sys.executable, str(file), start, end]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode != 0
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline, f"{pids} live on; {done.stderr}"
        time.sleep(0.05)
