"""Worker processes: no silence when one dies, hangs or raises, and none is left behind."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sojourn.envs import (
    Crowd,
    EnvironmentFailed,
    GymnasiumFamily,
    Length,
    NeverRepeating,
    Stream,
    WorkerFailed,
    Workers,
)

from .troubled import PARENT, Troubled

pytestmark = pytest.mark.usefixtures("no_child_is_left")


class TroubleInTheLast(NeverRepeating):
    """The second family for lifetime 3, the first for the others."""

    def assign(self, seed: int, lifetime: int, index: int) -> Any:
        task = self.families[int(lifetime == 3)].draw(np.random.default_rng(0))
        return super().assign(seed, lifetime, index)._replace(task=task)


def crowd_in_trouble(how: str, timeout: float = 20.0) -> Crowd:
    families = [GymnasiumFamily("CartPole-v1"), GymnasiumFamily(Troubled, {"how": how})]
    workers = Workers(2, "fork", timeout)
    return Crowd(Stream(TroubleInTheLast(families), Length(99), 0, workers=workers), 4)


def calm_crowd(make: type[Troubled] = Troubled) -> Crowd:
    schedule = NeverRepeating([GymnasiumFamily(make)])
    return Crowd(Stream(schedule, Length(9), 0, workers=Workers(2, "fork", timeout=20.0)), 4)


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
    crowd = calm_crowd()
    begin = time.monotonic()
    crowd.close()
    crowd.close()
    assert time.monotonic() - begin < 5
    with pytest.raises(WorkerFailed, match="ended"):
        live(crowd, 1)


def test_closing_does_not_wait_for_an_environment_that_does_not_close() -> None:
    class Sticky(Troubled):
        def close(self) -> None:
            if os.getpid() != PARENT:
                time.sleep(60)

    crowd = calm_crowd(Sticky)
    begin = time.monotonic()
    crowd.close()
    assert time.monotonic() - begin < 6


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
