"""The commands of the documentation: their words are known and they run; so does its Python."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

from sojourn.experiments import report
from sojourn.experiments.command import VERBS, main
from sojourn.experiments.config import compose_config, parse
from sojourn.experiments.studies.plan import plan

DOCS = Path(__file__).resolve().parent.parent / "docs"
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```|((?:^    .*\n)+)", re.DOTALL | re.MULTILINE)
SHARED = re.compile(r"^ *torchrun .*--no-python (sojourn .*)$", re.MULTILINE)
NO_COMMANDS = ("python", "yaml", "toml")  # languages of blocks
ELSEWHERE = {  # pages whose own tests run them, with the files that they print
    "new_core.md": "test_docs.py",
    "environments.md": "test_environments_page.py",
    "study.md": "test_study_tutorial.py",
}
EXTRAS = {"output=life.mp4": "imageio_ffmpeg"}  # word -> the package without which it is refused
ROOMS = ["stream=dark_room_recurring", "stream.schedule.families.0.horizon=4"]
TINY = ["num_lifetimes=4", "slice_steps=16", "num_steps=128", "agent.width=8", "quiet=true"]
SHORT = ["evaluation.num_lifetimes=2", "evaluation.steps=20"]
LONGER = {"train": ["num_steps=1024"], "live": ["num_steps=512"]}  # verb -> how far it goes on
FITTED = {  # word -> what makes it fit 4 lifetimes, or minutes
    "trainer=evolution": ["trainer.num_pairs=2"],
    "memory=all": ["memory=none,linear_attention"],
}
SMALLER = {  # verb -> what makes a command small enough for a test
    "train": [*TINY, *SHORT],
    "study": ["estimate=true"],
    "probe": ["steps=2", "batch=4", "seed=0"],
    "record": ["steps=4"],
    "evaluate": ["num_lifetimes=2", "segments=2", "steps=40", "probe_lifetimes=2"],
    "live": ["num_steps=256", "num_lifetimes=2", "quiet=true"],
}


def commands(page: Path) -> list[str]:
    """The lines of a page's blocks of code that call the command."""
    found = BLOCK.findall(page.read_text())
    blocks = [
        fenced or indented for said, fenced, indented in found if not said.startswith(NO_COMMANDS)
    ]
    lines = (line.strip() for block in blocks for line in block.splitlines())
    return [line for line in lines if line.startswith("sojourn ")]


PAGES = {page.name: found for page in sorted(DOCS.glob("**/*.md")) if (found := commands(page))}
PYTHON = {
    page.name: found
    for page in sorted(DOCS.glob("*.md"))  # tutorials have a test of their own
    if (found := re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE))
    and page.name not in ELSEWHERE
}
RUN = [name for name in PAGES if name not in ELSEWHERE]
EVERY = [line for found in PAGES.values() for line in found]
# What test_together.py runs in two processes.
TOGETHER = SHARED.findall((DOCS / "scaling.md").read_text())


def words_of(line: str) -> list[str]:
    return shlex.split(line, comments=True)[1:]


def test_pages_that_others_run_are_there() -> None:
    assert TOGETHER
    for name, file in ELSEWHERE.items():
        assert name in PAGES and name in (DOCS.parent / "tests" / file).read_text()


@pytest.mark.parametrize(
    "page", sorted([*DOCS.glob("**/*.md"), DOCS.parent / "README.md"]), ids=lambda page: page.name
)
def test_verbs_inside_sentences_are_known(page: Path) -> None:
    assert set(re.findall(r"`sojourn ([^\s`]+)", page.read_text())) <= {*VERBS}


@pytest.mark.parametrize("line", sorted({*EVERY, *TOGETHER}))
def test_verbs_and_keys_are_known(line: str) -> None:
    verb, *words = words_of(line)
    assert verb in VERBS
    local = any(".yaml" in word or "my_envs" in word for word in words)
    if verb == "train" and not local and not any(word.startswith("resume=") for word in words):
        compose_config(parse(words))
    if verb == "study" and not local and not any(word.startswith("resume=") for word in words):
        assert plan(words).members


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs that the pages speak of; the last one is the latest."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(report, "draw_regret", lambda _: None)
        for name in ("gru", "delta_net", "titans"):
            for place in ("bandit", "studies/bandit/runs"):
                words = [f"memory={name}", f"folder=runs/{place}/{name}", *TINY]
                assert main(["train", "stream=bandit", *words]) == 0
        for seed in (1, 2):
            assert main(["train", *ROOMS, *TINY, f"seed={seed}", "checkpoint_every=64"]) == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN)
def test_commands_run_as_printed(
    page: str, trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(trained)
    monkeypatch.setattr(report, "draw_regret", lambda _: None)
    run = str((trained / "runs" / "latest").resolve())
    for line in PAGES[page]:
        missing = [word for word, package in EXTRAS.items() if find_spec(package) is None]
        if any(word in line for word in missing):
            continue
        verb, *words = (word.replace("RUN", run) for word in words_of(line))
        words = [_life(word, Path(run)) for word in words]
        resumed = any(word.startswith("resume=") for word in words)
        if "--help" not in words:
            words += [more for word in words for more in FITTED.get(word, [])]
            words += (LONGER if resumed else SMALLER).get(verb, [])
        assert main([verb, *words]) == 0, (line, words, capsys.readouterr())


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(PYTHON))
def test_python_runs_as_printed(page: str, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trained)
    for number, code in enumerate(PYTHON[page]):
        exec(compile(code, f"{page}, block {number}", "exec"), {"__name__": "page"})


def _life(word: str, run: Path) -> str:
    """The life that was lived here in place of the one that a page names."""
    if not word.startswith(f"resume={run}/lives/"):
        return word
    return f"resume={sorted((run / 'lives').iterdir())[-1]}"
