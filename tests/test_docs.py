"""The tutorials are true: their files are written as printed and their commands run."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from sojourn.experiments import report
from sojourn.experiments.command import main

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "new_core.md").read_text()
SECTIONS = {part.splitlines()[0]: part for part in PAGE.split("\n## ")[1:]}
FILE = re.compile(r"`([\w.]+)`:\n\n```\w+\n(.*?)```", re.DOTALL)
COMMANDS = re.compile(r"```console\n(.*?)```", re.DOTALL)
TINY = ["num_steps=512", "num_lifetimes=2", "slice_steps=64", "agent.width=16", "quiet=true"]


@pytest.mark.parametrize("section", SECTIONS)
def test_tutorials_run_as_printed(
    section: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert SECTIONS[section].count("\n") < 60
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(report, "draw_regret", lambda _: None)
    for name, text in FILE.findall(SECTIONS[section]):
        (tmp_path / name).write_text(text)
    lines = [line for block in COMMANDS.findall(SECTIONS[section]) for line in block.splitlines()]
    assert len(lines) >= 2
    for line in lines:
        program, verb, *words = shlex.split(line)
        assert program == "sojourn"
        small = TINY if verb == "train" else ["agent.width=16"]
        assert main([verb, *words, *small]) == 0, (line, capsys.readouterr())
