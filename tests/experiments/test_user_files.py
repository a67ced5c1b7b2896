"""A choice that is a file of the user's own, with a class beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sojourn.experiments.command import main
from sojourn.experiments.config import compose_config, parse
from sojourn.experiments.resume import saved_config
from sojourn.memory import MemoryCore
from sojourn.memory.recompute import recompute

BANDIT = ["stream=bandit"]
CLASS = """
from sojourn.memory import Memoryless

class Mine(Memoryless):
    def __init__(self, width: int, size: int = 2) -> None:
        super().__init__(width)
        self.size = size

class Deaf(Mine):
    def forward(self, x, state, reset=None, mask=None, commit=None):
        return x.cumsum(1), state

class Loud(Mine):
    def advance(self, x, state, *flags):
        raise RuntimeError("too loud")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A launch folder with `own/mine.yaml` and, beside it, the module `own_memory`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "own_memory", raising=False)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "own_memory.py").write_text(CLASS)
    (tmp_path / "own" / "mine.yaml").write_text("_target_: own_memory.Mine\nsize: 3\n")
    return tmp_path


def test_a_file_is_a_choice_like_any_other(folder: Path) -> None:
    config = compose_config(parse(["memory=own/mine.yaml", "memory.size=5", *BANDIT]))
    assert config.memory == {"_target_": "own_memory.Mine", "size": 5}
    assert config.choices.memory == "own/mine.yaml" and config.choices.stream == "bandit"


@pytest.mark.parametrize("path", ["a b.yaml", "a=b.yaml", "'a#b.yaml'"])
def test_its_path_may_hold_any_character(path: str, folder: Path) -> None:
    (folder / path.strip("'")).write_text("_target_: sojourn.memory.GRU\n")
    assert compose_config(parse([f"memory={path}"])).memory._target_ == "sojourn.memory.GRU"


def test_an_experiment_may_be_a_file_and_presets_reach_a_memory_that_is(folder: Path) -> None:
    (folder / "mine.yaml").write_text("seed: 7\nmemory:\n  size: 9\n")
    words = ["experiment=mine.yaml", "memory=own/mine.yaml", *BANDIT]
    config = compose_config(parse(words))
    assert config.seed == 7 and config.memory == {"_target_": "own_memory.Mine", "size": 9}
    assert config.num_steps == compose_config([]).num_steps


def test_help_shows_its_keys(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "own" / "mine.yaml").write_text("_target_: own_memory.Mine\nsize: 3  # how large\n")
    assert main(["train", "memory=own/mine.yaml", "--help"]) == 0
    out = capsys.readouterr().out
    assert "memory.size" in out and "how large" in out


def test_a_run_is_named_after_it_and_goes_on_in_another_process(folder: Path) -> None:
    tiny = ["num_lifetimes=2", "slice_steps=8", "num_steps=64", "agent.width=8", "quiet=true"]
    assert main(["train", "memory=own/mine.yaml", "seed=1", *BANDIT, *tiny]) == 0
    (run,) = (folder / "runs").glob("*/*mine__bandit__s1*")
    assert run.is_dir()
    code = "import sys; from sojourn.experiments.command import main; sys.exit(main(sys.argv[1:]))"
    words = ["train", "resume=latest", "num_steps=96"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_saved_configuration_finds_its_class_again(folder: Path) -> None:
    saved_config({"config": {"choices": {"memory": "own/mine.yaml", "experiment": None}}})
    assert str(folder / "own") in sys.path


MISTAKES = {
    "no such file": ("memory=own/none.yaml", None, "cannot be read (No such file or directory)"),
    "a folder": ("memory=own/mine", None, "no such memory; a file of your own ends in .yaml"),
    "not YAML": ("memory=x.yaml", "a: [1\nb: {", "memory=x.yaml: not valid YAML (while parsing"),
    "a list": ("memory=x.yaml", "- 1\n", "expected keys, first of all a `_target_`"),
    "nothing": ("memory=x.yaml", "", "expected keys, first of all a `_target_`"),
    "no class": ("memory=x.yaml", "size: 3\n", "expected keys, first of all a `_target_`"),
    "no module": ("memory=x.yaml", "_target_: nowhere.Mine\n", "cannot import 'nowhere.Mine'"),
    "no such key": (
        "memory=x.yaml",
        "_target_: own_memory.Mine\nsise: 3\n",
        "memory.sise: no such key; did you mean size?",
    ),
    "wrong type": (
        "memory=x.yaml",
        "_target_: own_memory.Mine\nsize: three\n",
        "memory.size: expected a whole number, got 'three'",
    ),
    "no memory": (
        "memory=x.yaml",
        "_target_: torch.nn.Identity\n",
        "expected a sojourn.memory.MemoryCore, got Identity",
    ),
}


@pytest.mark.parametrize("verb", ["train", "check-core"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_line(
    mistake: str, verb: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    word, text, expected = MISTAKES[mistake]
    if text is not None:
        (folder / "own" / "x.yaml").write_text(text)
        word = word.replace("x.yaml", "own/x.yaml")
        expected = expected.replace("x.yaml", "own/x.yaml")
    assert main([verb, word, *BANDIT]) == 2
    shown = capsys.readouterr()
    assert expected in shown.err and shown.err.count("\n") == 1 and not shown.out
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("Deaf", "BROKEN  a reset equals a new call"),
        ("Loud", "BROKEN  rows never touch each other: RuntimeError: too loud"),
    ],
)
def test_a_broken_memory_is_told_law_by_law(
    kind: str, expected: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "own" / "bad.yaml").write_text(f"_target_: own_memory.{kind}\n")
    assert main(["check-core", "memory=own/bad.yaml", "agent.width=8"]) == 1
    shown = capsys.readouterr()
    assert expected in shown.out and "laws are broken" in shown.err


@pytest.mark.parametrize("name", ["gated_delta_net", "none"])
def test_a_shipped_memory_keeps_every_law(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-core", f"memory={name}", "agent.width=8"]) == 0
    assert "BROKEN" not in capsys.readouterr().out


def test_a_memory_is_checked_as_it_is_recomputed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes: list[int] = []

    def watched(core: MemoryCore, every: int, *given: Any) -> Any:
        sizes.append(every)
        return recompute(core, every, *given)

    monkeypatch.setattr("sojourn.memory.core.recompute", watched)
    words = ["check-core", "memory=gated_delta_net", "agent.width=8"]
    assert main([*words, "agent.recompute_every=7"]) == 0, capsys.readouterr()
    assert set(sizes) == {7}
    assert main([*words, "agent.recompute_every=-1"]) == 2


def test_the_memory_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-core"]) == 2
    assert "which memory?" in capsys.readouterr().err
