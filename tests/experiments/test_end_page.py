"""The page that a run ends with says all it is to say, of the run itself and of its evaluation."""

import json
import os
import re
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from sojourn.experiments import evaluate, report
from sojourn.experiments.catalog import text_of
from sojourn.experiments.command import main
from sojourn.experiments.evaluations.conditions import CONDITIONS
from sojourn.experiments.report import evaluation_line
from sojourn.experiments.tables import read_table

from .conftest import TINY

Refuse = Callable[..., str]
ENDS = [
    "stream.lifetime_segments=null",
    "stream.length.amount=2",
    "evaluation.num_lifetimes=2",
    "evaluation.steps=150",
]
SECTIONS = (
    "In short",
    "Regret over training",
    "Regret by episode of a task",
    "Regret by task of a life",
    "Transient and residual regret",
    "Transfer: what having lived is worth",
    "Forgetting: what is known after every task",
    "Plasticity: whether it can still learn",
    "Cost",
    "How it was measured",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run that ends with a page."""
    folder = tmp_path_factory.mktemp("end")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(report, "draw_regret", lambda _: None)
        patch.setattr(evaluate, "draw_figures", lambda *_: None)
        words = ["evaluation.conditions=[carried,reset_task,random]", "folder=run", "quiet=true"]
        assert main(["train", *TINY, *ENDS, *words]) == 0
    return folder / "run"


def test_the_page_says_all_of_it(run: Path) -> None:
    page = (run / "report.html").read_text()
    places = [page.index(f">{heading}</h2>") for heading in SECTIONS]
    assert places == sorted(places)
    for said in (
        "first 10 % of the steps",
        f"reset_task: {CONDITIONS['reset_task']}",
        "utility U of having lived",
        "forgetting at a boundary",
        "transient regret",
        "steps per second in training",
        "CPU microseconds per step",
        "What the memory knows",
    ):
        assert said in page, said
    assert "http://" not in page.replace("http://www.w3.org", ""), "it needs no network"


def test_every_number_of_the_page_has_a_card(run: Path) -> None:
    page = (run / "report.html").read_text()
    tables = re.findall(r"<table>.*?</table>", page, re.DOTALL)
    assert len(tables) >= 8
    for table in tables:
        columns = re.findall(r'<th scope="col"([^>]*)>', table)[1:]
        rows = re.findall(r'<th scope="row"([^>]*)>', table)
        told = [all('class="told"' in head for head in heads) for heads in (columns, rows)]
        assert any(told), table


def test_the_numbers_of_the_page_are_those_of_run_and_evaluation(run: Path) -> None:
    page = (run / "report.html").read_text()
    summary = json.loads((run / "summary.json").read_text())
    assert f"{summary['regret_end']['all']['normalised']:.3f}" in page
    (evaluation,) = (run / "evaluations").iterdir()
    assert {path.name for path in evaluation.glob("episodes_*.csv")} == {
        f"episodes_{name}.csv" for name in ("carried", "reset_task", "random")
    }
    rows = json.loads((evaluation / "measures.json").read_text())["measures"]
    carried = next(row for row in rows if row["measure"] == "regret, all episodes")
    assert repr(carried["mean"]) in page
    assert read_table(run / "evaluation.csv"), "the run's own evaluation is still there"


def test_a_stop_before_the_page_is_not_the_end(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt = partial(os.kill, os.getpid(), signal.SIGINT)
    monkeypatch.setattr(report, "draw_regret", lambda _: interrupt())
    monkeypatch.setattr(evaluate, "draw_figures", lambda *_: None)
    words = [*ENDS, "num_steps=64", "evaluation.conditions=[carried]", "folder=run", "quiet=true"]
    assert main(["train", *TINY, *words]) == 130
    assert not (workplace / "run" / "report.html").exists()
    monkeypatch.setattr(report, "draw_regret", lambda _: None)
    assert main(["train", "resume=run", "quiet=true"]) == 0
    assert (workplace / "run" / "report.html").exists()


def test_without_conditions_there_is_no_page(workplace: Path) -> None:
    assert main(["train", *TINY, "num_steps=32", "folder=plain", "quiet=true"]) == 0
    assert not (workplace / "plain" / "report.html").exists()
    assert not (workplace / "plain" / "evaluations").exists()


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("evaluation.conditions=[carried]", "expected evaluation.num_lifetimes >= 1 beside it"),
        ("evaluation.conditions=[frozen]", "conditions: carried is missing"),
        ("evaluation.conditions=[carried,frozn]", "did you mean frozen"),
    ],
)
def test_wrong_conditions_get_one_line_before_the_run(refuse: Refuse, word: str, line: str) -> None:
    lives = [] if "num_lifetimes" in line else ["evaluation.num_lifetimes=1"]
    assert line in refuse("train", "stream=bandit", "folder=run", word, *lives)
    assert not Path("run").exists()


def test_the_preset_asks_for_the_page() -> None:
    config = OmegaConf.create(text_of("experiment", "hidden_rule"))
    assert {"carried", "reset_task", "random"} <= set(config.evaluation.conditions)
    assert set(config.evaluation.conditions) <= set(CONDITIONS)


@pytest.mark.parametrize("informed", [None, 0.25])
def test_the_line_of_an_evaluation_names_each_of_its_numbers(informed: float | None) -> None:
    mean = {"mean": 0.75, "standard_error": None}
    every = {"normalised": 0.5, "raw": 0.125, "informed": informed}
    told = {"num_lifetimes": 4, "return": mean, "lost_return": mean, "all": every}
    line = evaluation_line(told)
    names, numbers = line.partition("; regret ")[2].split(" 0.", 1)
    assert names.count("|") == f"0.{numbers}".count("|") == (1 if informed is None else 2)
    assert ("against informed play" in names) == (informed is not None)
