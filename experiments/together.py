"""One run in the several processes that `torchrun` started: rank 0 writes, all of them live.

    torchrun --nproc-per-node 4 --no-python sojourn train ...

Each rank lives `num_lifetimes` / ranks lifetimes and all learn from all of them. Rank 0 is the run
as one process would be it; the others do the same steps and leave nothing.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import torch
from omegaconf import OmegaConf
from torch import distributed

from sojourn.agents import from_all_ranks, num_ranks

from .build import Parts
from .errors import EXIT_OK, UsageError
from .folder import RunFolder
from .processes import num_processes
from .progress import Quiet
from .recorder import Recorder
from .request import Request
from .run import Run
from .stopping import StopRequest

PATIENCE = timedelta(hours=4)  # rank 0 evaluates and writes while the others wait


@contextmanager
def joined() -> Iterator[None]:
    """The processes of one `torchrun` as ranks of a group; alone otherwise."""
    if num_processes() == 1:
        yield
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group(timeout=PATIENCE)
    try:
        yield
    finally:
        distributed.destroy_process_group()


def check(request: Request) -> None:
    """Raise UsageError for a run that these processes cannot share; waits for all of them."""
    ranks, lifetimes = num_ranks(), request.settings.num_lifetimes
    seeds = set(from_all_ranks(int(request.config.seed)))
    if len(seeds) > 1:
        raise UsageError("seed: expected a number under torchrun, every process drew its own")
    if lifetimes % ranks:
        fitting = ranks * max(1, round(lifetimes / ranks))
        raise UsageError(
            f"num_lifetimes: expected a multiple of the {ranks} processes, got {lifetimes}; "
            f"use num_lifetimes={fitting}"
        )


def check_parts(request: Request, parts: Parts) -> None:
    """Raise UsageError for what keeps something that no other process can share."""
    if num_ranks() == 1:
        return
    trainer, memory = request.config.choices.trainer, request.config.choices.memory
    strategy = getattr(parts.trainer, "strategy", None)
    if not parts.trainer.keeps_slices or getattr(strategy, "of_one_process", False):
        raise UsageError(
            f"trainer={trainer}: one process only; under torchrun use trainer=ppo or others of its "
            "kind"
        )
    if parts.agent.memory.grows:
        raise UsageError(
            f"memory={memory}: it grows with every token, one process only; "
            "use memory=sliding_window"
        )


def follow(request: Request, parts: Parts) -> int:
    """Be a rank that does not write: what it must write goes to a folder that is thrown away."""
    settings, found = request.settings, request.resumption
    with tempfile.TemporaryDirectory(prefix="sojourn-rank-") as place, StopRequest() as stop:
        folder = RunFolder(Path(place))
        recorder = Recorder(folder, Quiet(), settings.log_every)
        made = (parts.agent, parts.rollout, parts.trainer)
        run = Run(*made, recorder, folder, settings, OmegaConf.to_yaml(request.config))
        try:
            if found is not None:
                run.load_state_dict(found.content)
            run.live(stop)
        finally:
            recorder.close()
            folder.close()
            parts.rollout.crowd.close()
    return EXIT_OK
