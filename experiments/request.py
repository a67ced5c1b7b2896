"""A checked request to train: what to run, what it goes on from, and in which folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from omegaconf import DictConfig

from . import resume
from .catalog import title
from .config import compose_config, parse
from .errors import UsageError
from .folder import RunFolder
from .resume import Resumption
from .settings import Settings


@dataclass(frozen=True)
class Request:
    """`words` as given; `changes` are the lines by which a resumed run's configuration differs."""

    words: Sequence[str]
    config: DictConfig
    settings: Settings
    resumption: Resumption | None = None
    changes: Sequence[str] = ()

    @property
    def start_step(self) -> int:
        """Environment step the run goes on from."""
        return int(self.resumption.content["step"]) if self.resumption else 0


def prepare(words: Sequence[str]) -> Request:
    """Compose and check all that needs no object; raises UsageError with nothing touched."""
    overrides = parse(words)
    where = next((override.value for override in overrides if override.key == "resume"), None)
    if where is None:
        config = compose_config(overrides)
        return Request(words, config, Settings.from_config(config))
    if any(override.key == "folder" for override in overrides):
        raise UsageError("folder: a resumed run goes on in its own folder; leave it out")
    found = resume.find(where)
    if found.content.get("kind") is not None:
        raise UsageError(f"resume={where}: a life; go on with: sojourn live resume={where}")
    wanted = [override for override in overrides if override.key != "resume"]
    config, changes = resume.merge(resume.saved_config(found.content), wanted)
    request = Request(words, config, Settings.from_config(config), found, changes)
    _check_end(request, [override.key for override in wanted])
    return request


def _check_end(request: Request, given: Sequence[str]) -> None:
    settings = request.settings
    for key, end in {"num_steps": settings.num_steps, "stop_step": settings.stop_step}.items():
        if key in given:
            resume.check_end(key, end, request.start_step, settings.steps_per_update)


def open_folder(request: Request) -> RunFolder:
    """The run's folder, locked: a new one, or the one it goes on in.

    Raises UsageError when it exists or cannot be made.
    """
    try:
        return _open_folder(request)
    except OSError as error:
        raise UsageError(f"folder: cannot be made here ({error})") from error


def _open_folder(request: Request) -> RunFolder:
    if request.resumption is not None:
        return RunFolder(request.resumption.folder)
    if request.settings.folder is not None:
        return RunFolder.create(Path(request.settings.folder))
    chosen = request.config.choices
    name = f"{title(chosen.memory)}__{title(chosen.stream)}__s{request.config.seed}"
    return RunFolder.create_named(title(chosen.experiment or "default"), name)
