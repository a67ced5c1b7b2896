"""What `sojourn live` is asked for: whose life, on which stream, or which life goes on."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from .. import resume
from ..build import derived_seed
from ..config import Override, parse, set_values
from ..errors import RunError, UsageError
from ..evaluations.request import held_out_config
from ..folder import RunFolder, latest_life
from .settings import LiveSettings, default_config, refuse_changes, with_words

LIFE = "life"  # marks the checkpoints of a life
LIVE_STREAM, LIVE_LUCK = 31, 32  # derive the root seeds of a life from the run's own


@dataclass(frozen=True)
class LiveRequest:
    """A checked request: `config` is that of the run, `trained`, with the life's stream and
    trainer; `content` the checkpoint (of `file`, in the folder `origin`) that the outer parameters,
    or the whole life that goes on, come from.
    """

    words: Sequence[str]
    trained: DictConfig
    config: DictConfig
    live: DictConfig
    settings: LiveSettings
    content: Mapping[str, Any]
    file: Path
    origin: Path
    goes_on: bool
    same_trainer: bool

    @property
    def seed(self) -> int:
        """Root seed of the life's stream."""
        given = self.settings.seed
        return derived_seed(self.config.seed, LIVE_STREAM) if given is None else given

    @property
    def slice_steps(self) -> int:
        """Steps of every lifetime between two updates."""
        return self.settings.slice_steps or int(self.config.slice_steps)

    @property
    def window_steps(self) -> int:
        """Steps of every lifetime in one window."""
        return self.slice_steps * self.settings.guard.slices

    def open_folder(self) -> RunFolder:
        """The life's folder, locked; raises UsageError when it exists or cannot be made."""
        try:
            if self.goes_on:
                return RunFolder(self.origin)
            given = self.settings.folder
            fresh = self.origin / "lives" / time.strftime("%Y%m%d-%H%M%S")
            return RunFolder.create(fresh if given is None else Path(given))
        except OSError as error:
            raise UsageError(f"folder: cannot be made here ({error})") from error


def prepare(words: Sequence[str]) -> LiveRequest:
    """Read the words of the verb; raises UsageError for a wrong one, RunError for a broken run."""
    runs = [word for word in words if "=" not in word or Path(word).exists()]
    overrides = parse([word for word in words if word not in runs])
    where = next((override.value for override in overrides if override.key == "resume"), None)
    if where is not None:
        if runs:
            raise UsageError("live: give a run to begin a life of, or resume=LIFE, not both")
        return _going_on(words, where, overrides)
    if len(runs) != 1:
        raise UsageError("live: expected one run: a run folder, a checkpoint file, latest or best")
    return _beginning(words, runs[0], overrides)


def _beginning(words: Sequence[str], run: str, overrides: Sequence[Override]) -> LiveRequest:
    found = resume.find(run, "")
    saved = resume.saved_config(found.content)
    of_stream, of_trainer, own = _sorted(overrides)
    config, _ = resume.merge(saved, of_trainer)
    live = with_words(default_config(), own)
    settings = LiveSettings.from_config(live)
    rate = Override("trainer.learning_rate", settings.learning_rate, "learning_rate", False)
    config = set_values(held_out_config(config, [word.text for word in of_stream]), [rate])
    if not any(word.key == "stream.lifetime_segments" for word in of_stream):
        OmegaConf.update(config, "stream.lifetime_segments", None, force_add=True)
    if settings.seed == saved.seed:
        raise UsageError(f"seed={saved.seed}: the run was trained on this root seed; give another")
    return LiveRequest(
        words,
        saved,
        config,
        live,
        settings,
        found.content,
        found.file,
        found.folder,
        goes_on=False,
        same_trainer=saved.trainer._target_ == config.trainer._target_,
    )


def _going_on(words: Sequence[str], where: str, overrides: Sequence[Override]) -> LiveRequest:
    found = resume.find(where, newest=latest_life)
    if found.content.get("kind") != LIFE:
        raise UsageError(f"resume={where}: not a life; begin one with: sojourn live {where}")
    of_stream, of_trainer, own = _sorted(overrides)
    if of_stream or of_trainer:
        raise UsageError(f"{(of_stream + of_trainer)[0].key}: a life that goes on keeps it")
    saved = OmegaConf.create(found.content["live"])
    if not isinstance(saved, DictConfig):
        raise RunError(f"{found.file}: its settings cannot be read")
    live = with_words(saved, own)
    refuse_changes(saved, live)
    config = resume.saved_config(found.content)
    settings = LiveSettings.from_config(live)
    request = LiveRequest(
        words,
        config,
        config,
        live,
        settings,
        found.content,
        found.file,
        found.folder,
        goes_on=True,
        same_trainer=True,
    )
    if any(word.key == "num_steps" for word in own):
        window = request.window_steps * settings.num_lifetimes
        resume.check_end("num_steps", settings.num_steps, int(found.content["step"]), window, LIFE)
    return request


def _sorted(
    overrides: Sequence[Override],
) -> tuple[list[Override], list[Override], list[Override]]:
    """Words about the stream, about the trainer, and the life's own."""
    groups: dict[str, list[Override]] = {"stream": [], "trainer": []}
    own: list[Override] = []
    for override in overrides:
        groups.get(override.key.split(".")[0], own).append(override)
    return groups["stream"], groups["trainer"], own
