"""The registry of metric cards: one for every number that a table prints.

A card lies in one of the YAML files of `cards`, under the name of its number. A part of a name in
angle brackets stands for anything: `regret, <Nth> episode` is the card of `regret, 1st episode`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files

import yaml  # type: ignore[import-untyped]

FILES = ("evaluation", "state", "runs", "episodes", "reports")
PLACEHOLDER = re.compile(r"<\w+>")

# Columns that say where a number belongs and are none themselves.
WHERE = "step update lifetime segment task task_index unit episode start_step status ends_segment"
WHAT = "layer head code measure condition note group reference comparator privileged verdict life"
DRAWN = "panel curve x number row column segments_lived environment_step"
COORDINATES = frozenset(f"{WHERE} {WHAT} {DRAWN}".split(" "))


@dataclass(frozen=True)
class Card:
    """What a number is. `code` is its place among the measures of an evaluation, if it has one."""

    name: str
    formula: str
    unit: str
    comparator: str
    blind: str
    source: str
    code: str = ""

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Heading and text of every part, for a terminal or a page."""
        parts = [("formula", self.formula), ("unit", self.unit), ("comparator", self.comparator)]
        return [*parts, ("blind spots", self.blind), ("source", self.source)]

    def matches(self, name: str) -> bool:
        """Whether this is the card of a number of that name."""
        pieces = [re.escape(piece) for piece in PLACEHOLDER.split(self.name)]
        return re.fullmatch("(.+)".join(pieces), name) is not None


@cache
def cards() -> Mapping[str, Card]:
    """All cards by name, in the order of the files.

    Raises ValueError for a card with a part missing or unknown, and for a name used twice.
    """
    known = {field.name for field in fields(Card)} - {"name"}
    found: dict[str, Card] = {}
    for file in FILES:
        text = (files(__package__) / "cards" / f"{file}.yaml").read_text(encoding="utf-8")
        for name, parts in yaml.safe_load(text).items():
            wrong = (known - {"code"} - parts.keys()) | (parts.keys() - known)
            if wrong or name in found:
                raise ValueError(f"{file}.yaml: {name}: {', '.join(sorted(wrong)) or 'twice'}")
            found[name] = Card(name, **{part: str(text) for part, text in parts.items()})
    return found


def card_of(name: str) -> Card | None:
    """The card of a number: that of its very name, else the most literal pattern that fits."""
    known = cards()
    if name in known:
        return known[name]
    fitting = [card for card in known.values() if "<" in card.name and card.matches(name)]
    return max(fitting, key=lambda card: len(PLACEHOLDER.sub("", card.name)), default=None)
