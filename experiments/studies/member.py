"""One run of a study, and the row file that is left of it when its run folder is long gone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from ..errors import RunError
from ..folder import is_locked, plain_name, read_json, write_atomically
from ..results import CONFIG_FILE
from ..speed_only import without_speed_only
from .earlier import answers

# Keys that a machine may choose differently without making another run of it.
OF_THE_MACHINE = (
    "folder",
    "resume",
    "device",
    "num_threads",
    "quiet",
    "keep_checkpoints",
    "plasticity_every",
    "estimate",
    "scale",  # what it did stands in the other keys
)


@dataclass(frozen=True)
class Member:
    """`words` for `sojourn train`; `choices` are the swept keys and this member's values;
    `settings` determine its numbers.
    """

    words: Sequence[str]
    choices: Mapping[str, str]
    settings: Mapping[str, Any]

    @cached_property
    def digest(self) -> str:
        """Eight hexadecimal digits of the settings that are more than speed."""
        text = json.dumps(without_speed_only(self.settings), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @property
    def name(self) -> str:
        """Folder and file name: the values, and a digest of all settings."""
        return f"{self.stem}__{self.digest}"

    @property
    def backend(self) -> str:
        """What its environments are played by."""
        return str(self.settings["stream"].get("backend", "auto"))

    @property
    def stem(self) -> str:
        """The name without the digest."""
        return "__".join(_part(key, value) for key, value in self.choices.items())

    @property
    def group(self) -> str:
        """What the member has in common with those that differ by seed only."""
        return " ".join(_part(k, v) for k, v in self.choices.items() if k != "seed")


@dataclass(frozen=True)
class Places:
    """Where a study keeps what belongs to a member."""

    folder: Path

    def row(self, member: Member) -> Path:
        return self.folder / "members" / f"{member.name}.json"

    @property
    def runs(self) -> Path:
        """Where the folders of the members lie."""
        return self.folder / "runs"

    def run(self, member: Member) -> Path:
        return self.runs / member.name

    def output(self, member: Member) -> Path:
        """What the member's process printed."""
        return self.folder / "output" / f"{member.name}.txt"


def settings_of(config: DictConfig) -> dict[str, Any]:
    """All settings that determine a run's numbers, as JSON keeps them."""
    content = OmegaConf.to_container(config, resolve=True)
    assert isinstance(content, dict)
    kept = {str(k): v for k, v in content.items() if k not in OF_THE_MACHINE}
    settings: dict[str, Any] = json.loads(json.dumps(kept, default=str))
    return settings


def state_of(places: Places, member: Member) -> str:
    """`done`, `running` (in another process), `started` (can be resumed) or `new`."""
    run = places.run(member)
    if find_row(places, member) is not None:
        return "done"
    if not run.exists():
        return "new"
    if is_locked(run):
        return "running"
    if (run / CONFIG_FILE).is_file() and read_json(run / "status.json")["status"] == "done":
        return "done"
    return "started" if any((run / "checkpoints").glob("step_*")) else "new"


def write_row(places: Places, member: Member) -> None:
    """Keep what the table needs of a finished run; raises RunError when it is not finished."""
    run = places.run(member)
    status = read_json(run / "status.json")
    if status.get("status") != "done":
        raise RunError(f"{run}: this run is {status.get('status')}, not done")
    row = {
        "words": list(member.words),
        "choices": dict(member.choices),
        "settings": dict(member.settings),
        "summary": read_json(run / "summary.json"),
    }
    path = places.row(member)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(row, indent=1) + "\n")


def find_row(places: Places, member: Member) -> Path | None:
    """The member's row file, of this version or of an earlier one; None before it has finished."""
    path = places.row(member)
    if path.exists():
        return path
    found = sorted(path.parent.glob(f"{member.stem}__*.json"))
    return next((f for f in found if answers(read_json(f), member.words, member.settings)), None)


def read_row(places: Places, member: Member) -> dict[str, Any] | None:
    """The content of a member's row file; None before the member has finished."""
    path = find_row(places, member)
    return None if path is None else read_json(path)


def _part(key: str, value: str) -> str:
    if key == "seed":
        return f"s{value}"
    shown = plain_name(value)
    return shown if key in ("memory", "stream", "experiment") else f"{key.split('.')[-1]}={shown}"
