"""Trades time for memory: keeps the state at every n-th token and recomputes what lies between.

    T tokens keep  T / n states + n tokens' intermediates   instead of   T tokens' intermediates

Source: gradient checkpointing, Chen et al. 2016.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch
from tensordict import TensorDict
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from .slabs import zip_parts
from .state import leaves, map_leaves

if TYPE_CHECKING:
    from .core import MemoryCore

Flags = Tensor | None
Outcome = tuple[Tensor, TensorDict]


def recompute(
    core: MemoryCore,
    every: int,
    x: Tensor,
    state: TensorDict,
    reset: Tensor | None,
    mask: Tensor | None,
    commit: Tensor | None,
) -> tuple[Tensor, TensorDict]:
    """`core.consume` in slices of `every` tokens, each run again by the backward pass.

    Memories that `grow` keep their whole cache at every slice.
    """

    outputs = []
    columns = (x, reset, mask, commit)
    for parts in zip_parts(*columns, cut=partial(torch.split, split_size_or_sections=every, dim=1)):
        y, state = checkpoint(
            _slice_of(core, state),
            *parts,
            *leaves(state),
            use_reentrant=False,
            preserve_rng_state=False,
        )
        outputs.append(y)
    return torch.cat(outputs, dim=1), state


def _slice_of(core: MemoryCore, state: TensorDict) -> Callable[..., Outcome]:
    """One slice as a function of its tokens, its flags and the leaves of `state`, in their order.

    The backward pass runs it again: it must keep the order of its own slice's leaves, since the
    states of later slices may name the same leaves in another order.
    """

    # The leaves go in by themselves: autograd then owns what is kept of them.
    def run(x: Tensor, reset: Flags, mask: Flags, commit: Flags, *met: Tensor) -> Outcome:
        next_leaf = iter(met)
        state_met = map_leaves(lambda _: next(next_leaf), state)
        return core.consume(x, state_met, reset, mask, commit)

    return run
