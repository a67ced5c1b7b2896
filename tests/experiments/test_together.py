"""A run of two processes is a run of one: torchrun, two gloo ranks, and what cannot be shared."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from sojourn.experiments import checkpoint
from sojourn.experiments.command import main
from sojourn.experiments.tables import read_table

from .conftest import TINY, same

WORDS = [*TINY, "trainer.num_minibatches=1", "stream.lifetime_segments=2", "quiet=true"]


def torchrun(*words: str, code: int = 0) -> str:
    """`sojourn train` in two processes, one thread each; returns what they said."""
    command = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--no-python"]
    sojourn = [sys.executable, "-m", "sojourn.experiments.command", "train", *words]
    done = subprocess.run(
        [sys.executable, *command, *sojourn],
        env=os.environ | {"OMP_NUM_THREADS": "1", "MASTER_PORT": "0"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode == 0) == (code == 0), done.stderr
    return done.stdout + done.stderr


def columns(run: Path) -> dict[str, np.ndarray]:
    table = read_table(run / "metrics.csv")
    skipped = ("time/", "losses/explained_variance")
    return {name: values for name, values in table.items() if not name.startswith(skipped)}


@pytest.mark.slow
def test_two_processes_are_one(workplace: Path) -> None:
    torchrun("folder=two", *WORDS)
    assert main(["train", "folder=one", *WORDS]) == 0
    one, two = columns(Path("one")), columns(Path("two"))
    assert one.keys() == two.keys()
    for name, values in one.items():
        np.testing.assert_allclose(two[name], values, rtol=2e-3, atol=1e-4, err_msg=name)
    lived = [{tuple(map(str, row.values())) for row in rows(Path(run))} for run in ("one", "two")]
    assert lived[0] == lived[1]
    saved = [checkpoint.load_newest(Path(run) / "checkpoints")[1] for run in ("one", "two")]
    for name, weight in saved[0]["agent"].items():
        torch.testing.assert_close(saved[1]["agent"][name], weight, rtol=1e-3, atol=1e-4)
    same(saved[0]["rollout"]["crowd"], saved[1]["rollout"]["crowd"], "crowd")


def rows(run: Path) -> list[dict[str, object]]:
    table = read_table(run / "episodes.csv")
    ended = table["status"] != "running"
    return [{name: values[i] for name, values in table.items()} for i in np.flatnonzero(ended)]


@pytest.mark.slow
def test_a_resumed_run_of_two_is_the_unbroken_one(
    workplace: Path, assert_same_run: Callable[[Path, Path], None]
) -> None:
    torchrun("folder=whole", *WORDS)
    torchrun("folder=halves", *WORDS)
    middle = Path("halves/checkpoints")
    later = sorted(middle.glob("step_*.pt"))
    torchrun(f"resume={later[0]}", "quiet=true")
    assert_same_run(Path("whole"), Path("halves"))
    assert main(["train", "resume=halves", "num_steps=384", "quiet=true"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["num_lifetimes=5"], "num_lifetimes: expected a multiple of the 2 processes, got 5"),
        (["seed=null"], "seed: expected a number under torchrun"),
        (["trainer=replay"], "trainer=replay: one process only"),
    ],
)
def test_what_cannot_be_shared_is_refused(workplace: Path, words: list[str], told: str) -> None:
    said = torchrun("folder=run", *WORDS, *words, code=2)
    assert f"sojourn: {told}" in said
    assert not Path("run").exists()


@pytest.mark.parametrize("verb", ["compare", "study", "live"])
def test_other_verbs_want_one_process(
    refuse: Callable[..., str], monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "a")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert f"{verb}: one process only" in refuse(verb)
