"""Where a run comes from: command line, package versions, code state, machine."""

from __future__ import annotations

import platform
import shlex
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "sojourn",
    "torch",
    "torchrl",
    "tensordict",
    "numpy",
    "gymnasium",
    "minigrid",
    "hydra-core",
)


def versions(device: str) -> dict[str, Any]:
    """Package versions, Python, platform, device, and the state of the code where it is in git."""
    return {
        "packages": {name: version_of(name) for name in PACKAGES},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "device": device,
        "git": _git_state(),
    }


def version_of(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def command_line(verb: str, words: Sequence[str]) -> str:
    """A command that can be pasted into a shell."""
    return shlex.join(["sojourn", verb, *words])


def _git_state() -> dict[str, Any] | None:
    """Commit and whether files differ from it; None for an installed copy."""
    root = Path(__file__).resolve().parent.parent
    try:
        # An installed copy may lie inside somebody else's repository.
        if Path(_git(root, "rev-parse", "--show-toplevel")).resolve() != root:
            return None
        commit = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "dirty": bool(changed)}


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=5,
    )
    return done.stdout.strip()
