"""Cuts long calls so that what is made between input and output stays in the processor's caches.

A product of matrices that come from the cache takes half the time of one whose operands come from
main memory. As a memory may be fed in any split, cutting changes no number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import repeat
from typing import TYPE_CHECKING, Any

import torch
from tensordict import TensorDict
from torch import Tensor

if TYPE_CHECKING:
    from .core import MemoryCore

Advance = Callable[..., tuple[Tensor, TensorDict]]
SHORTEST_SLAB = 64
"""In tokens: below it the time goes into starting operations."""


def num_slabs(x: Tensor, numbers: int | None) -> int:
    """Into how many slabs of `numbers` a call with `x` `[B, T, width]` is cut; a GPU takes one."""
    if numbers is None or x.device.type != "cpu":
        return 1
    if torch.compiler.is_compiling():
        numbers //= 2  # compiled code starts operations sooner
    length = max(SHORTEST_SLAB, numbers // max(1, x.shape[0] * x.shape[2]))
    return math.ceil(x.shape[1] / length)


def in_slabs(advance: Advance) -> Advance:
    """`MemoryCore.advance` of an exact memory in slabs of its `slab_numbers`.

    No slab is a single token of several.
    """

    @wraps(advance)
    def run(
        core: MemoryCore,
        x: Tensor,
        state: TensorDict,
        reset: Tensor | None = None,
        mask: Tensor | None = None,
        commit: Tensor | None = None,
    ) -> tuple[Tensor, TensorDict]:
        count = num_slabs(x, core.slab_numbers)
        if count == 1:
            return advance(core, x, state, reset, mask, commit)
        outputs = []
        columns = (x, reset, mask, commit)
        for parts in zip_parts(*columns, cut=lambda part: part.tensor_split(count, dim=1)):
            tokens, *flags = parts
            y, state = advance(core, tokens, state, *flags)
            outputs.append(y)
        return torch.cat(outputs, dim=1), state

    return run


@contextmanager
def in_one_piece(core: MemoryCore) -> Iterator[None]:
    """Calls of `core` are not cut meanwhile: for those who look into them."""
    numbers, core.slab_numbers = core.slab_numbers, None
    try:
        yield
    finally:
        core.slab_numbers = numbers


def zip_parts(
    *columns: Tensor | None, cut: Callable[[Tensor], Iterable[Tensor]]
) -> Iterator[tuple[Any, ...]]:
    """The parts into which `cut` takes the columns, side by side; None stays None."""
    parts: list[Iterable[Any]] = [
        repeat(None) if column is None else cut(column) for column in columns
    ]
    # An absent column repeats without end.
    return zip(*parts, strict=False)
