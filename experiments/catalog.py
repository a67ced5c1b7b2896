"""Configuration files, shipped or the user's own: groups, options and what is said of them."""

from __future__ import annotations

import re
import sys
from importlib.resources import files
from pathlib import Path

import yaml  # type: ignore[import-untyped]
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from .errors import UsageError, hint

GROUPS = ("memory", "stream", "agent", "trainer", "experiment")
ALL_GROUPS = (*GROUPS, "probe", "study", "scale")

_HEADER_LINE = re.compile(r"#\s*(\w+):\s*(.*)")
_TRAILING_COMMENT = re.compile(r"\s#\s*(.*)$")


def is_file(name: object) -> bool:
    """Whether `group=name` names a file of the user's own: `memory=./my_core.yaml`."""
    return isinstance(name, str) and name.endswith(".yaml")


def title(name: str) -> str:
    """An option without its folder: what runs are named after."""
    return Path(name).stem if is_file(name) else name


def check_option(group: str, name: object) -> None:
    """Raise UsageError unless `group=name` is a shipped choice or a readable file.

    `experiment=null` is allowed.
    """
    if group == "experiment" and name is None:
        return
    if is_file(name):
        read_file(group, str(name))
        return
    known = options(group)
    if name not in known:
        is_path = any(sign in str(name) for sign in "./\\")
        advice = "a file of your own ends in .yaml" if is_path else hint(str(name), known)
        raise UsageError(f"{group}={name}: no such {group}; {advice}")


def read_file(group: str, name: str) -> DictConfig:
    """The configuration of a user's file; modules beside it can then be imported.

    Raises UsageError naming what is wrong.
    """
    path = Path(name)
    import_beside(name)
    try:
        found = OmegaConf.load(path)
    except OSError as error:
        raise UsageError(f"{group}={name}: cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, OmegaConfBaseException, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"{group}={name}: not valid YAML ({reason})") from error
    needs_class = group in ("memory", "stream", "trainer")
    if not isinstance(found, DictConfig) or (needs_class and "_target_" not in found):
        raise UsageError(f"{group}={name}: expected keys, first of all a `_target_` with the class")
    return found


def import_beside(name: object) -> None:
    """Let the modules beside a user's file be imported, after all others: they hide no package."""
    folder = str(Path(str(name)).resolve().parent)
    if is_file(name) and folder not in sys.path:
        sys.path.append(folder)


def options(group: str) -> list[str]:
    """Names that `group=NAME` accepts, sorted."""
    folder = files(f"sojourn.configs.{group}")
    return sorted(f.name[: -len(".yaml")] for f in folder.iterdir() if f.name.endswith(".yaml"))


def text_of(group: str | None, name: str) -> str:
    """Text of a configuration file, shipped or the user's; `group` None is the root folder."""
    if is_file(name):
        return Path(name).read_text(encoding="utf-8")
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


def parents(text: str) -> list[str]:
    """The options of the same group that a file builds upon: the plain names in its `defaults`."""
    defaults = (yaml.safe_load(text) or {}).get("defaults") or []
    return [entry for entry in defaults if isinstance(entry, str) and entry != "_self_"]


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
