"""Operations on the state of a memory: a TensorDict of batch-first leaves, nested for stacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor


def map_leaves(function: Callable[[Tensor], Tensor], state: TensorDict) -> TensorDict:
    """A state with `function` applied to every leaf."""
    leaves = {
        key: function(leaf) if isinstance(leaf, Tensor) else map_leaves(function, leaf)
        for key, leaf in state.items()
    }
    return TensorDict(leaves, batch_size=state.batch_size)


def leaves(state: TensorDict) -> list[Tensor]:
    """All leaves of a state, in order."""
    found: list[Tensor] = []
    for leaf in state.values():
        found += [leaf] if isinstance(leaf, Tensor) else leaves(leaf)
    return found


def expand_rows(rows: Tensor, leaf: Tensor) -> Tensor:
    """`rows` `[B]` with trailing axes of size one, to broadcast against `leaf` `[B, ...]`."""
    return rows.view(-1, *(1,) * (leaf.ndim - 1))


def where_reset(reset: Tensor, initial: TensorDict, state: TensorDict) -> TensorDict:
    """The rows of `initial` where `reset` `[B]` (bool) is set, the rows of `state` elsewhere.

    A selection, never a product: a non-finite row of `state` is cleared by its reset.
    """
    chosen = {
        key: torch.where(expand_rows(reset, leaf), initial.get(key), leaf)
        if isinstance(leaf, Tensor)
        else where_reset(reset, initial.get(key), leaf)
        for key, leaf in state.items()
    }
    return TensorDict(chosen, batch_size=state.batch_size)


def state_bytes(state: TensorDict) -> int:
    """Bytes of a state per batch row."""
    total = sum(leaf.numel() * leaf.element_size() for leaf in leaves(state))
    return total // max(1, int(state.batch_size[0]))


def state_to_dict(state: TensorDict) -> dict[str, Any]:
    """A nested dict of detached, contiguous copies: plain data for `torch.save`."""
    return {
        key: leaf.detach().clone(memory_format=torch.contiguous_format)
        if isinstance(leaf, Tensor)
        else state_to_dict(leaf)
        for key, leaf in state.items()
    }


def state_from_dict(data: Mapping[str, Any], batch: int) -> TensorDict:
    """The state of `batch` rows held by the nested dict that `state_to_dict` made."""
    loaded = {
        key: leaf if isinstance(leaf, Tensor) else state_from_dict(leaf, batch)
        for key, leaf in data.items()
    }
    return TensorDict(loaded, batch_size=[batch])
