"""Tags, text and tables as HTML, every text escaped."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ..comparisons.comparison import Comparison
from ..measures.card import card_of
from ..tables import Cell

PARTS = ("mean", "low", "high", "num_runs")


def tag(name: str, content: str = "", attributes: Mapping[str, object] | None = None) -> str:
    """`<name attribute="...">content</name>`; `content` is HTML, the value of an attribute text."""
    written = "".join(f' {key}="{escape(str(value))}"' for key, value in (attributes or {}).items())
    return f"<{name}{written}>{content}</{name}>"


def paragraphs(lines: Sequence[str]) -> str:
    """A list of notes; nothing for none."""
    items = "".join(tag("li", escape(line)) for line in lines)
    return tag("ul", items, {"class": "notes"}) if items else ""


def table(shown: Comparison) -> str:
    """A table whose numbers carry all their digits: as `data-mean`, `data-low` ... and on hover.

    The first column heads the rows. What has a metric card tells its formula on hover.
    """
    heads = [tag("th", escape(name), {"scope": "col"} | _told(name)) for name in shown.header]
    head = "".join(heads)
    rows = "".join(
        tag("tr", "".join(_cell(shown, row, i, name) for i, name in enumerate(shown.header)))
        for row in range(len(shown.rows))
    )
    inner = tag("thead", tag("tr", head)) + tag("tbody", rows)
    # What scrolls must be reachable by keyboard, and what is reachable must have a name.
    around = {"class": "scroll", "tabindex": 0, "role": "region", "aria-label": "table"}
    return tag("div", tag("table", inner), around)


def _cell(shown: Comparison, row: int, column: int, name: str) -> str:
    text = escape(shown.rows[row][column])
    if column == 0:
        return tag("th", text, {"scope": "row"} | _told(shown.rows[row][0]))
    if "provisional" in text:
        text = text.replace("provisional", tag("strong", "provisional", {"class": "warning"}))
    numbers = _numbers(shown.data, name, row)
    hover = ", ".join(f"{key} {value!r}" for key, value in numbers.items())
    attributes = {f"data-{key.replace('_', '-')}": repr(v) for key, v in numbers.items()}
    return tag("td", text, attributes | ({"title": hover} if hover else {}))


def _told(name: str) -> dict[str, str]:
    """What the card of a number says, where it has one."""
    card = card_of(name)
    if card is None:
        return {}
    text = f"{card.formula}; comparator: {card.comparator}; blind spots: {card.blind}"
    return {"title": text, "class": "told"}


def _numbers(data: Mapping[str, Sequence[Cell]], name: str, row: int) -> dict[str, Cell]:
    """What a cell's text was rounded from; what is not known is left out."""
    found = {part: data[f"{name}: {part}"][row] for part in PARTS if f"{name}: {part}" in data}
    if not found and name in data:
        found = {"value": data[name][row]}
    return {
        key: value
        for key, value in found.items()
        if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    }


def json_script(name: str, value: Any) -> str:
    """Data that a script of the page reads by its id; cannot end the script element."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{escape(name)}">{text}</script>'
