"""What the simulator knows of the task in play and the agent does not: for privileged critics.

    k = (is a reference known, J* / gap, J0 / gap, share of the segment lived) + descriptor

J* and J0 are those of the running episode's instance where they are known, else those of the task;
gap is ceiling - floor of the task. The descriptor holds the hidden parameters of the task. All of k
stays what it is for an episode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .episodes import InstanceReturns
from .interface import Array, Interface
from .regret import episode_reference
from .rows import RowCounters
from .task import Reference, Segment

NUM_COMMON = 4


def knowledge_width(interface: Interface) -> int:
    """Entries of what is known of the tasks that share an interface."""
    return NUM_COMMON + interface.descriptor_width


def knowledge(
    interface: Interface,
    segments: Sequence[Segment],
    references: Sequence[Reference | None],
    returns: Sequence[InstanceReturns],
    counters: RowCounters,
) -> Array:
    """Float32 `[B, knowledge_width]`; zeros where nothing is known."""
    known = np.zeros((len(segments), knowledge_width(interface)), np.float32)
    rows = zip(segments, references, returns, strict=True)
    for row, (segment, reference, instance) in enumerate(rows):
        known[row, :3] = _returns(segment, reference, instance)
        known[row, 3] = _share_lived(segment, counters, row)
        descriptor = segment.task.descriptor()
        known[row, NUM_COMMON : NUM_COMMON + len(descriptor)] = descriptor
    return known


def _returns(
    segment: Segment, reference: Reference | None, instance: InstanceReturns
) -> tuple[float, float, float]:
    if reference is None:
        return 0.0, 0.0, 0.0
    optimal, floor = reference.ceiling, reference.floor
    if segment.task.unit == "return" and not math.isnan(instance.optimal):
        optimal, floor = episode_reference(reference, "return", 1, *instance[:2])
    gap = reference.ceiling - reference.floor
    return 1.0, optimal / gap, floor / gap


def _share_lived(segment: Segment, counters: RowCounters, row: int) -> float:
    """Of the segment, when the running episode began."""
    lived = counters.episode[row]
    if segment.length.unit == "steps":
        lived = counters.segment_step[row] - counters.episode_step[row]
    return float(lived / segment.length.amount)
