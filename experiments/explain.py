"""The verb `explain`: the card of a number - formula, unit, comparator, blind spots, source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from .errors import EXIT_OK, RunError, UsageError, nearest
from .folder import write_atomically
from .measures.card import Card, card_of, cards
from .progress import plain_console

OUTPUT = "output="
INTRODUCTION = """# Metric cards

What every number is that a table prints: `sojourn explain NAME` says the same, and
`sojourn explain` lists the names. A part in angle brackets stands for anything. This page is made
by `sojourn explain output=docs/metrics.md`.
"""


def explain(words: Sequence[str]) -> int:
    """Run `sojourn explain [METRIC ...] [output=FILE.md]`; returns the exit code."""
    files = [word.removeprefix(OUTPUT) for word in words if word.startswith(OUTPUT)]
    asked = [word for word in words if not word.startswith(OUTPUT)]
    whole = " ".join(asked)  # names have spaces in them
    names = [whole] if asked and card_of(whole) is not None else asked
    chosen = [card for name in names for card in found(name)]
    console = plain_console()
    for card in chosen:
        console.print(card_table(card))
    if files:
        try:
            write_atomically(Path(files[-1]), markdown(chosen or list(cards().values())))
        except OSError as error:
            raise RunError(f"{files[-1]}: cannot be written ({error})") from error
        console.print(f"cards in {files[-1]}", markup=False, highlight=False)
    elif not names:
        console.print(list_table())
    return EXIT_OK


def found(name: str) -> list[Card]:
    """The card of a number, or all cards of a code such as M7.

    Raises UsageError, naming the nearest ones, where there is none.
    """
    of_code = [card for card in cards().values() if card.code and card.code == name.upper()]
    card = card_of(name)
    if of_code or card is not None:
        return of_code or [card] if card is not None else of_code
    close = _naming(name) or nearest(name, cards()) or _with_word(name)
    advice = f"did you mean {' or '.join(close)}?" if close else "sojourn explain lists all"
    raise UsageError(f"explain {name}: no such number; {advice}")


def _naming(name: str) -> list[str]:
    """Names of which `name` is a word, such as U of `utility U`; the shortest first."""
    words = {known: re.findall(r"\w+", known.lower()) for known in cards()}
    found = [known for known, parts in words.items() if name.lower() in parts]
    return sorted(found, key=len)[:3]


def _with_word(name: str) -> list[str]:
    """Names that hold the word most like `name`."""
    words = {word for known in cards() for word in re.findall(r"[A-Za-z]{3,}", known)}
    return [known for word in nearest(name, words, 1) for known in cards() if word in known][:3]


def card_table(card: Card) -> Table:
    """A card for the terminal."""
    title = f"{card.code} {card.name}" if card.code else card.name
    table = Table(title=Text(title), title_justify="left", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for heading, text in card.lines:
        table.add_row(heading, Text(text))
    return table


def list_table() -> Table:
    """A row for every card."""
    table = Table(title="sojourn explain NAME", title_justify="left")
    for column in ("code", "name", "unit"):
        table.add_column(column, overflow="fold")
    for card in cards().values():
        table.add_row(card.code, Text(card.name), Text(card.unit))
    return table


def markdown(chosen: Sequence[Card]) -> str:
    """Cards as a page: what the documentation holds."""
    parts = [INTRODUCTION]
    for card in chosen:
        code = f" ({card.code})" if card.code else ""
        lines = [f"* {heading}: {_escaped(text)}" for heading, text in card.lines]
        parts.append("\n".join([f"## `{card.name}`{code}", "", *lines]) + "\n")
    return "\n".join(parts)


def _escaped(text: str) -> str:
    """Characters that Markdown would take for marks, as themselves."""
    for mark in ("*", "_", "<", "|"):
        text = text.replace(mark, f"\\{mark}")
    return text
