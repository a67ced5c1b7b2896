"""The verb `list`: what can be chosen, from the first comment lines of the configuration files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from rich.table import Table
from rich.text import Text

from sojourn.envs import origin, plugins

from . import catalog
from .build import build_memory
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
    "scale": ("title",),
}

PICTURES = "pictures="
WIDTH = 64  # of the tokens for which the bytes of a memory's state are shown


def list_groups(words: Sequence[str]) -> int:
    """Run `sojourn list [GROUP] [pictures=FILE.png]`; returns the exit code."""
    drawn = [word for word in words if word.startswith(PICTURES)]
    groups = [w if w in COLUMNS else w.removesuffix("s") for w in words if w not in drawn]
    for group in groups:
        if group not in COLUMNS:
            raise UsageError(f"list {group}: no such group; {hint(group, COLUMNS)}")
    console = plain_console()
    if drawn:
        _draw(drawn[-1].removeprefix(PICTURES), groups)
    if not groups:
        for group in COLUMNS:
            console.print(overview(group))
        console.print("sojourn list GROUP tells more, as in: sojourn list memory", highlight=False)
    for group in groups:
        console.print(group_table(group))
        if group == "stream" and plugins():
            console.print(plugin_table())
    return EXIT_OK


def _draw(file: str, groups: Sequence[str]) -> None:
    """A picture of every stream."""
    if groups != ["stream"]:
        raise UsageError(
            f"{PICTURES}{file}: only streams have pictures; list streams {PICTURES}..."
        )
    if Path(file).suffix != ".png":
        raise UsageError(f"{PICTURES}{file}: expected a file that ends in .png")
    from .gallery import draw_gallery  # imported where asked for: it takes a second

    draw_gallery(Path(file))


def plugin_table() -> Table:
    """A row for every environment that an installed package offers."""
    table = Table(title="stream.tasks=[NAME], from installed packages", title_justify="left")
    table.add_column("name", no_wrap=True)
    table.add_column("from", overflow="fold")
    for name, point in sorted(plugins().items()):
        table.add_row(name, Text(origin(point)))
    return table


def overview(group: str) -> Table:
    """Name and title of every option of a group."""
    table = Table(title=f"{group}=NAME", title_justify="left", show_header=False, box=None)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name in catalog.options(group):
        title = catalog.header(catalog.text_of(group, name)).get("title", "")
        table.add_row(name, Text(title))
    return table


def group_table(group: str) -> Table:
    """A row for every option of a group; for memories also the bytes of their state."""
    table = Table(title=f"{group}=NAME", title_justify="left", show_lines=group == "memory")
    table.add_column("name", no_wrap=True)
    for column in COLUMNS[group]:
        table.add_column(column, overflow="fold")
    if group == "memory":
        table.add_column("bytes per lifetime", justify="right")
    for name in catalog.options(group):
        text = catalog.text_of(group, name)
        found = catalog.header(text)
        cells = [found.get(column, "") for column in COLUMNS[group]]
        cells += [state_bytes(text)] if group == "memory" else []
        table.add_row(name, *map(Text, cells))
    return table


def state_bytes(text: str) -> str:
    """Bytes of the state that a memory's file describes, at the sizes it gives."""
    config = OmegaConf.create({"memory": OmegaConf.create(text)})
    assert isinstance(config, DictConfig)
    memory = build_memory(config, WIDTH)
    return "grows" if memory.grows else f"{memory.state_bytes():,}"
