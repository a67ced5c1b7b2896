"""Checkpoints: everything a later process needs, as plain tensors and Python values.

Written beside the old ones and moved into place: a kill in the middle of saving destroys nothing.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .errors import RunError, first_line
from .folder import BEST, LATEST, link

FORMAT = 1
_NAME = re.compile(r"step_(\d+)\.pt")
_NUMPY = "__numpy__"


def save(
    folder: Path, step: int, content: Mapping[str, Any], keep: int, best: int | None = None
) -> Path:
    """Write `step_<step>.pt` and keep the newest `keep` and that of step `best`; returns the
    file.
    """
    path = path_of(folder, step)
    temporary = folder / f".{path.name}.{os.getpid()}"
    try:
        with temporary.open("wb") as file:
            torch.save({"format": FORMAT, "step": step} | _plain(content), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:  # a full disk needs the room to say so
        temporary.unlink(missing_ok=True)
        raise
    link(folder / LATEST, path)
    mark_best(folder, best)
    for old in newest_first(folder)[keep:]:
        if step_of(old) != best:
            old.unlink()
    return path


def mark_best(folder: Path, step: int | None) -> None:
    """Point `best` at the checkpoint of a step; None: there is none."""
    if step is None:
        (folder / BEST).unlink(missing_ok=True)
    else:
        link(folder / BEST, path_of(folder, step))


def path_of(folder: Path, step: int) -> Path:
    """Where the checkpoint of a step lies."""
    return folder / f"step_{step:012d}.pt"


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint; raises RunError naming the file when it is broken or of another format."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a broken file may fail anywhere in the reader
        raise RunError(f"{path}: not a readable checkpoint ({first_line(error)})") from error
    found = content.get("format") if isinstance(content, dict) else None
    if found != FORMAT:
        raise RunError(f"{path}: checkpoint format {found}, this version reads format {FORMAT}")
    restored: dict[str, Any] = _restored(content)
    return restored


def newest_first(folder: Path) -> list[Path]:
    """The checkpoint files of a folder, the newest step first."""
    found = [path for path in folder.glob("step_*.pt") if _NAME.fullmatch(path.name)]
    return sorted(found, key=step_of, reverse=True)


def step_of(path: Path) -> int:
    """The environment step a checkpoint's name tells."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise RunError(f"{path}: expected a checkpoint named step_<number>.pt")
    return int(match[1])


def load_newest(folder: Path) -> tuple[Path, dict[str, Any], list[str]]:
    """The newest checkpoint that can be read, and a line for every newer one that cannot.

    Raises RunError when there is none.
    """
    complaints: list[str] = []
    for path in newest_first(folder):
        try:
            return path, load(path), complaints
        except RunError as error:
            complaints.append(str(error))
    reason = f" ({'; '.join(complaints)})" if complaints else ""
    raise RunError(f"{folder}: no checkpoint to resume from{reason}")


def generator_states() -> dict[str, Any]:
    """The global random generators of torch, NumPy and Python."""
    _, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    version, words, gauss = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "numpy": [keys, int(position), int(has_gauss), float(cached)],
        "python": [version, list(words), gauss],
    }


def set_generator_states(states: Mapping[str, Any]) -> None:
    """Put the global generators back; call this last, building objects draws from them."""
    torch.set_rng_state(states["torch"])
    if states["cuda"] and torch.cuda.device_count() == len(states["cuda"]):
        torch.cuda.set_rng_state_all(states["cuda"])
    keys, position, has_gauss, cached = states["numpy"]
    np.random.set_state(("MT19937", keys, position, has_gauss, cached))
    version, words, gauss = states["python"]
    random.setstate((version, tuple(words), gauss))


def _plain(value: Any) -> Any:
    """NumPy arrays and scalars as tensors and Python numbers: what `weights_only=True` can load."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return {_NUMPY: torch.from_numpy(np.array(value))}
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def _restored(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {_NUMPY}:
            return value[_NUMPY].numpy()
        return {key: _restored(item) for key, item in value.items()}
    return [_restored(item) for item in value] if isinstance(value, list) else value
