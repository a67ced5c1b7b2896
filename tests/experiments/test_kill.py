"""A run that is killed outright and resumed is the unbroken run, bit for bit."""

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from sojourn.experiments.command import main
from sojourn.experiments.tables import read_table


def start(words: list[str]) -> subprocess.Popen[bytes]:
    code = "import sys; from sojourn.experiments.command import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", code, "train", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def wait_for_updates(run: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 300
    while len(read_table(run / "metrics.csv").get("step", ())) < count:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("stream", ["bandit", "minigrid"])
def test_a_killed_run_goes_on_bit_for_bit(
    stream: str,
    workplace: Path,
    small_streams: dict[str, list[str]],
    assert_same_run: Callable[[Path, Path], None],
) -> None:
    words = small_streams[stream]
    process = start([*words, "folder=killed"])
    wait_for_updates(Path("killed"), random.randint(4, 20), process)
    assert not psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    seen = len(read_table(Path("killed/metrics.csv"))["step"])
    assert main(["train", "resume=killed", "quiet=true"]) == 0
    assert main(["train", *words, "folder=whole", "quiet=true"]) == 0
    assert seen < len(read_table(Path("whole/metrics.csv"))["step"]), "it was killed too late"
    assert_same_run(Path("whole"), Path("killed"))
