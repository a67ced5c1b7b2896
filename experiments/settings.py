"""The keys of `configs/train.yaml` that are not groups, typed; the YAML holds their defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal

from omegaconf import DictConfig, OmegaConf

from .errors import UsageError
from .schema import check_against

MAX_SEED = 2**63 - 1


@dataclass(frozen=True)
class EvaluationSettings:
    """Fresh lifetimes lived with frozen outer parameters after training; none when `num_lifetimes`
    is 0. `every` so many steps some of them are lived beside the training as well (0: never);
    `stream` are the words that make the held-out stream from the run's own. Under `conditions` the
    trained agent is evaluated at the end, with a page of it (none: no page).
    """

    num_lifetimes: int
    steps: int
    every: int = 0
    stream: Sequence[str] = ()
    conditions: Sequence[str] = ()


@dataclass(frozen=True)
class AgentSettings:
    """The keys of `configs/agent/*.yaml`: the stack of memories an agent is built on."""

    width: int
    depth: int
    mlp_ratio: float
    recompute_every: int | None
    compile: bool = False  # runs of earlier versions do not have this key


@dataclass(frozen=True)
class Settings:
    """What a run is told beside its groups; the comments in `train.yaml` explain each key."""

    seed: int | None
    device: Literal["auto", "cpu", "cuda"]
    num_steps: int | None
    num_lifetimes: int
    slice_steps: int
    memory_reset: Literal["lifetime", "task", "episode", "never"]
    credit: Literal["lifetime", "task", "episode", "never"]
    folder: str | None
    resume: str | None
    checkpoint_every: int
    keep_checkpoints: int
    log_every: int
    diagnostics_every: int
    num_threads: int
    debug: bool
    quiet: bool
    evaluation: EvaluationSettings
    plasticity_every: int = 0  # runs of earlier versions do not have this key and those below
    scale: str = "full"
    estimate: bool = False
    stop_step: int | None = None

    @classmethod
    def from_config(cls, config: DictConfig) -> Settings:
        """Read the root keys; raises UsageError naming a key whose type or range is wrong."""
        names = {field.name for field in fields(cls)}
        needed = {field.name for field in fields(cls) if field.default is MISSING}
        missing = needed - {str(name) for name in config}
        if missing:
            raise UsageError(f"{', '.join(sorted(missing))}: missing from the configuration")
        values = {str(name): config[name] for name in config if name in names}
        nested = values.pop("evaluation")
        if not isinstance(nested, DictConfig):
            raise UsageError(f"evaluation: expected keys num_lifetimes and steps, got {nested!r}")
        evaluation: Any = OmegaConf.to_container(nested, resolve=True)
        check_against(EvaluationSettings, evaluation, "evaluation")
        check_against(cls, values, "")
        agent = config.agent
        check_against(AgentSettings, {str(name): agent[name] for name in agent}, "agent")
        for name in ("width", "depth"):
            if agent[name] < 1:
                raise UsageError(f"agent.{name}: expected at least 1, got {agent[name]}")
        every = agent.get("recompute_every")
        if every is not None and every < 1:
            raise UsageError(
                f"agent.recompute_every: expected at least 1 token or null, got {every}"
            )
        settings = cls(**values, evaluation=EvaluationSettings(**evaluation))
        settings._check_ranges()
        return settings

    def _check_ranges(self) -> None:
        if self.seed is not None and not 0 <= self.seed <= MAX_SEED:
            raise UsageError(f"seed: expected a whole number from 0 to 2**63 - 1, got {self.seed}")
        for name in (
            "num_lifetimes",
            "slice_steps",
            "checkpoint_every",
            "keep_checkpoints",
            "log_every",
            "num_threads",
        ):
            if getattr(self, name) < 1:
                raise UsageError(f"{name}: expected at least 1, got {getattr(self, name)}")
        for name in ("diagnostics_every", "plasticity_every"):
            if getattr(self, name) < 0:
                raise UsageError(
                    f"{name}: expected 0 (off) or more updates, got {getattr(self, name)}"
                )
        if self.num_steps is not None and self.num_steps < 1:
            raise UsageError(
                f"num_steps: expected at least 1, or null for an endless run, got {self.num_steps}"
            )
        if self.stop_step is not None and self.stop_step < 1:
            raise UsageError(f"stop_step: expected at least 1, or null, got {self.stop_step}")
        if self.evaluation.num_lifetimes < 0 or self.evaluation.steps < 1:
            raise UsageError(
                "evaluation: expected num_lifetimes >= 0 and steps >= 1, "
                f"got {self.evaluation.num_lifetimes} and {self.evaluation.steps}"
            )
        if self.evaluation.every < 0:
            raise UsageError(
                f"evaluation.every: expected 0 (never) or more steps, got {self.evaluation.every}"
            )
        if self.evaluation.every and not self.evaluation.num_lifetimes:
            raise UsageError("evaluation.every: expected evaluation.num_lifetimes >= 1 beside it")
        if self.evaluation.conditions and not self.evaluation.num_lifetimes:
            raise UsageError(
                "evaluation.conditions: expected evaluation.num_lifetimes >= 1 beside it"
            )

    @property
    def steps_per_update(self) -> int:
        """Environment steps between two updates, over all lifetimes."""
        return self.num_lifetimes * self.slice_steps
