"""Fresh lifetimes lived by a frozen copy of an agent, on a stream it was never trained on.

The live agent, its rollout and every random generator of the training run stay untouched.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

from sojourn.agents import Agent, Rollout
from sojourn.envs import Crowd, EpisodeRecord, Stream

from .settings import Settings

ROWS_AT_ONCE = 256
SLICE_STEPS = 100


def evaluate(
    agent: Agent, stream: Stream, settings: Settings, luck_seed: int
) -> Iterator[tuple[int, list[EpisodeRecord]]]:
    """Live `settings.evaluation.num_lifetimes` lifetimes for `steps` steps each.

    Every lifetime starts from the learned initial memory. Yields (steps lived over all lifetimes,
    episodes that ended or were running at the end) after every slice, so that the caller may stop
    in between. `stream` must have a root seed of its own.
    """
    frozen = copy.deepcopy(agent).eval()
    wanted, steps = settings.evaluation.num_lifetimes, settings.evaluation.steps
    done = 0
    for first in range(0, wanted, ROWS_AT_ONCE):
        rows = min(ROWS_AT_ONCE, wanted - first)
        crowd = Crowd(stream, rows, first_lifetime=first)
        rollout = Rollout(frozen, crowd, settings.memory_reset, seed=luck_seed + first)
        for lived in range(0, steps, SLICE_STEPS):
            length = min(SLICE_STEPS, steps - lived)
            _, episodes = rollout.collect(length)
            done += rows * length
            yield done, [e for e in episodes if e.lifetime < first + rows]
        yield done, [e for e in crowd.running_episodes() if e.lifetime < first + rows]
        crowd.close()
