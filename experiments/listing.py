"""The verb `list`: what can be chosen, from the first comment lines of the configuration files."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from sojourn.envs import origin, plugins

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
    "probe": ("title", "tests", "chance", "oracle"),
    "study": ("title", "tests"),
}


def list_groups(words: Sequence[str]) -> int:
    """Run `sojourn list [GROUP]`; returns the exit code."""
    groups = [word if word in COLUMNS else word.removesuffix("s") for word in words]
    for group in groups:
        if group not in COLUMNS:
            raise UsageError(f"list {group}: no such group; {hint(group, COLUMNS)}")
    console = plain_console()
    for group in groups or COLUMNS:
        console.print(group_table(group))
        if group == "stream" and plugins():
            console.print(plugin_table())
    return EXIT_OK


def plugin_table() -> Table:
    """A row for every environment that an installed package offers."""
    table = Table(title="stream.tasks=[NAME], from installed packages", title_justify="left")
    table.add_column("name", no_wrap=True)
    table.add_column("from", overflow="fold")
    for name, point in sorted(plugins().items()):
        table.add_row(name, Text(origin(point)))
    return table


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
