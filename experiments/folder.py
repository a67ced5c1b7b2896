"""The run folder: one run, one folder, never shared; what lies in it and under which name.

runs/<experiment>/<memory>__<stream>__s<seed>__<YYYYmmdd-HHMMSS>[-n]/
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from .errors import RunError, UsageError

RUNS = Path("runs")
LATEST, BEST = "latest", "best"
LATEST_LIFE = "latest_life"


class RunFolder:
    """Paths of a run's files, and the lock that keeps a second process out while one writes.

    `create` makes a new folder; the constructor enters one that exists.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self._lock = os.open(path / ".lock", os.O_CREAT | os.O_RDWR, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise RunError(f"{path}: another process is writing to this run") from error
        self.checkpoints.mkdir(exist_ok=True)

    @classmethod
    def create(cls, path: Path) -> RunFolder:
        """Make a folder that did not exist; raises UsageError when it does."""
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.mkdir()
        except FileExistsError as error:
            raise UsageError(
                f"folder={path}: exists already; choose another, or continue it with resume={path}"
            ) from error
        return cls(path)

    @classmethod
    def create_named(cls, experiment: str, name: str) -> RunFolder:
        """Make `runs/<experiment>/<name>__<time>`, numbered when that second is already taken."""
        parent = RUNS / plain_name(experiment)
        parent.mkdir(parents=True, exist_ok=True)
        stem = f"{plain_name(name)}__{time.strftime('%Y%m%d-%H%M%S')}"
        number = 1
        while True:
            path = parent / (stem if number == 1 else f"{stem}-{number}")
            try:
                path.mkdir()
            except FileExistsError:
                number += 1
            else:
                return cls(path)

    @property
    def config_file(self) -> Path:
        return self.path / "config.yaml"

    @property
    def metrics_file(self) -> Path:
        return self.path / "metrics.csv"

    @property
    def episodes_file(self) -> Path:
        return self.path / "episodes.csv"

    @property
    def diagnostics_file(self) -> Path:
        return self.path / "diagnostics.csv"

    @property
    def evaluations_file(self) -> Path:
        return self.path / "evaluations.csv"

    @property
    def log_file(self) -> Path:
        return self.path / "log.txt"

    def append(self, name: str, text: str) -> None:
        """Add a line to one of the small text files, such as overrides.txt."""
        with (self.path / name).open("a", encoding="utf-8") as file:
            file.write(text.rstrip("\n") + "\n")

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        """Replace a JSON file in one step: a reader sees the old one or the new one."""
        write_atomically(self.path / name, json.dumps(content, indent=2) + "\n")

    def set_status(self, status: str, step: int, message: str = "") -> None:
        """Record running, done, failed or interrupted, and the last step."""
        content = {"status": status, "step": step, "message": message, "pid": os.getpid()}
        self.write_json("status.json", content | {"time": time.strftime("%Y-%m-%d %H:%M:%S")})

    def mark_latest(self, pointer: str = LATEST) -> None:
        """Point `runs/latest` here; of two runs that start at once, one wins and both work.

        A run whose folder lies elsewhere goes without where the launch directory cannot be written.
        """
        with suppress(OSError):
            RUNS.mkdir(exist_ok=True)
            link(RUNS / pointer, self.path)

    def close(self) -> None:
        os.close(self._lock)


def plain_name(name: str) -> str:
    """A name that no shell and no command line reads anything into."""
    return "".join(c if c.isalnum() or c in "._+-" else "-" for c in name)


def is_locked(path: Path) -> bool:
    """Whether a living process is writing to the run."""
    try:
        lock = os.open(path / ".lock", os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; raises RunError naming the file when it is missing or broken."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: cannot be read ({error})") from error
    if not isinstance(content, dict):
        raise RunError(f"{path}: expected a JSON object")
    return content


def latest_run() -> Path:
    """The run that started last from this directory; raises UsageError when there is none."""
    return pointed_at(RUNS / LATEST, "run")


def latest_life() -> Path:
    """The life that was lived last from this directory; raises UsageError when there is none."""
    return pointed_at(RUNS / LATEST_LIFE, "life")


def pointed_at(pointer: Path, what: str) -> Path:
    """Where a link of `runs/` leads; raises UsageError when it leads nowhere."""
    if not pointer.exists():
        raise UsageError(
            f"latest: no {what} has been started from {Path.cwd()}; give a {what} folder"
        )
    return Path(os.path.relpath(pointer.resolve()))


def link(pointer: Path, target: Path) -> None:
    """Make or move a symbolic link in one step, relative so that the tree may be moved."""
    temporary = pointer.with_name(f".{pointer.name}.{secrets.token_hex(8)}")
    temporary.symlink_to(os.path.relpath(target, pointer.parent))
    os.replace(temporary, pointer)


def write_atomically(path: Path, text: str) -> None:
    """Replace a text file in one step."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
