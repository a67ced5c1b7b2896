"""docs/tutorials/study.md is true: its study runs, is compared, and its numbers can be read."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from sojourn.experiments.command import main
from sojourn.experiments.tables import read_table

PAGE = (Path(__file__).resolve().parent.parent / "docs/tutorials/study.md").read_text()
TINY = ["num_steps=2_560", "seed=1", "evaluation.num_lifetimes=4", "agent.width=8"]
SMALLER = {  # in order: how long, run, compare
    "estimate": [*TINY, "memory=none"],
    "study": [*TINY, "memory=linear_attention,none"],
    "compare": [],
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def follow(place: Path, monkeypatch: pytest.MonkeyPatch, smaller: dict[str, list[str]]) -> None:
    """Write the file and give the commands of the page, then run its Python."""
    monkeypatch.chdir(place)
    ((name, text),) = re.findall(r"`([\w.]+)`:\n\n```yaml\n(.*?)```", PAGE, re.DOTALL)
    (place / name).write_text(text)
    lines = [line for block in blocks("console") for line in block.splitlines()]
    assert len(lines) == len(SMALLER)
    for line, kind in zip(lines, SMALLER, strict=True):
        program, verb, *words = shlex.split(line)
        assert program == "sojourn" and kind in line
        assert main([verb, *words, *smaller.get(kind, [])]) == 0, line
        assert (kind == "estimate") != Path("runs").exists(), "an estimate leaves nothing"
    (code,) = blocks("python")
    exec(compile(code, "study.md", "exec"), {"__name__": "tutorial"})


def test_the_tutorial_runs_with_a_small_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    follow(tmp_path, monkeypatch, SMALLER)
    assert len(re.findall(r"^\w+: regret below 0.6 from step", capsys.readouterr().out, re.M)) == 2
    (picture,) = re.findall(r"\.\./images/(\w+\.png)", PAGE)
    assert (Path(__file__).resolve().parent.parent / "docs" / "images" / picture).is_file()


@pytest.mark.slow
def test_the_tutorial_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follow(tmp_path, monkeypatch, {})
    (sweep,) = yaml.safe_load(blocks("yaml")[0])["sweeps"]
    members = list(tmp_path.glob("runs/studies/counting/members/*.json"))
    assert len(members) == 9 and len(sweep) == 2
    assert all(json.loads(path.read_text())["settings"] for path in members)
    page = (tmp_path / "counting" / "report.html").read_text()
    for heading in ("Regret over life", "Differences from the reference group", "Settings that"):
        assert heading in page
    end = read_table(tmp_path / "counting" / "aggregates.csv")
    regret = dict(zip(end["group"].tolist(), end["mean: mean"].tolist(), strict=True))
    assert regret["delta_net"] < regret["none"] < 1, "it learned, and more with a memory"
    contrasts = read_table(tmp_path / "counting" / "contrasts.csv")
    assert contrasts["pairs"].tolist() == [3, 3]
