"""A place to run in, runs small enough for a second, and what must be equal between two of them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sojourn.agents import Rollout
from sojourn.experiments import checkpoint, report
from sojourn.experiments.command import main
from sojourn.experiments.tables import read_table

AGENT = [
    "agent.width=8",
    "memory.num_heads=1",
    "memory.key_width=4",
    "memory.value_width=4",
    "trainer.num_epochs=1",
]
TINY = [
    "stream=bandit",
    "stream.schedule.families.0.num_pulls=10",
    "num_lifetimes=4",
    "slice_steps=8",
    "num_steps=320",
    "checkpoint_every=96",
    "log_every=2",
    *AGENT,
]

LIFE = ["slice_steps=8", "guard.slices=2", "checkpoint_every=64", "table_rows=8", "quiet=true"]

Train = Callable[..., Path]
Live = Callable[..., Path]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory to launch from."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def train(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Train:
    """Runs `sojourn train` on the tiny bandit into a named folder, quietly and without a figure."""
    monkeypatch.setattr(report, "draw_regret", lambda _: None)

    def run(folder: str, *words: str, code: int = 0) -> Path:
        assert main(["train", *TINY, f"folder={folder}", "quiet=true", *words]) == code
        return workplace / folder

    return run


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of finished runs: two memories, two seeds of the first, one of the second."""
    return tmp_path_factory.mktemp("finished")


@pytest.fixture
def runs(finished: Path, train: Train, workplace: Path) -> Path:
    """The finished runs under `runs/`, trained once."""
    if not list(finished.iterdir()):
        for name, *words in (
            ("delta-1", "seed=1"),
            ("delta-2", "seed=2"),
            ("never", "seed=1", "memory_reset=never"),
        ):
            shutil.copytree(train(name, *words), finished / name)
    shutil.copytree(finished, workplace / "runs", dirs_exist_ok=True)
    return workplace / "runs"


@pytest.fixture
def refuse(workplace: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command that must fail, and returns its one line of error."""

    def run(*words: str, code: int = 2) -> str:
        capsys.readouterr()
        assert main(list(words)) == code
        captured = capsys.readouterr()
        lines = captured.err.splitlines()
        assert len(lines) == 1, captured.err
        assert "Traceback" not in captured.err
        return lines[0]

    return run


@pytest.fixture
def small_streams() -> dict[str, list[str]]:
    """Words of a few hundred quick updates on a vectorised stream and on a Gymnasium one."""
    minigrid = ["stream=hidden_rules", "num_lifetimes=3", "slice_steps=16", "num_steps=2400"]
    return {
        "bandit": [*TINY, "num_steps=1600"],
        "minigrid": [*minigrid, "checkpoint_every=400", *AGENT],
    }


@pytest.fixture
def assert_same_run() -> Callable[[Path, Path], None]:
    """Weights, optimiser, memory, generators, metrics and episodes, bit for bit; clocks aside."""
    return same_run


def same_run(one: Path, other: Path) -> None:
    """Weights, optimiser, memory, generators, metrics and episodes, bit for bit; clocks aside."""
    same_tables(one, other)
    first, second = (checkpoint.load_newest(run / "checkpoints")[1] for run in (one, other))
    assert first["step"] == second["step"]
    for name in ("agent", "trainer", "rollout", "tracker", "generators", "rows"):
        same(first[name], second[name], name)


def same_tables(one: Path, other: Path) -> None:
    """metrics.csv without its clock columns, episodes.csv byte for byte."""
    assert (one / "episodes.csv").read_bytes() == (other / "episodes.csv").read_bytes()
    first, second = (read_table(run / "metrics.csv") for run in (one, other))
    assert list(first) == list(second)
    for name in first:
        if not name.startswith("time/"):
            np.testing.assert_array_equal(first[name], second[name], err_msg=name)


def same(one: object, other: object, path: str) -> None:
    """Nested containers of tensors and plain values, exactly equal."""
    assert type(one) is type(other), path
    if isinstance(one, dict):
        assert isinstance(other, dict)
        assert one.keys() == other.keys(), path
        for key in one:
            same(one[key], other[key], f"{path}.{key}")
    elif isinstance(one, list):
        assert isinstance(other, list)
        assert len(one) == len(other), path
        for index, (a, b) in enumerate(zip(one, other, strict=True)):
            same(a, b, f"{path}[{index}]")
    elif isinstance(one, torch.Tensor):
        assert isinstance(other, torch.Tensor)
        assert torch.equal(one, other), path
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other, err_msg=path)
    else:
        assert one == other or (one != one and other != other), path


def status(run: Path) -> str:
    """What the folder of a run says of it."""
    return str(json.loads((run / "status.json").read_text())["status"])


def interrupt_at(monkeypatch: pytest.MonkeyPatch, count: int, number: int) -> None:
    """Send this process a signal during its `count`-th rollout."""
    collect, calls = Rollout.collect, iter(range(1, 10**9))

    def collect_and_signal(self: Rollout, *arguments: Any) -> object:
        if next(calls) == count:
            os.kill(os.getpid(), number)
        return collect(self, *arguments)

    monkeypatch.setattr(Rollout, "collect", collect_and_signal)


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny trained run."""
    folder = tmp_path_factory.mktemp("run") / "base"
    small = [word for word in TINY if not word.startswith("num_steps")]
    words = [*small, "num_steps=64", f"folder={folder}", "quiet=true"]
    assert main(["train", *words]) == 0
    return folder


@pytest.fixture
def live(tiny_run: Path, workplace: Path) -> Live:
    """Lives of the tiny run, by folder name and words."""

    def begin(name: str, *words: str, code: int = 0) -> Path:
        assert main(["live", str(tiny_run), f"folder={name}", *LIFE, *words]) == code
        return workplace / name

    return begin


def content(life: Path) -> dict[str, object]:
    """What the newest checkpoint of a life or a run holds."""
    return checkpoint.load_newest(life / "checkpoints")[1]


def assert_same_life(one: Path, other: Path) -> None:
    """Everything but the settings a life may change, bit for bit, and the tables byte for byte."""
    first, second = content(one), content(other)
    for name in first:
        if name != "live":
            same(first[name], second[name], name)
    for name in ("windows.csv", "episodes.csv", "life.json"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def start_life(tiny_run: Path, *words: str) -> subprocess.Popen[bytes]:
    """A life in a process of its own."""
    code = "import sys; from sojourn.experiments.command import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", code, "live", str(tiny_run), *LIFE, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
