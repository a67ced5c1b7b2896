"""Continuing a run: which checkpoint, under which configuration, and what may have changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from . import catalog, checkpoint
from .config import Override, group_of, set_values
from .errors import RunError, UsageError
from .folder import BEST, LATEST, latest_run
from .scale import FULL, GROUP

# What a saved life depends on: a checkpoint does not fit another memory, stream or number of rows.
FIXED = ("memory", "stream", "agent", "seed", "num_lifetimes", "memory_reset")
# Where a life is played makes no difference to it.
FREE = "stream.workers"
# What belongs to this process and not to the run.
OWN = ("folder", "resume")


@dataclass(frozen=True)
class Resumption:
    """A checkpoint to go on from: its run folder, its content, and remarks for the user."""

    folder: Path
    file: Path
    content: dict[str, Any]
    remarks: list[str]


def find(where: str, key: str = "resume=", newest: Callable[[], Path] = latest_run) -> Resumption:
    """The checkpoint that `resume=` names: `latest`, `best`, a run folder or a checkpoint file.

    In a folder the newest readable one is taken; `best` is the best one of the `newest` run. Raises
    UsageError (which calls the path by `key`) for a path that is none of them, RunError when
    nothing can be read.
    """
    path = newest() if where in (LATEST, BEST) else Path(where)
    if where == BEST:
        path = _best_of(path, key)
    if path.is_file():
        folder = path.resolve().parent.parent
        file = path.resolve()
        if file.parent != folder / "checkpoints" or not (folder / "config.yaml").is_file():
            raise UsageError(f"{key}{where}: expected a checkpoint inside a run folder")
        checkpoint.step_of(file)
        return Resumption(_shown(folder), file, checkpoint.load(file), [])
    if not path.is_dir():
        raise UsageError(
            f"{key}{where}: no such folder or file; give latest, best, a folder or a checkpoint. "
            f"Quote a path with spaces or # for the shell: '{key}a b'"
        )
    if not (path / "checkpoints").is_dir():
        raise UsageError(f"{key}{where}: not a run folder (it has no checkpoints)")
    file, content, complaints = checkpoint.load_newest(path / "checkpoints")
    remarks = [*complaints, f"resuming from {file}"] if complaints else []
    return Resumption(path, file, content, remarks)


def _best_of(run: Path, key: str) -> Path:
    path = run / "checkpoints" / BEST
    if not path.is_file():
        raise UsageError(
            f"{key}{BEST}: {run} has no best checkpoint yet, the first is chosen after "
            f"checkpoint_every steps in which an episode ended; give {LATEST}"
        )
    return path


def merge(saved: DictConfig, overrides: Sequence[Override]) -> tuple[DictConfig, list[str]]:
    """The saved configuration under new overrides, and a line for every key that changed.

    Raises UsageError naming the keys that a checkpoint cannot follow.
    """
    chosen = [override for override in overrides if override.is_group]
    for override in overrides:
        if override.key == GROUP and override.value != saved.get(GROUP, FULL):
            raise UsageError(f"{override.text}: chosen when a run begins; give its keys themselves")
    config = saved.copy()
    for override in chosen:
        catalog.check_option(override.key, override.value)
        if saved.choices[override.key] == override.value:
            continue
        if override.key in FIXED or override.key == "experiment":
            raise UsageError(
                f"{override.key}={override.value}: the run was made with "
                f"{override.key}={saved.choices[override.key]}; start a new run for another"
            )
        config[override.key] = group_of(chosen, override.key)
        config.choices[override.key] = override.value
    config = set_values(config, [override for override in overrides if not override.is_group])
    changes = difference(saved, config)
    refused = [change for change in changes if _is_fixed(change.split(":")[0])]
    if refused:
        raise UsageError(
            f"a resumed run keeps its {', '.join(FIXED)}; refused: {'; '.join(refused)}"
        )
    return config, changes


def check_end(key: str, end: int | None, step: int, at_once: int, what: str = "run") -> None:
    """Raise UsageError for an `end` given anew that was passed: it would be kept, nothing lived.

    The same end again is fine, though the last of the `at_once` steps may lie beyond it.
    """
    if end is not None and end <= step - at_once:
        told = f"the {what} has reached step {step:_}; give more than that"
        raise UsageError(f"{key}={end:_}: {told}")


def _is_fixed(key: str) -> bool:
    return key.split(".")[0] in FIXED and not f"{key}.".startswith(f"{FREE}.")


def difference(old: DictConfig, new: DictConfig) -> list[str]:
    """`key: old -> new` for every leaf that differs, apart from where the run lies."""
    before, after = flat(old), flat(new)
    names = [name for name in [*before, *(n for n in after if n not in before)] if name not in OWN]
    absent = "(none)"
    return [
        f"{name}: {before.get(name, absent)} -> {after.get(name, absent)}"
        for name in names
        if before.get(name, absent) != after.get(name, absent)
    ]


def flat(config: DictConfig) -> dict[str, Any]:
    """Dotted leaf key -> resolved value."""
    leaves: dict[str, Any] = {}

    def visit(value: Any, path: str) -> None:
        items: Any = None
        if isinstance(value, Mapping):
            items = value.items()
        elif isinstance(value, list):
            items = enumerate(value)
        if not items:
            leaves[path] = value
            return
        for name, item in items:
            visit(item, f"{path}.{name}" if path else str(name))

    visit(OmegaConf.to_container(config, resolve=True), "")
    return leaves


def saved_config(content: Mapping[str, Any]) -> DictConfig:
    """The configuration a checkpoint was written under."""
    config = OmegaConf.create(content["config"])
    if not isinstance(config, DictConfig):
        raise RunError("checkpoint: its configuration cannot be read")
    for name in config.choices.values():
        catalog.import_beside(name)
    return config


def drop_later(file: Path) -> list[Path]:
    """Remove the checkpoints after the one a run goes on from: their future is lived again.

    What a kill left half written is removed with them.
    """
    step = checkpoint.step_of(file)
    later = [p for p in checkpoint.newest_first(file.parent) if checkpoint.step_of(p) > step]
    for path in (*later, *file.parent.glob(".step_*")):
        path.unlink()
    if not (file.parent / BEST).exists():
        checkpoint.mark_best(file.parent, None)
    return later


def _shown(path: Path) -> Path:
    """Relative to the launch directory where it lies below it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
