"""report.html: every section, the numbers of the tables and figures, and nothing from outside."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sojourn.experiments.command import main
from sojourn.experiments.comparisons.comparison import Comparison
from sojourn.experiments.drawing.panels import Curve, Panel, Picture
from sojourn.experiments.pages.document import MAX_BYTES
from sojourn.experiments.pages.page import Page, render
from sojourn.experiments.tables import read_table

SECTIONS = [
    "summary",
    "cumulative_regret",
    "windowed_regret",
    "regret_split",
    "regret_by_episode",
    "regret_at_the_end",
    "performance_profile",
    "aggregates",
    "contrasts",
    "memory",
    "transfer",
    "cost",
    "settings",
    "runs",
]
PICTURES = [name for name in SECTIONS[1:7]]
VOID = {"meta", "input"}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


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


def curve(label: str, count: int) -> Curve:
    x = np.arange(count, dtype=np.float64)
    mean = np.where(x % 7 == 3, np.nan, 1 / (1 + x))
    return Curve(label, x, mean, mean - 0.1, mean + 0.1, np.full(count, 3))


def made_page(labels: list[str], count: int = 30) -> Page:
    """A page about groups of these labels, `count` points a curve."""
    costs = {name: [1.0] * len(labels) for name in ("steps/s", "parameters", "state bytes")}
    header = ["group", "n", *costs, "comparator"]
    rows = [[label, "3", "1", "1", "1", "planner, provisional"] for label in labels]
    data: Any = {"group": labels, "n": [3] * len(labels), **costs}
    table = Comparison(header, rows, data, ["a note"])
    curves = [curve(label, count) for label in labels]
    panel = Panel("t", "steps", "regret", curves, borders=(5.0,))
    dots = Panel("t", "episode", "regret", curves, kind="points")
    pictures = {name: Picture(name, "A & B", "c", [panel, dots]) for name in PICTURES}
    runs = [(label, "f") for label in labels]
    return Page("A & B", table, table, None, None, pictures, [], runs)


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


LISTEN = """<script>
window.faults = [];
window.addEventListener("error", (e) => window.faults.push(e.message));
console.error = (...all) => window.faults.push(all.join(" "));
</script>"""
TRY = """<script>
document.querySelectorAll(".chart").forEach((chart) => {
  const box = chart.getBoundingClientRect();
  const at = { clientX: box.left + box.width / 2, clientY: box.top + 50, bubbles: true };
  chart.dispatchEvent(new PointerEvent("pointermove", at));
  chart.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
});
document.querySelector(".legend input").click();
document.body.dataset.faults = JSON.stringify(window.faults);
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium in the path")
def test_a_browser_shows_it_without_complaints(tmp_path: Path) -> None:
    assert CHROMIUM is not None
    text = render(made_page(["one", "two"]))
    file = tmp_path / "report.html"
    file.write_text(
        text.replace("<title>", LISTEN + "<title>", 1).replace("</body>", TRY + "</body>")
    )
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/me"]
    command = [CHROMIUM, *options, "--virtual-time-budget=2000", "--dump-dom", file.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert 'data-faults="[]"' in shown
    num_charts = 2 * len(PICTURES)
    assert shown.count('class="values"') == num_charts, "values under the cursor of each chart"
    assert shown.count('class="curve hidden"') == num_charts, "the first label was unticked"
