"""Runs whose environments live in worker processes: stopped, broken and resumed, none is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from sojourn.experiments.command import main
from sojourn.experiments.tables import read_table

CODE = "import sys; from sojourn.experiments.command import main; sys.exit(main())"
FORKED = "stream.workers={_target_: sojourn.envs.Workers, count: 2, start: fork}"
ENVS = """
import os
import gymnasium
import numpy as np
from gymnasium import spaces


class Deadly(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (2,))
    action_space = spaces.Discrete(2)
    count = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        Deadly.count += 1
        if Deadly.count == 40 and os.path.exists("deadly"):
            os._exit(3)
        self.steps = 0
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), {}

    def step(self, action):
        self.steps += 1
        shown = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return shown, float(shown[0]), False, self.steps == 5, {}
"""


@pytest.fixture
def words(
    small_streams: dict[str, list[str]], workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Words of a small run on an environment of the user's own."""
    (workplace / "my_envs.py").write_text(ENVS)
    monkeypatch.delitem(sys.modules, "my_envs", raising=False)
    monkeypatch.syspath_prepend(str(workplace))
    shape = [word for word in small_streams["minigrid"] if not word.startswith("stream=")]
    size = ["num_steps=480", "checkpoint_every=96"]
    return [*shape, *size, "stream.tasks=[my_envs:Deadly]"]


@pytest.mark.parametrize(
    ("number", "code", "workers"),
    [
        (signal.SIGINT, 130, FORKED),
        pytest.param(signal.SIGTERM, 143, "stream.workers=2", marks=pytest.mark.slow),
    ],
)
def test_a_signal_to_all_processes_saves_the_run_and_ends_the_workers(
    number: int,
    code: int,
    workers: str,
    words: list[str],
    assert_same_run: Callable[[Path, Path], None],
) -> None:
    command = [sys.executable, "-c", CODE, "train", *words, workers, "folder=stopped", "quiet=true"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 90
    while len(read_table(Path("stopped/metrics.csv")).get("step", ())) < 3:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 2
    os.killpg(process.pid, number)
    assert process.wait(30) == code
    assert psutil.wait_procs(children, timeout=10)[1] == []
    assert main(["train", "resume=stopped", "stream.workers=0", "quiet=true"]) == 0
    assert main(["train", *words, "folder=whole", "quiet=true"]) == 0
    assert_same_run(Path("whole"), Path("stopped"))


def test_a_run_whose_worker_dies_is_told_in_a_line_and_can_be_resumed(
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    assert_same_run: Callable[[Path, Path], None],
) -> None:
    Path("deadly").touch()
    before = psutil.Process().children()  # such as the tracker of another test's resources
    assert main(["train", *words, FORKED, "folder=broken", "quiet=true"]) == 1
    told = capsys.readouterr().err.splitlines()[0]
    assert "WorkerFailed: worker " in told and "my_envs:Deadly, row " in told
    assert "seed " in told and "ended with code 3" in told
    assert set(psutil.Process().children()) <= set(before)
    Path("deadly").unlink()
    assert main(["train", "resume=broken", "quiet=true"]) == 0
    assert main(["train", *words, "folder=whole", "quiet=true"]) == 0
    assert_same_run(Path("whole"), Path("broken"))
