"""References as small files: what `sojourn reference` writes and `reference: FILE` reads.

    task: {"id": "CartPole-v1"}
    kind: "trained"
    floor: 22.3
    ceiling: 488.1

One key a line, values as in JSON, comments after `#`: a part of YAML that needs no reader of YAML.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from .evidence import Evidence
from .making import frozen
from .task import Reference

SHIPPED = Path(__file__).parent / "references"
VALUES = ("floor", "floor_error", "ceiling", "ceiling_error", "reward_range")
ABOUT = ("task", "versions")
"""Keys that say what was measured: the task as a list of tasks has it, and package versions."""
DEFAULT_UNIT = "return"


def reference_of(
    given: Mapping[str, Any] | str | Path | None, task: Mapping[str, Any]
) -> Reference | None:
    """The reference that a task was given: numbers, a file, or the shipped one where nothing was.

    None where there is none. Raises ValueError for numbers that are missing or unknown and for a
    file as `read_reference` does.
    """
    if given is None:
        return shipped_reference(task)
    if not isinstance(given, Mapping):
        return read_reference(given, task)
    try:
        return Reference(**{"kind": "user", **given})
    except TypeError as error:
        raise ValueError(f"reference of {task.get('id')}: {error}") from error


def read_reference(path: Path | str, task: Mapping[str, Any]) -> Reference:
    """The reference in a file, which must be one of `task` (see `reference_task`).

    Raises ValueError naming the file: unreadable, a key that is unknown or missing, another task.
    """
    content = _content(Path(path))
    measured = {"unit": DEFAULT_UNIT} | content["task"]
    wanted = {"unit": DEFAULT_UNIT} | dict(task)
    for key in sorted({*measured, *wanted}):
        if frozen(measured.get(key)) != frozen(wanted.get(key)):
            raise ValueError(
                f"{path}: measured with {key} {measured.get(key)!r}, "
                f"but the task has {wanted.get(key)!r}; make one with sojourn reference"
            )
    return _reference(content, path)


def shipped_reference(task: Mapping[str, Any]) -> Reference | None:
    """The reference that comes with the package for exactly this task; None where there is none."""
    path = reference_path(SHIPPED, str(task.get("id")))
    if not path.is_file():
        return None
    content = _shipped(path)
    return _reference(content, path) if frozen(content["task"]) == frozen(task) else None


def reference_path(folder: Path, id: str) -> Path:
    """Where the reference of an id lies in a folder."""
    return folder / f"{id.replace('/', '-').replace(':', '-')}.yaml"


def reference_text(
    reference: Reference, task: Mapping[str, Any], versions: Mapping[str, str], title: str
) -> str:
    """The content of a file; `title` is its first comment line."""
    rows: dict[str, Any] = {"task": dict(task), "kind": reference.kind}
    rows |= {name: getattr(reference, name) for name in VALUES}
    if reference.evidence is not None:
        told = asdict(reference.evidence)
        rows |= {key: value for key, value in told.items() if value not in ((), "")}
    rows["versions"] = dict(versions)
    lines = [f"{key}: {json.dumps(_rounded(value))}\n" for key, value in rows.items()]
    return f"# {title}\n" + "".join(lines)


def _reference(content: Mapping[str, Any], path: Path | str) -> Reference:
    counted = {key.name for key in fields(Evidence)} & content.keys()
    given = {name: _tuple(content[name]) for name in counted}
    try:
        evidence = Evidence(**{"num_ceiling": 0, "num_floor": 0, **given}) if given else None
        floor, floor_error, ceiling, ceiling_error, reward_range = (
            float(content.get(name, 0.0)) for name in VALUES
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    kind = str(content.get("kind", "user"))
    levels = (floor, ceiling, kind, floor_error, ceiling_error, reward_range)
    return Reference(*levels, evidence=evidence)


@cache
def _shipped(path: Path) -> Mapping[str, Any]:
    return _content(path)


def _content(path: Path) -> dict[str, Any]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"reference {path}: cannot be read ({error})") from error
    content: dict[str, Any] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, colon, value = line.partition(":")
        if not colon or line[0].isspace():
            raise ValueError(f"{path}, line {number}: expected key: value, got {line!r}")
        content[key.strip()] = _value(value)
    known = ["kind", *VALUES, *ABOUT, *(key.name for key in fields(Evidence))]
    for key in content:
        if key not in known:
            near = get_close_matches(key, known, n=1, cutoff=0.0)[0]
            raise ValueError(f"{path}: no such key {key!r}; nearest is {near!r}")
    for key in ("task", "floor", "ceiling"):
        if key not in content:
            raise ValueError(f"{path}: {key}: missing")
    if not isinstance(content["task"], dict):
        raise ValueError(f"{path}: task: expected a mapping such as {{'id': 'CartPole-v1'}}")
    return content


def _value(text: str) -> Any:
    """A value as in JSON; text without quotes, up to a comment, is itself."""
    try:
        return json.loads(text)
    except ValueError:
        bare = text.partition(" #")[0].strip()
    try:
        return json.loads(bare)
    except ValueError:
        return bare


def _rounded(value: Any) -> Any:
    """Six digits say more than any sample does."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
