"""A run feeds its curriculum; a resumed run draws what the unbroken one drew; none is paired."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sojourn.experiments import checkpoint
from sojourn.experiments.command import main
from sojourn.experiments.comparisons.groups import group_runs
from sojourn.experiments.results import RunResult


def test_a_resumed_run_draws_the_same_tasks_and_is_not_paired(
    workplace: Path,
    small_streams: dict[str, list[str]],
    assert_same_run: Callable[[Path, Path], None],
) -> None:
    words = [word for word in small_streams["minigrid"] if not word.startswith("stream=")]
    words += ["stream=t_maze_curriculum", "stream.schedule.window=2", "keep_checkpoints=9"]
    words += ["num_steps=576", "checkpoint_every=96", "stream.length.amount=1"]
    for family in (1, 2, 3):
        words += [
            f"stream.schedule.families.{family}.{size}" for size in ("corridor=4", "horizon=9")
        ]
    assert main(["train", *words, "quiet=true", "folder=whole"]) == 0
    shutil.copytree("whole", "resumed")
    early = sorted(Path("resumed/checkpoints").glob("step_*"), key=checkpoint.step_of)[2]
    assert main(["train", f"resume={early}", "quiet=true"]) == 0
    assert_same_run(Path("whole"), Path("resumed"))

    logs = [
        checkpoint.load_newest(Path(run, "checkpoints"))[1]["schedule"]
        for run in ("whole", "resumed")
    ]
    np.testing.assert_array_equal(logs[0]["choices"], logs[1]["choices"])
    assert any(len(lived) == 2 for lived in logs[0]["lived"]), "the run told what it measured"
    assert group_runs([RunResult.read(Path("whole"))])[0].follows_agent
