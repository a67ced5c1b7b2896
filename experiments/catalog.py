"""The shipped configuration files as a catalogue: groups, options and what is said of them."""

from __future__ import annotations

import re
from importlib.resources import files

import yaml  # type: ignore[import-untyped]

GROUPS = ("memory", "stream", "agent", "trainer", "experiment")

_HEADER_LINE = re.compile(r"#\s*(\w+):\s*(.*)")
_TRAILING_COMMENT = re.compile(r"\s#\s*(.*)$")


def options(group: str) -> list[str]:
    """Names that `group=NAME` accepts, sorted."""
    folder = files(f"sojourn.configs.{group}")
    return sorted(f.name[: -len(".yaml")] for f in folder.iterdir() if f.name.endswith(".yaml"))


def text_of(group: str | None, name: str) -> str:
    """Text of a configuration file; `group` None is the root folder."""
    package = "sojourn.configs" if group is None else f"sojourn.configs.{group}"
    return (files(package) / f"{name}.yaml").read_text(encoding="utf-8")


def header(text: str) -> dict[str, str]:
    """The `# key: value` lines of a file's first comment block.

    Indented `#` lines that follow continue the value. A first line without a key is the `title`.
    """
    found: dict[str, str] = {}
    last = ""
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if line.startswith("# @"):
            continue
        match = _HEADER_LINE.match(line)
        if match:
            last = match[1]
            found[last] = match[2].strip()
        elif last:
            found[last] = f"{found[last]} {line.lstrip('# ').strip()}".strip()
        else:
            last = "title"
            found[last] = line.lstrip("# ").strip()
    return found


def key_comments(text: str) -> dict[str, str]:
    """Dotted key -> the comment on its line, or the comment lines right above it."""
    lines = text.splitlines()
    comments: dict[str, str] = {}

    def visit(node: yaml.Node | None, path: str) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                child = f"{path}.{key.value}" if path else str(key.value)
                comments[child] = _comment_at(lines, key.start_mark.line)
                visit(value, child)
        elif isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                visit(item, f"{path}.{index}")

    visit(yaml.compose(text), "")
    return comments


def _comment_at(lines: list[str], number: int) -> str:
    trailing = _TRAILING_COMMENT.search(lines[number])
    if trailing:
        return trailing[1].strip()
    above: list[str] = []
    row = number - 1
    while row >= 0 and lines[row].lstrip().startswith("#"):
        above.insert(0, lines[row].lstrip().lstrip("#").strip())
        row -= 1
    return "" if row < 0 else " ".join(above)  # a block at the top describes the file, not the key
