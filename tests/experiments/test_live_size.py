"""`sojourn live` holds no more the longer it lives, in memory and on disk."""

import os
import time
from pathlib import Path

import psutil
import pytest

from sojourn.experiments import checkpoint
from sojourn.experiments.command import main

from .conftest import Live, assert_same_life, start_life


def rss_of_life(tiny_run: Path, num_steps: int, *words: str) -> tuple[list[float], Path]:
    """MB of a process that lives, at every checkpoint; the folder of the life."""
    process = start_life(tiny_run, "folder=flat", f"num_steps={num_steps}", *words)
    measured: list[float] = []
    seen = -1
    while process.poll() is None:
        found = sorted(Path("flat/checkpoints").glob("step_*.pt"))
        newest = checkpoint.step_of(found[-1]) if found else -1
        if newest > seen:
            seen = newest
            try:
                measured.append(psutil.Process(process.pid).memory_info().rss / 2**20)
            except psutil.NoSuchProcess:
                break
        time.sleep(0.02)
    process.communicate()
    assert process.returncode == 0
    return measured, Path("flat")


def test_memory_stays_flat_for_a_while(tiny_run: Path, workplace: Path) -> None:
    words = ["num_lifetimes=16", "checkpoint_every=1024", "guard.by=recent"]
    measured, _ = rss_of_life(tiny_run, 10_240, *words)
    half = len(measured) // 2
    assert half >= 3
    assert max(measured[half:]) - min(measured[half:]) < 10.0, measured


@pytest.mark.slow
def test_memory_stays_flat_for_200_000_steps_and_the_life_is_resumed(
    tiny_run: Path, workplace: Path, live: Live
) -> None:
    words = ["num_lifetimes=16", "checkpoint_every=4096", "guard.by=replay", "table_rows=64"]
    measured, whole = rss_of_life(tiny_run, 200_000, *words)
    quarter = len(measured) // 4
    assert quarter >= 4
    assert max(measured[quarter:]) - min(measured[quarter:]) < 8.0, measured
    size = sum(path.stat().st_size for path in whole.rglob("*") if path.is_file())
    assert size < 4 * 2**20
    parts = live("parts", *words, "num_steps=100_000")
    assert main(["live", f"resume={parts}", "num_steps=200_000", "quiet=true"]) == 0
    assert_same_life(whole, parts)
    assert os.path.getsize(whole / "windows.csv") < 2**16
