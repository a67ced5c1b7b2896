"""What `sojourn evaluate` is asked for: which agent, on which held-out stream, under what."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from omegaconf import DictConfig

from sojourn.envs import Interface, Stream

from .. import resume
from ..build import build_stream, derived_seed
from ..catalog import check_option
from ..config import group_of, parse, set_values
from ..errors import UsageError, hint
from ..option_values import truth, whole
from ..settings import Settings
from .conditions import checked_conditions
from .frozen_lives import EVALUATION_STREAM, Budget
from .probe import Writes

DEFAULT_LIFETIMES = 32
MOST_STEPS = 100_000  # of a lifetime that is to live a number of segments
OPTIONS = (
    "num_lifetimes",
    "steps",
    "segments",
    "conditions",
    "greedy",
    "seed",
    "checkpoint",
    "checkpoints",
    "output",
    "probe_lifetimes",
    "probe_episodes",
    "probe_writes",
)


@dataclass(frozen=True)
class ProbePlan:
    """How much the R-matrix of memories is worth: 0 lifetimes leave it out."""

    num_lifetimes: int
    num_episodes: int
    writes: Writes


@dataclass(frozen=True)
class Evaluation:
    """A checked request. `config` is the run's with the stream that is evaluated on; no condition
    stands for all that the stream has; `checkpoints` is how many of the run's the matrix of outer
    parameters has (None: all, 0: no matrix).
    """

    folder: Path
    step: int
    content: Mapping[str, Any]
    trained: DictConfig
    config: DictConfig
    seed: int
    budget: Budget
    conditions: Sequence[str]
    greedy: bool
    probes: ProbePlan
    checkpoints: int | None
    output: Path

    def streams(self) -> tuple[Stream, Stream]:
        """The stream the agent was trained on, and the held-out one."""
        trained = build_stream(self.trained, self.trained.seed)
        return trained, held_out_stream(trained, self.config, self.seed)


def request(words: Sequence[str]) -> Evaluation:
    """Read the words of the verb; raises UsageError for a wrong one, RunError for a broken run."""
    options, stream_words, runs = _sorted(words)
    if len(runs) != 1:
        raise UsageError(
            "evaluate: expected one run: a run folder, a checkpoint file, latest or best"
        )
    where = options.get("checkpoint") or runs[0]
    found = resume.find(where, "checkpoint=" if "checkpoint" in options else "")
    trained = resume.saved_config(found.content)
    settings = Settings.from_config(trained)
    config = held_out_config(trained, stream_words or settings.evaluation.stream)
    seed = whole("seed", options.get("seed", derived_seed(trained.seed, EVALUATION_STREAM)), 0)
    if seed == trained.seed:
        raise UsageError(f"seed={seed}: the run was trained on this root seed; choose another")
    segments = whole("segments", options.get("segments", 0), 0)
    lifetimes = settings.evaluation.num_lifetimes or DEFAULT_LIFETIMES
    most = MOST_STEPS if segments else settings.evaluation.steps
    steps = whole("steps", options.get("steps", most), 1)
    return Evaluation(
        folder=found.folder,
        step=int(found.content["step"]),
        content=found.content,
        trained=trained,
        config=config,
        seed=seed,
        budget=Budget(
            whole("num_lifetimes", options.get("num_lifetimes", lifetimes), 1),
            steps,
            segments or None,
        ),
        conditions=_conditions(options),
        greedy=truth("greedy", options.get("greedy", "false")),
        probes=ProbePlan(
            whole("probe_lifetimes", options.get("probe_lifetimes", 8), 0),
            whole("probe_episodes", options.get("probe_episodes", 4), 1),
            _writes(options),
        ),
        checkpoints=_checkpoints(options),
        output=Path(options.get("output") or _fresh(found.folder)),
    )


def held_out_config(trained: DictConfig, words: Sequence[str]) -> DictConfig:
    """A run's configuration with its stream changed by `stream=NAME` and `stream.KEY=VALUE`."""
    overrides = parse(words)
    for override in overrides:
        if override.key != "stream" and not override.key.startswith("stream."):
            raise UsageError(f"{override.key}: an evaluation changes the stream only")
    config = trained.copy()
    for override in overrides:
        if override.is_group:
            check_option("stream", override.value)
            config.stream = group_of([override], "stream")
            config.choices.stream = override.value
    return set_values(config, [override for override in overrides if not override.is_group])


def held_out_stream(trained: Stream, config: DictConfig, seed: int) -> Stream:
    """The stream of `config`; raises UsageError where an agent of `trained` cannot live in it."""
    stream = build_stream(config, seed)
    difference = interface_difference(trained.interface, stream.interface)
    if difference:
        raise UsageError(
            f"stream={config.choices.stream}: the agent cannot live there; {difference}"
        )
    return stream


def interface_difference(trained: Interface, offered: Interface) -> str:
    """What a stream offers that an agent does not know; empty where it fits."""
    for name in sorted({*trained.channels, *offered.channels}):
        one, other = trained.channels.get(name), offered.channels.get(name)
        if one != other:
            return f"channel {name!r}: {_channel(one)} in the run, {_channel(other)} here"
    for name in ("choices", "num_reals"):
        one, other = getattr(trained, name), getattr(offered, name)
        if one != other:
            return f"actions ({name}): {one} in the run, {other} here"
    return ""


def _channel(channel: Any) -> str:
    return "absent" if channel is None else f"{channel.kind} {list(channel.shape)}"


def _sorted(words: Sequence[str]) -> tuple[dict[str, str], list[str], list[str]]:
    """Options, words about the stream, and the rest: runs."""
    options: dict[str, str] = {}
    stream: list[str] = []
    runs: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or "/" in name or Path(word).exists():
            runs.append(word)
        elif name == "stream" or name.startswith("stream."):
            stream.append(word)
        elif name in OPTIONS:
            options[name] = value
        else:
            known = (*OPTIONS, "stream")
            raise UsageError(f"{name}: no such option of evaluate; {hint(name, known)}")
    return options, stream, runs


def _conditions(options: Mapping[str, str]) -> Sequence[str]:
    asked = options.get("conditions")
    return () if asked is None else checked_conditions(asked.split(","))


def _checkpoints(options: Mapping[str, str]) -> int | None:
    if options.get("checkpoints") == "all":
        return None
    return whole("checkpoints", options.get("checkpoints", 0), 0)


def _writes(options: Mapping[str, str]) -> Writes:
    choices: dict[str, Writes] = {name: name for name in get_args(Writes)}
    text = options.get("probe_writes", "episode")
    if text not in choices:
        raise UsageError(f"probe_writes={text}: expected {' or '.join(choices)}")
    return choices[text]


def _fresh(folder: Path) -> Path:
    return folder / "evaluations" / time.strftime("%Y%m%d-%H%M%S")
