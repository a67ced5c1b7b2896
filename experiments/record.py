"""The verb `record`: a lifetime of a trained agent as a moving picture, without a screen."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from sojourn.agents import SharedLuck

from .build import build_stream, derived_seed
from .errors import EXIT_OK, RunError
from .evaluations.frozen_lives import EVALUATION_LUCK
from .loading import agent_of
from .progress import plain_console
from .recordings.camera import need_no_screen
from .recordings.film import Plan, film
from .recordings.frames import frames, save_gif
from .recordings.movie import save_mp4
from .recordings.request import MP4, request
from .settings import Settings


def record(words: Sequence[str]) -> int:
    """Run `sojourn record`; returns the exit code. Nothing of the run is changed."""
    wanted = request(words)
    need_no_screen()
    torch.set_num_threads(int(wanted.config.num_threads))
    stream = build_stream(wanted.config, wanted.seed)
    plan = Plan(
        stream,
        wanted.lifetime,
        wanted.steps,
        Settings.from_config(wanted.config).memory_reset,
        SharedLuck(derived_seed(wanted.seed, EVALUATION_LUCK)),
        wanted.greedy,
    )
    memory = wanted.config.choices.memory
    titles = [f"{memory}, {take.title}" for take in wanted.takes]
    lives = [film(agent_of(wanted.config, take.content), plan) for take in wanted.takes]
    try:
        wanted.output.parent.mkdir(parents=True, exist_ok=True)
        save = save_mp4 if wanted.output.suffix.lower() == MP4 else save_gif
        count = save(wanted.output, frames(titles, lives), wanted.frames_per_second)
    except OSError as error:
        raise RunError(f"{wanted.output}: cannot be written ({error})") from error
    size = wanted.output.stat().st_size / 1e6
    said = f"{count} frames of lifetime {wanted.lifetime} (root seed {wanted.seed}), {size:.1f} MB"
    plain_console().print(f"{said}: {wanted.output}", markup=False, highlight=False)
    return EXIT_OK
