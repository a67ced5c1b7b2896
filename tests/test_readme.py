"""The README is true: its Python runs, its commands run, its tables are whole."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from sojourn.experiments import report
from sojourn.experiments.catalog import key_comments, text_of
from sojourn.experiments.command import main

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
TINY = ["num_steps=4096", "num_lifetimes=4", "slice_steps=64", "agent.width=16"]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small trained run, as the examples find it."""
    folder = tmp_path_factory.mktemp("workplace")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(report, "draw_regret", lambda _: None)
        assert main(["train", "experiment=quickstart", *TINY, "quiet=true"]) == 0
    return folder


@pytest.mark.parametrize("code", blocks("python"))
def test_python_runs_as_printed(
    code: str, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workplace)
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})


def test_commands_run_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(report, "draw_regret", lambda _: None)
    lines = [line for block in blocks("console") for line in block.splitlines()]
    assert any("compare" in line for line in lines)
    for line in lines:
        program, verb, *words = shlex.split(line)
        assert program == "sojourn"
        if verb == "train":
            resumed = any(word.startswith("resume=") for word in words)
            words += ["num_steps=6144"] if resumed else TINY
        if verb == "study":
            words += [*TINY, "seed=0", "evaluation.num_lifetimes=0"]
        if verb == "probe":
            words += ["steps=2", "batch=4"]
        if verb == "record":
            words += ["steps=5"]
        if verb == "evaluate":
            words += ["num_lifetimes=4", "segments=2", "probe_lifetimes=2"]
        if verb == "compare":
            words = [str(path) for pattern in words for path in sorted(tmp_path.glob(pattern))]
        assert main([verb, *words]) == 0, (line, capsys.readouterr().err)


def test_every_core_is_in_the_table() -> None:
    for path in (ROOT / "configs" / "memory").glob("*.yaml"):
        assert f"`{path.stem}`" in README, path.stem


@pytest.mark.parametrize("target", ["run", "test", "slow"])
def test_make_targets_exist(target: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_the_recipe_of_make_run_leaves_its_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["make", "--dry-run", "--no-print-directory", "--assume-old=.venv/.installed", "run"]
    recipe = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (program, verb, *words), copy = (shlex.split(line) for line in recipe.splitlines())
    assert (program, verb, copy[0]) == (".venv/bin/sojourn", "train", "cp")
    monkeypatch.chdir(tmp_path)
    assert main([verb, *words, *TINY, "quiet=true"]) == 0
    subprocess.run(copy, check=True)
    assert Path("regret.png").read_bytes().startswith(b"\x89PNG")


FILES = [(None, "train"), ("agent", "default"), ("trainer", "ppo")]


@pytest.mark.parametrize(("group", "name"), FILES)
def test_every_key_is_documented_with_its_default(group: str | None, name: str) -> None:
    page = (ROOT / "docs" / "configuration.md").read_text().splitlines()
    prefix = f"{group}." if group else ""
    config = OmegaConf.create(text_of(group, name))
    commented = [key for key, comment in key_comments(text_of(group, name)).items() if comment]
    assert len(commented) >= 3
    for key in commented:
        rows = [line for line in page if line.startswith(f"| `{prefix}{key}` |")]
        assert len(rows) == 1, f"{prefix}{key} has {len(rows)} rows"
        default = OmegaConf.to_container(config).get(key)
        if isinstance(default, int | float) and not isinstance(default, bool):
            assert f"`{default}`" in rows[0]
