"""Tasks of a family held out from training for good: by their hidden parameters, not by luck.

    u(task) = hash(parameters, salt) / 2^64,   held out where u < share, else for training

A task is on the same side under every root seed, so that a training stream never draws what is held
out and an evaluation stream draws nothing else. Families with few different tasks (six
permutations, two dozen goals) need it: another root seed alone draws the same ones again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal

import numpy as np

from .choices import check_choice
from .interface import Interface
from .simulator import Simulator
from .task import Family, Reference, Task

Part = Literal["train", "held_out"]
MOST_DRAWS = 1000


class Split(Family):
    """The tasks of `family` on one side of a split that `share` and `salt` fix.

    References stay those of the whole family; tasks that drift along paths cannot be split. Raises
    ValueError for an unknown part, a share that is not within 0 and 1 and, when drawing, for a side
    that has no task.
    """

    def __init__(self, family: Family, part: Part, share: float = 0.25, salt: int = 0) -> None:
        check_choice("part", part, Part)
        if not 0.0 < share < 1.0:
            raise ValueError(f"share: expected a number between 0 and 1, got {share}")
        self.name = family.name
        self.family, self.part, self.share, self.salt = family, part, share, salt

    @property
    def interface(self) -> Interface:
        """That of the family."""
        return self.family.interface

    def simulator_type(self) -> type[Simulator] | None:
        """That of the family."""
        return self.family.simulator_type()

    def draw(self, rng: np.random.Generator) -> Task:
        """The first task on this side among those that the family draws."""
        for _ in range(MOST_DRAWS):
            task = self.family.draw(rng)
            if self.part_of(task) == self.part:
                return task
        raise ValueError(
            f"{self.name}: no task for {self.part} among {MOST_DRAWS}; choose another share than "
            f"{self.share:g} or another salt than {self.salt}"
        )

    def part_of(self, task: Task) -> Part:
        """The side that a task is on."""
        place = int.from_bytes(task_key(task, self.salt), "big") / 2**64
        return "held_out" if place < self.share else "train"


def task_key(task: Task, salt: int = 0) -> bytes:
    """Eight bytes that tell tasks of different name or hidden parameters apart, in every process.

    Parameters are what the task holds but for its reference: numbers, texts, arrays, collections
    and objects of these.
    """
    digest = blake2b(digest_size=8)
    for part in _parts([salt, task]):
        digest.update(part)
    return digest.digest()


def _parts(value: Any) -> Iterator[bytes]:
    """A value as bytes, equal for equal values only."""
    if isinstance(value, np.ndarray):
        yield f"{value.dtype.str}{value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif value is None or isinstance(value, bool | int | float | str | bytes | np.generic):
        yield f"{type(value).__name__}:{value!r};".encode()
    elif isinstance(value, Mapping):
        for name in sorted(value, key=repr):
            yield from _parts([name, value[name]])
    elif isinstance(value, Sequence):
        yield f"{len(value)} of;".encode()
        for item in value:
            yield from _parts(item)
    else:
        yield f"{getattr(value, '__qualname__', type(value).__qualname__)};".encode()
        yield from _parts(_held(value))


def _held(value: Any) -> dict[str, Any]:
    """What an object holds, without references and without what it works out from the rest."""
    kind = type(value)
    return {
        name: held
        for name, held in getattr(value, "__dict__", {}).items()
        if not isinstance(held, Reference)
        and not isinstance(getattr(kind, name, None), cached_property)
    }
