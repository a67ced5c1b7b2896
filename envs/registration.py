"""The lifetimes of a stream behind `gymnasium.make`: importing `sojourn.envs` registers them."""

from __future__ import annotations

from typing import Any

import gymnasium

from .lifetime import Lifetime
from .stream import Stream
from .task_specs import task_stream

ID = "sojourn/Lifetime-v0"


def make_lifetime(stream: Any, index: int = 0, seed: int = 0) -> Lifetime:
    """The lifetimes of `stream` from number `index` on: what `gymnasium.make` calls for `ID`.

    In place of a `Stream` anything that `task_stream` takes: an id of Gymnasium or a list of tasks,
    played under the root `seed`. Raises ValueError for tasks that cannot be played.
    """
    if not isinstance(stream, Stream):
        stream = task_stream(stream, seed)
    return Lifetime(stream, index)


if ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point=f"{__name__}:{make_lifetime.__name__}")
