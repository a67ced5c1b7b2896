"""Metric cards: every number that a table prints has one, and each of them says all it must."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from sojourn.experiments import catalog, evaluate, report
from sojourn.experiments.build import build_memory
from sojourn.experiments.command import main
from sojourn.experiments.comparisons import output as comparison_output
from sojourn.experiments.drawing.panels import Grid, grid_table, panel_table
from sojourn.experiments.evaluations.figures import wide_table
from sojourn.experiments.explain import found, markdown
from sojourn.experiments.lives.tables import SHOWN
from sojourn.experiments.measures.card import COORDINATES, card_of, cards
from sojourn.experiments.probes.summary import NUMBERS
from sojourn.memory import diagnose

from .conftest import TINY

Refuse = Callable[..., str]
PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "metrics.md"
PARTS = (": mean", ": low", ": high", ": num_runs")
WATCHED = [
    "stream.lifetime_segments=null",
    "diagnostics_every=2",
    "plasticity_every=2",
    "evaluation.every=96",
    "evaluation.num_lifetimes=2",
    "evaluation.steps=25",
    "keep_checkpoints=9",
    "trainer=transfer",
    "trainer.extras.transfer.every=2",
]
ASKED = ["num_lifetimes=3", "steps=140", "probe_lifetimes=2", "checkpoints=2"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with two runs, the evaluation of one, and their comparison."""
    folder = tmp_path_factory.mktemp("tables")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(report, "draw_regret", lambda _: None)
        patch.setattr(evaluate, "draw_figures", lambda *_: None)
        patch.setattr(comparison_output, "draw_pictures", lambda *_: None)
        assert main(["train", *TINY, *WATCHED, "folder=one", "quiet=true"]) == 0
        assert main(["evaluate", "one", *ASKED]) == 0
        words = ["memory=delta_net", "folder=two", "quiet=true"]
        assert main(["train", *TINY, *WATCHED, *words]) == 0
        asked = ["reference=delta_net", "output=compared"]
        assert main(["compare", "one", "two", *asked]) == 0
        yield folder


def test_an_empty_word_is_told_from_an_unknown_name(refuse: Refuse) -> None:
    for word in ("", " "):
        assert refuse("explain", word).endswith("expected sojourn explain [METRIC ...]")
    assert "train: a word is empty" in refuse("train", "seed=1", "")


def columns_of(file: Path) -> list[str]:
    with file.open(newline="") as lines:
        return next(csv.reader(lines))


def without_card(names: list[str]) -> set[str]:
    bare = {name.removesuffix(part) for name in names for part in PARTS if name.endswith(part)}
    bare |= {name for name in names if not name.endswith(PARTS)}
    return {name for name in bare - COORDINATES if card_of(name) is None}


@pytest.mark.parametrize(
    "table",
    ["metrics", "episodes", "evaluations", "diagnostics", "evaluation"],
)
def test_every_column_of_a_run_has_a_card(tables: Path, table: str) -> None:
    assert without_card(columns_of(tables / "one" / f"{table}.csv")) == set()


@pytest.mark.parametrize("table", ["comparison", "aggregates", "contrasts", "transfer"])
def test_every_column_of_a_comparison_has_a_card(tables: Path, table: str) -> None:
    assert without_card(columns_of(tables / "compared" / f"{table}.csv")) == set()


def test_every_row_of_an_evaluation_has_a_card_of_its_code(tables: Path) -> None:
    (folder,) = (tables / "one" / "evaluations").iterdir()
    rows = json.loads((folder / "measures.json").read_text())["measures"]
    assert len({row["code"] for row in rows}) == 17, "M1 to M16 and the pairs"
    for row in rows:
        card = card_of(row["measure"])
        assert card is not None, row["measure"]
        assert card.code == row["code"], row["measure"]
        assert row["formula"] == card.formula, "stored with the value"
    assert without_card(columns_of(folder / "measures.csv")) == set()


def test_the_tables_of_probes_and_lives_have_cards() -> None:
    assert without_card([*NUMBERS, "score mean", "score low", "failed", "n"]) == set()
    lives = ["step", "loss", "twin_loss", "verdict", "worsening", "distance", *SHOWN]
    assert without_card([*lives, "number", "value of learning"]) == set()


def test_the_data_of_figures_has_cards() -> None:
    assert without_card([*panel_table([]), *grid_table([])]) == set()
    numbers = np.zeros((2, 3))
    grid = Grid("t", "x", "segments lived", ["0", "1"], ["a", "b", "c"], *[numbers] * 4)
    assert without_card(list(wide_table(grid))) == set()


@pytest.mark.parametrize("name", catalog.options("memory"))
def test_every_measure_of_every_memory_has_a_card(name: str) -> None:
    config = OmegaConf.create({"memory": OmegaConf.create(catalog.text_of("memory", name))})
    core = build_memory(config, 16)
    found = diagnose(core, torch.randn(1, 8, 16), core.init_state(1))
    assert all(found.values())
    assert without_card([measure for measures in found.values() for measure in measures]) == set()


@pytest.mark.parametrize("name", cards())
def test_a_card_says_all_it_must(name: str) -> None:
    card = cards()[name]
    for heading, text in card.lines:
        assert text.strip(), heading
    assert card.matches(name)
    assert card_of(name) == card


def test_the_most_literal_card_is_found() -> None:
    assert card_of("regret, 3rd episode").name == "regret, <Nth> episode"  # type: ignore[union-attr]
    other = card_of("regret against informed play, 3rd episode")
    assert other is not None and other.name == "regret against informed play, <Nth> episode"
    assert card_of("transient regret").name == "transient regret"  # type: ignore[union-attr]
    assert card_of("losses/grad_norm").name == "losses/grad_norm"  # type: ignore[union-attr]
    assert card_of("weights_norm").name == "<leaf>_norm"  # type: ignore[union-attr]
    assert card_of("nonsense") is None


def test_the_command_shows_cards_and_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "utility", "U", "of", "having", "lived"]) == 0
    shown = capsys.readouterr().out
    for heading in ("formula", "unit", "comparator", "blind spots", "source", "M5"):
        assert heading in shown
    assert main(["explain", "m7"]) == 0
    assert capsys.readouterr().out.count("formula") == len(found("M7")) == 4
    assert main(["explain"]) == 0
    listed = capsys.readouterr().out
    assert "continual/regret" in listed and "M16" in listed


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ("uitlity", "no such number; did you mean utility U"),
        ("U", "did you mean utility U"),
        ("continual/regrett", "did you mean continual/regret"),
        ("zzzzzz", "sojourn explain lists all"),
    ],
)
def test_a_misspelt_name_gets_the_nearest(refuse: Refuse, asked: str, line: str) -> None:
    assert line in refuse("explain", asked)


def test_the_page_of_the_documentation_is_the_registry() -> None:
    assert PAGE.read_text() == markdown(list(cards().values()))
