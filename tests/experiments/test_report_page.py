"""report.html: every section, the numbers of the tables and figures, and nothing from outside."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from sojourn.experiments.command import main
from sojourn.experiments.pages.document import MAX_BYTES
from sojourn.experiments.pages.page import render
from sojourn.experiments.tables import read_table

from .made_pages import PICTURES, SECTIONS, made_page

VOID = {"meta", "input"}


class Reader(HTMLParser):
    """Checks that tags are balanced, and keeps what the tests look for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.ids: list[str] = []
        self.sections: list[str] = []
        self.cells: dict[str, list[list[dict[str, str]]]] = {}
        self.scripts: dict[str, str] = {}
        self._script = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {key: value or "" for key, value in attrs}
        self.attributes += found.items()
        if "id" in found:
            self.ids.append(found["id"])
        if "data-section" in found:
            self.sections.append(found["data-section"])
        if tag == "tr":
            self.cells.setdefault(self.sections[-1], []).append([])
        if tag == "td":
            self.cells[self.sections[-1]][-1].append(found)
        if tag == "script":
            self._script = found.get("id", "code")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID, f"<{tag}/> stays open in HTML"
        self.attributes += [(key, value or "") for key, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[self._script] = self.scripts.get(self._script, "") + data


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the comparison of the finished runs is kept between the tests."""
    return tmp_path_factory.mktemp("written")


@pytest.fixture
def out(runs: Path, written: Path) -> Path:
    """The folder of a comparison of all finished runs with one of them as reference."""
    if not list(written.iterdir()):
        words = ["reference=memory_reset=never", "declared=all"]
        assert main(["compare", "runs/*", f"output={written}", *words]) == 0
    return written


def test_every_section_is_there_and_the_page_is_well_formed(out: Path) -> None:
    found = Reader((out / "report.html").read_text())
    assert found.sections == SECTIONS
    assert len(set(found.ids)) == len(found.ids)
    links = [value for name, value in found.attributes if name == "href"]
    assert links == [f"#{name}" for name in SECTIONS]


def test_nothing_comes_from_outside(out: Path) -> None:
    text = (out / "report.html").read_text()
    assert not re.search(r"https?:|//cdn|@import|fetch\(|XMLHttpRequest|\bsrc=", text)
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", text))


def test_the_numbers_are_those_of_the_tables(out: Path) -> None:
    found = Reader((out / "report.html").read_text())
    for section, name in [
        ("summary", "comparison"),
        ("aggregates", "aggregates"),
        ("contrasts", "contrasts"),
    ]:
        table, checked = read_table(out / f"{name}.csv"), 0
        numbers = {float(x) for col in table.values() if col.dtype.kind == "f" for x in col}
        for row in found.cells[section]:
            for cell in row:
                shown = [float(v) for k, v in cell.items() if k.startswith("data-")]
                assert set(shown) <= numbers
                checked += len(shown)
        assert checked > 4


def test_the_points_are_those_of_the_figures(out: Path) -> None:
    found = Reader((out / "report.html").read_text())
    labels, points = (json.loads(found.scripts[name]) for name in ("labels", "points"))
    told_apart = {"regret_split", "regret_by_episode"}  # the tasks of these runs have one episode
    for name in set(PICTURES) - told_apart:
        table = read_table(out / f"{name}.csv")
        shown = [c for key, curves in points.items() if key.startswith(name) for c in curves]
        names = [labels[c["label"]] for c in shown for _ in c["x"]]
        assert names == table["curve"].tolist()
        for column in ("x", "mean", "low", "high", "num_runs"):
            values = [np.nan if v is None else v for c in shown for v in c[column]]
            np.testing.assert_array_equal(values, table[column])


def test_adding_a_group_changes_no_other_number(runs: Path) -> None:
    assert main(["compare", "runs/delta-1", "runs/never", "output=few"]) == 0
    shutil.copytree(runs / "delta-1", runs / "third")
    config = runs / "third" / "config.yaml"
    config.write_text(config.read_text().replace("memory_reset: lifetime", "memory_reset: task"))
    names = ["runs/delta-1", "runs/never", "runs/third"]
    assert main(["compare", *names, "output=more"]) == 0
    few, more = (Reader(Path(f, "report.html").read_text()) for f in ("few", "more"))
    for section in ("summary", "aggregates", "cost"):
        assert few.cells[section] == more.cells[section][: len(few.cells[section])]
    one, other = (json.loads(found.scripts["points"]) for found in (few, more))
    for name, curves in one.items():
        assert curves == other[name][:2]


def test_text_of_a_user_is_never_markup() -> None:
    evil = '</script><img src="x"> & <b>'
    found = Reader(render(made_page([evil, "two"])))
    assert json.loads(found.scripts["labels"])[0] == evil
    assert "img" not in found.scripts["code"]


def test_what_is_provisional_is_marked_and_n_is_printed() -> None:
    text = render(made_page(["one"]))
    assert '<strong class="warning">provisional</strong>' in text
    assert '<td data-value="3"' in text


def test_many_groups_make_no_endless_page(monkeypatch: pytest.MonkeyPatch) -> None:
    large = made_page([f"group {i}" for i in range(40)], 1000)
    text = render(large)
    assert len(text.encode()) <= MAX_BYTES
    points = json.loads(Reader(text).scripts["points"])["windowed_regret-0"]
    assert len(points) == 40
    assert {(c["x"][0], c["x"][-1]) for c in points} == {(0.0, 999.0)}, "ends are kept"
    assert len(points[0]["x"]) < 200


@pytest.mark.parametrize("count", [0, 1, 2])
def test_short_curves_are_drawn(count: int) -> None:
    text = render(made_page(["one", "two"], count))
    assert Reader(text).sections == SECTIONS
    assert "nan" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
