"""`sojourn study resume=latest|FOLDER`: the words are remembered, how it is run may change."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from sojourn.experiments.studies.plan import plan
from sojourn.experiments.studies.resumption import keep_words, resumed_words

WORDS = ["experiment=bandit", "memory=gru,lstm", "seed=0..2", "output=place"]


@pytest.fixture
def begun(workplace: Path) -> Path:
    folder = workplace / "place"
    folder.mkdir()
    keep_words(folder, [*WORDS, "jobs=3", "part=1/2", "launcher.cluster=local"])
    return folder


@pytest.mark.parametrize("where", ["latest", "place"])
def test_the_words_of_a_study_are_remembered(where: str, begun: Path) -> None:
    assert resumed_words([f"resume={where}"]) == WORDS
    assert resumed_words([f"resume={where}", "jobs=2", "launcher=ray"]) == [
        *WORDS,
        "jobs=2",
        "launcher=ray",
    ]
    assert resumed_words(WORDS) == WORDS


def test_a_moved_study_goes_on_where_it_lies(begun: Path) -> None:
    begun.rename("elsewhere")
    assert resumed_words(["resume=elsewhere"])[-1] == "output=elsewhere"


def test_what_cannot_go_on_is_refused(begun: Path, refuse: Callable[..., str]) -> None:
    assert "newest checkpoints" in refuse("study", "resume=best")
    assert "not the folder of a study" in refuse("study", "resume=nowhere")
    line = refuse("study", "resume=latest", "seed=7")
    assert line.startswith("sojourn: seed=7: a study that goes on changes jobs, launcher")
    Path("runs/studies/latest").unlink()
    assert "no study has been started" in refuse("study", "resume=latest")


def test_commands_of_the_page_can_be_planned() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "studies.md").read_text()
    blocks = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    commands = [shlex.split(line)[2:] for block in blocks for line in block.splitlines()]
    assert len(commands) == 3
    for words in commands:
        assert plan(words).members
