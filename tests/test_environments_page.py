"""docs/environments.md is true: its file, its commands and its Python run as printed."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from sojourn.experiments import report
from sojourn.experiments.command import main

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "environments.md").read_text()
TINY = ["num_steps=512", "num_lifetimes=2", "slice_steps=64", "agent.width=8", "quiet=true"]
SMALLER = {
    "train": TINY,
    "reference": [*TINY[:-1], "runs=1", "episodes=20", "selection_episodes=20"],
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_five_minutes_run_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(report, "draw_regret", lambda _: None)
    monkeypatch.setattr(sys, "path", list(sys.path))
    sys.modules.pop("my_envs", None)
    (code,) = blocks("python file=my_envs.py")
    (tmp_path / "my_envs.py").write_text(code)
    lines = [line for block in blocks("console") for line in block.splitlines()]
    verbs = [line.split()[1] for line in lines]
    assert verbs == ["check-env", "train", "reference", "train"]
    for line in lines:
        words = shlex.split(line)[1:]
        assert main(words + SMALLER.get(words[0], [])) == 0, capsys.readouterr()
    assert "exact in the middle of an episode" in capsys.readouterr().out
    episodes = "".join(path.read_text() for path in tmp_path.glob("runs/*/*/episodes.csv"))
    assert "my_envs:Thermostat" in episodes and "CartPole-v1" in episodes


def test_the_command_of_envpool_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("envpool", reason="the extra envpool is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(report, "draw_regret", lambda _: None)
    (line,) = re.findall(r"^    sojourn (.*stream\.backend=envpool)$", PAGE, re.MULTILINE)
    assert main([*shlex.split(line), *TINY]) == 0, capsys.readouterr()
    config = (tmp_path / "runs" / "latest" / "config.yaml").read_text()
    assert "backend: envpool" in config and "MiniGrid-DoorKey-5x5-v0" in config


@pytest.mark.parametrize("code", blocks("python"))
def test_python_runs_as_printed(code: str) -> None:
    exec(compile(code, "environments.md", "exec"), {"__name__": "page"})
