"""What is left of a state after a chunk, besides what the chunk writes.

S <- kept * S,   and where a state is [W | M]:   W <- kept W + moved M,   M <- kept M
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Carry(NamedTuple):
    """The shares of N chunks, for M memories side by side with a state `[M, V, K]`."""

    kept: Tensor
    """`[M, N, 1, K or 1]`"""
    moved: Tensor | None = None
    """`[M, N, 1, 1]`: of the second half of the columns into the first; None for nothing."""

    def chunks(self) -> Iterator[Carry]:
        """The shares of one chunk after the other, without the axis N."""
        if self.moved is None:
            return (Carry(kept) for kept in self.kept.unbind(1))
        return map(Carry, self.kept.unbind(1), self.moved.unbind(1))

    def backwards(self) -> Iterator[Carry]:
        """The same from the last chunk to the first."""
        return reversed(list(self.chunks()))

    def apply(self, state: Tensor, added: Tensor | None = None) -> Tensor:
        """What is left of `state`, and what is `added` to it; for one chunk."""
        left = self.kept * state if added is None else torch.addcmul(added, self.kept, state)
        if self.moved is None:
            return left
        half = state.shape[-1] // 2
        left[..., :half] += self.moved * state[..., half:]
        return left

    def apply_back(self, gradient: Tensor, added: Tensor) -> Tensor:
        """The gradient at the state, from that at what is left of it; for one chunk."""
        left = torch.addcmul(added, self.kept, gradient)
        if self.moved is None:
            return left
        half = gradient.shape[-1] // 2
        left[..., half:] += self.moved * gradient[..., :half]
        return left

    def gradients(
        self, after: Tensor, met: Tensor, needed: Sequence[bool]
    ) -> tuple[Tensor | None, Tensor | None]:
        """At the shares that need one, from those after the chunks and the states that they met.

        Both `[M, N, V, K]`.
        """
        for_kept = (after * met).sum_to_size(self.kept.shape) if needed[0] else None
        if self.moved is None:
            return for_kept, None
        half = met.shape[-1] // 2
        return for_kept, (after[..., :half] * met[..., half:]).sum_to_size(self.moved.shape)
