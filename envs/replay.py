"""Segments of a life met again: a stream whose lifetimes each live one segment of another stream.

lifetime n of the replay plays segment k of lifetime b,   (b, k) = places[n mod len(places)]
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from .lengths import RandomLength
from .schedule import Assignment, Schedule
from .stream import Stream
from .task import Length


class Places(Schedule):
    """Lifetime n plays the task at one place of a stream, (lifetime, segment), for ever.

    A fixed instance is met again as it was; a task that draws new instances draws others here, so
    that nothing is learned from the luck that the life itself will have.
    """

    def __init__(self, stream: Stream, places: Sequence[tuple[int, int]]) -> None:
        super().__init__(stream.schedule.families, None)
        self._stream, self._places = stream, list(places)

    def assign(self, seed: int, lifetime: int, index: int) -> Assignment:
        """The task as it was met at the place of this lifetime."""
        del index
        found = self._stream.segment(*self._places[lifetime % len(self._places)])
        instance = found.seed
        if found.task.instance == "resampled":
            instance = int(np.random.SeedSequence([seed, instance]).generate_state(1)[0])
        return Assignment(found.task, instance, found.task_index)


def replay(
    stream: Stream,
    places: Sequence[tuple[int, int]],
    length: Length | RandomLength | None = None,
) -> Stream:
    """The same stream, each lifetime one segment: that of a place.

    It lasts as long as the stream says (a random length is drawn anew) or for `length`; a task with
    a length of its own keeps it.
    """
    again = copy.copy(stream)  # whatever else a stream is made of stays as it is
    again.schedule = Places(stream, places)
    again.length = stream.length if length is None else length
    again.lifetime_segments = 1
    return again
