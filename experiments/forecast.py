"""`estimate=true`: what a run would take, from a few updates of it in a folder that is thrown away.

time   = updates x seconds of an update + steps of evaluation x seconds of acting a step
memory = the largest resident set of a process that lived those updates
disk   = checkpoints kept x bytes of one + updates x bytes that an update added to the tables
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from omegaconf import OmegaConf

from sojourn.memory import state_bytes

from . import checkpoint
from .build import build
from .evaluations.beside import FEW, RESETS
from .folder import RunFolder
from .pace import Duration, Pace
from .progress import Quiet
from .recorder import Recorder
from .request import Request, prepare
from .run import Run, last_step
from .settings import Settings

MOST_SECONDS = 60.0  # slow updates: two of them are enough then
ENDLESS_STEPS = 1_000_000  # what an endless run is told for
MEGABYTE = 1e6


@dataclass(frozen=True)
class Forecast:
    """Of a whole run; `num_measured` updates were timed. Bytes; `checkpoint_bytes` of one.

    `grew`: the memory held more after the last update measured than after the first, so that later
    ones take longer.
    """

    num_updates: int
    num_measured: int
    duration: Duration
    memory_bytes: int
    checkpoint_bytes: int
    disk_bytes: int
    grew: bool = False

    @property
    def time(self) -> str:
        """The duration in words, with what it is where a memory grows."""
        return f"at least {self.duration}" if self.grew else f"about {self.duration}"

    def lines(self) -> list[str]:
        """What a person reads before a launch."""
        return [
            f"time {self.time}: {self.num_updates:,} updates at the speed of the "
            f"{self.num_measured} measured here; another load of the machine changes it"
            + (", and the memory grows within a life" if self.grew else ""),
            f"memory about {self.memory_bytes / MEGABYTE:,.0f} MB, workers apart",
            f"disk about {self.disk_bytes / MEGABYTE:,.1f} MB; a checkpoint takes "
            f"{self.checkpoint_bytes / MEGABYTE:,.1f} MB",
        ]


def forecast(words: Sequence[str]) -> Forecast:
    """Live a few updates of `sojourn train WORDS`; nothing is left of them.

    Call it in a process of its own: memory is that of the whole process.
    """
    request = prepare([word for word in words if not word.startswith(("folder=", "resume="))])
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder.create(Path(place) / "run")
        try:
            return _measure(request, folder)
        finally:
            folder.close()


def _measure(request: Request, folder: RunFolder) -> Forecast:
    settings = replace(request.settings, log_every=1)
    parts = build(request.config, settings)
    recorder = Recorder(folder, Quiet(), settings.log_every)
    config = OmegaConf.to_yaml(request.config)
    run = Run(parts.agent, parts.rollout, parts.trainer, recorder, folder, settings, config)
    pace, sizes, acting, states = Pace(), list[int](), list[float](), list[int]()
    begin = time.perf_counter()
    try:
        while not pace.measured:
            update = run.advance()
            pace.add(update.seconds)
            acting.append(update.collect_seconds)
            states.append(state_bytes(parts.rollout.state))
            sizes.append(_table_bytes(folder.path, request.settings.log_every))
            if pace.seconds and time.perf_counter() - begin > MOST_SECONDS:
                break
        saved = checkpoint.save(folder.checkpoints, run.step, run.state_dict(), keep=1)
        checkpoint_bytes = saved.stat().st_size
    finally:
        recorder.close()
        parts.rollout.crowd.close()
    updates = num_updates(request.settings)
    tables = updates * (sizes[-1] - sizes[0]) // max(1, len(sizes) - 1)
    kept = min(request.settings.keep_checkpoints + 1, 1 + updates)
    per_step = min(acting) / settings.steps_per_update
    evaluation = per_step * evaluated_steps(request.settings)
    return Forecast(
        updates,
        len(pace.seconds),
        pace.per_update() * updates + Duration(evaluation, evaluation, evaluation),
        _peak_bytes(parts.agent.device),
        checkpoint_bytes,
        tables + kept * checkpoint_bytes,
        grew=states[-1] > states[0],
    )


def num_updates(settings: Settings) -> int:
    """Updates of a run; those of a million steps where it is endless."""
    return -(-(last_step(settings) or ENDLESS_STEPS) // settings.steps_per_update)


def evaluated_steps(settings: Settings) -> int:
    """Steps that evaluations live, beside the training and after it, at most."""
    wanted = settings.evaluation
    steps = wanted.num_lifetimes * wanted.steps
    if wanted.every:
        times = num_updates(settings) * settings.steps_per_update // wanted.every
        steps += times * len(RESETS) * min(FEW, wanted.num_lifetimes) * wanted.steps
    return steps


def _table_bytes(folder: Path, log_every: int) -> int:
    """Bytes of what grows with every update; here every update is logged, later every n-th."""
    tables = sum((folder / name).stat().st_size for name in ("metrics.csv", "episodes.csv"))
    logs = sum(p.stat().st_size for p in folder.iterdir() if p.name.startswith(("events.", "log.")))
    return tables + logs // log_every


def _peak_bytes(device: torch.device) -> int:
    """The largest resident set so far, and what the GPU had to hold."""
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return peak + (torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0)
