"""report.html in a real browser: no complaints, every section, values on hover, both schemes."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from sojourn.experiments.pages.page import NO_CONTRASTS, NO_MATRIX, NO_TRANSFER, SECTIONS, render

from .made_pages import SECTIONS as SHOWN
from .made_pages import full_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SCHEMES = {"dark": 0, "light": 1}  # as the browser counts them
LISTEN = """<script>
window.faults = [];
window.addEventListener("error", (e) => window.faults.push(e.message));
console.error = (...all) => window.faults.push(all.join(" "));
</script>"""
TRY = """<script>
const all = (what) => [...document.querySelectorAll(what)];
const boxes = (chart) => [...chart.parentNode.querySelectorAll(".values")];
const hovered = all(".chart").map((chart) => {
  const box = chart.getBoundingClientRect();
  const at = { clientX: box.left + box.width / 2, clientY: box.top + 50, bubbles: true };
  chart.dispatchEvent(new PointerEvent("pointermove", at));
  const told = boxes(chart).map((one) => one.textContent).join();
  chart.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  return [told, boxes(chart).map((one) => one.textContent).join()];
});
document.querySelector(".legend input").click();
document.body.dataset.seen = JSON.stringify({
  faults: window.faults,
  hovered: hovered,
  sections: all("[data-section]").filter((s) => s.offsetHeight > 40).map((s) => s.dataset.section),
  charts: all(".chart, .heat").filter((c) => c.getBoundingClientRect().height > 50).length,
  hidden: all(".curve").map((c) => [c.dataset.curve, getComputedStyle(c).display]),
  ground: getComputedStyle(document.body).backgroundColor,
});
</script>"""


def shown(text: str, scheme: str, place: Path) -> dict[str, Any]:
    """What the browser says of the page after a pointer and a key were at every chart."""
    assert CHROMIUM is not None
    file = place / "report.html"
    file.write_text(
        text.replace("<title>", LISTEN + "<title>", 1).replace("</body>", TRY + "</body>")
    )
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={place}/me"]
    options += [f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}"]
    command = [CHROMIUM, *options, "--virtual-time-budget=2000", "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    (seen,) = re.findall(r'data-seen="([^"]*)"', done.stdout)
    found: dict[str, Any] = json.loads(unescape(seen))
    return found


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium in the path")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_browser_shows_all_of_it_without_complaints(scheme: str, tmp_path: Path) -> None:
    page = full_page()
    text = render(page)
    empty = [NO_CONTRASTS, NO_MATRIX, NO_TRANSFER, *(said for _, said in SECTIONS.values())]
    assert not [said for said in empty if said in text]
    seen = shown(text, scheme, tmp_path)
    assert seen["faults"] == []
    assert seen["sections"] == SHOWN
    panels = sum(len(picture.panels) for picture in page.pictures.values())
    assert len(seen["hovered"]) == panels and seen["charts"] == panels + 1
    for told in seen["hovered"]:
        for words in told:
            assert re.search(r"x = [\d.]+.*one: .*n = 3.*two: ", words), words
    styles = {curve: {d for c, d in seen["hidden"] if c == curve} for curve in ("0", "1")}
    assert styles["0"] == {"none"} and "none" not in styles["1"]
    ground = [int(value) for value in re.findall(r"\d+", seen["ground"])]
    assert (max(ground) < 60) == (scheme == "dark") and (min(ground) > 200) == (scheme == "light")
