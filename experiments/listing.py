"""The verb `list`: what can be chosen, from the first comment lines of the configuration files."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from . import catalog
from .errors import EXIT_OK, UsageError, hint
from .progress import plain_console

# Header keys shown for a group, in this order; files without them show an empty cell.
COLUMNS = {
    "memory": ("title", "equation", "paper", "cost", "state", "recall"),
    "stream": ("title", "source", "tests"),
    "agent": ("title",),
    "trainer": ("title",),
    "experiment": ("title",),
}


def list_groups(words: Sequence[str]) -> int:
    """Run `sojourn list [GROUP]`; returns the exit code."""
    for word in words:
        if word not in COLUMNS:
            raise UsageError(f"list {word}: no such group; {hint(word, COLUMNS)}")
    console = plain_console()
    for group in words or COLUMNS:
        console.print(group_table(group))
    return EXIT_OK


def group_table(group: str) -> Table:
    """A row for every option of a group."""
    table = Table(title=f"{group}=NAME", title_justify="left", show_lines=group == "memory")
    table.add_column("name", no_wrap=True)
    for column in COLUMNS[group]:
        table.add_column(column, overflow="fold")
    for name in catalog.options(group):
        found = catalog.header(catalog.text_of(group, name))
        table.add_row(name, *(Text(found.get(column, "")) for column in COLUMNS[group]))
    return table
