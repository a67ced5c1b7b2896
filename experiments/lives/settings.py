"""The keys of `configs/live.yaml`, typed; the YAML holds their defaults and what they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from .. import catalog, keys
from ..config import Override
from ..errors import UsageError
from ..schema import check_against
from ..settings import MAX_SEED

ROOT = "live"
# What a life that goes on may be told anew; all else belongs to what it already lived.
FREE = ("num_steps", "checkpoint_every", "keep_checkpoints", "quiet", "resume")


@dataclass(frozen=True)
class GuardSettings:
    """When learning is taken back."""

    by: Literal["replay", "recent", "none"]
    slices: int
    windows: int
    tolerance: float


@dataclass(frozen=True)
class LiveSettings:
    """What a life is told; the comments in `live.yaml` explain each key."""

    num_lifetimes: int
    num_steps: int | None
    slice_steps: int | None
    learning_rate: float
    frozen_twin: bool
    seed: int | None
    folder: str | None
    resume: str | None
    checkpoint_every: int
    keep_checkpoints: int
    table_rows: int
    quiet: bool
    guard: GuardSettings

    @classmethod
    def from_config(cls, config: DictConfig) -> LiveSettings:
        """Read the keys; raises UsageError naming one whose type or range is wrong."""
        values: Any = OmegaConf.to_container(config, resolve=True)
        guard = values.pop("guard")
        if not isinstance(guard, dict):
            raise UsageError(f"guard: expected keys by, slices, windows, tolerance, got {guard!r}")
        check_against(GuardSettings, guard, "guard")
        check_against(cls, values, "")
        settings = cls(**values, guard=GuardSettings(**guard))
        settings._check_ranges()
        return settings

    def _check_ranges(self) -> None:
        counts: Mapping[str, int | None] = {
            "num_lifetimes": self.num_lifetimes,
            "num_steps": self.num_steps,
            "slice_steps": self.slice_steps,
            "checkpoint_every": self.checkpoint_every,
            "keep_checkpoints": self.keep_checkpoints,
            "table_rows": self.table_rows,
            "guard.slices": self.guard.slices,
            "guard.windows": self.guard.windows,
        }
        for name, count in counts.items():
            if count is not None and count < 1:
                raise UsageError(f"{name}: expected at least 1, got {count}")
        for name, number in (
            ("learning_rate", self.learning_rate),
            ("guard.tolerance", self.guard.tolerance),
        ):
            if not number >= 0.0:
                raise UsageError(f"{name}: expected a number from 0 on, got {number}")
        if self.seed is not None and not 0 <= self.seed <= MAX_SEED:
            raise UsageError(f"seed: expected a whole number from 0 to 2**63 - 1, got {self.seed}")


def default_config() -> DictConfig:
    """The shipped `live.yaml`."""
    config = OmegaConf.create(catalog.text_of(None, ROOT))
    assert isinstance(config, DictConfig)
    return config


def with_words(config: DictConfig, overrides: Sequence[Override]) -> DictConfig:
    """A copy with keys set; raises UsageError for one that does not exist or does not fit."""
    config = config.copy()
    for override in overrides:
        fault = keys.fault(config, override.key)
        if fault:
            raise UsageError(fault)
        try:
            OmegaConf.update(config, override.key, override.value)
        except OmegaConfBaseException as error:
            raise UsageError(f"{override.text!r}: {str(error).splitlines()[0]}") from error
    LiveSettings.from_config(config)
    return config


def refuse_changes(old: DictConfig, new: DictConfig) -> None:
    """Raise UsageError naming the keys that a life which goes on may not change."""
    before, after = (OmegaConf.to_container(one, resolve=True) for one in (old, new))
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    changed = [str(key) for key in after if key not in FREE and after[key] != before.get(key)]
    if changed:
        raise UsageError(f"{', '.join(changed)}: a life that goes on changes {', '.join(FREE[:4])}")
