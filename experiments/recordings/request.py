"""What `sojourn record` is asked for: which agents, which lifetime, how much, and where to."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from .. import checkpoint, resume
from ..build import derived_seed
from ..errors import RunError, UsageError, hint
from ..evaluations.frozen_lives import EVALUATION_STREAM
from ..option_values import truth, whole
from .movie import NEEDS, can_write

OPTIONS = ("lifetime", "steps", "checkpoint", "seed", "greedy", "fps", "output")
GIF, MP4 = ".gif", ".mp4"
FIRST, LAST, UNTRAINED = "first", "last", "untrained"


@dataclass(frozen=True)
class Take:
    """One agent: its name in the picture and its checkpoint's content (None: untrained)."""

    title: str
    content: Mapping[str, Any] | None


@dataclass(frozen=True)
class Request:
    """A checked request; the agents of all `takes` live the same lifetime with the same luck."""

    config: DictConfig
    takes: Sequence[Take]
    lifetime: int
    steps: int
    seed: int
    greedy: bool
    frames_per_second: int
    output: Path


def request(words: Sequence[str]) -> Request:
    """Read the words of the verb; raises UsageError for a wrong one, RunError for a broken run."""
    options, runs = _sorted(words)
    if len(runs) != 1:
        raise UsageError(
            "record: expected one run: a run folder, a checkpoint file, latest or best"
        )
    found = resume.find(runs[0], "")
    config = resume.saved_config(found.content)
    names = options.get("checkpoint", LAST).split(",")
    takes = [_take(name, found) for name in names]
    lifetime = whole("lifetime", options.get("lifetime", 0), 0)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    named = found.folder / "recordings" / f"lifetime{lifetime}__{stamp}.gif"
    output = Path(options.get("output", named))
    if output.suffix.lower() not in (GIF, MP4):
        raise UsageError(f"output={output}: expected a file whose name ends in .gif or .mp4")
    if output.suffix.lower() == MP4 and not can_write():
        raise UsageError(f"output={output}: {NEEDS}")
    if output.exists():
        raise UsageError(f"output={output}: exists already; choose another")
    return Request(
        config,
        takes,
        lifetime,
        whole("steps", options.get("steps", 200), 1),
        whole("seed", options.get("seed", derived_seed(config.seed, EVALUATION_STREAM)), 0),
        truth("greedy", options.get("greedy", "false")),
        whole("fps", options.get("fps", 8), 1),
        output,
    )


def _take(name: str, found: resume.Resumption) -> Take:
    """`first`, `last`, `untrained` or a checkpoint file."""
    folder = found.folder / "checkpoints"
    if name == UNTRAINED:
        return Take("untrained", None)
    if name == LAST:
        return _trained(found.content)
    if name == FIRST:
        kept = checkpoint.newest_first(folder)
        if len(kept) < 2:
            raise RunError(
                f"{folder}: only one checkpoint is kept; give checkpoint=untrained,last, or train "
                "with keep_checkpoints=1000"
            )
        return _trained(checkpoint.load(kept[-1]))
    if Path(name).is_file():
        return _trained(checkpoint.load(Path(name)))
    if (folder / name).is_file():
        return _trained(checkpoint.load(folder / name))
    choices = [FIRST, LAST, UNTRAINED, *(path.name for path in checkpoint.newest_first(folder))]
    raise UsageError(f"checkpoint={name}: no such checkpoint; {hint(name, choices)}")


def _trained(content: Mapping[str, Any]) -> Take:
    return Take(f"step {int(content['step']):,}", content)


def _sorted(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    options: dict[str, str] = {}
    runs: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or "/" in name or Path(word).exists():
            runs.append(word)
        elif name in OPTIONS:
            options[name] = value
        else:
            raise UsageError(f"{name}: no such option of record; {hint(name, OPTIONS)}")
    return options, runs
