"""Measures of a memory's state: how much it holds and in how many directions.

    norm |W|_F,  drift |W - W_0|_F,   and of D = W - W_0 with singular values s:
    effective rank exp(-sum_i p_i log p_i), p = s / sum s;   stable rank |D|_F^2 / s_1^2

Sources: Roy & Vetterli 2007 (effective rank); Rudelson & Vershynin 2007 (stable rank).
"""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from .attention import AttentionMemory
from .channel_memory import ChannelGatedMemory
from .core import MemoryCore
from .fast_weight import FastWeightMemory

MOMENTS = ("value_moments", "key_moments")
"""Leaves of a ridge regression, from which its map is solved."""


def effective_rank(matrix: Tensor) -> Tensor:
    """The exponential of the entropy of the singular values, `[...]` of matrices `[..., m, n]`.

    r for r equal singular values; 0 for a zero or empty matrix, NaN for a non-finite one.
    """
    values, finite = _singular_values(matrix)
    total = values.sum(-1, keepdim=True)
    share = values / torch.where(total > 0, total, 1.0)
    rank = torch.special.entr(share).sum(-1).exp() * (total.squeeze(-1) > 0)
    return torch.where(finite, rank, torch.nan)


def stable_rank(matrix: Tensor) -> Tensor:
    """The squared Frobenius norm over the squared largest singular value, `[...]`.

    Never above the rank; 0 for a zero or empty matrix, NaN for a non-finite one.
    """
    values, finite = _singular_values(matrix)
    if values.shape[-1] == 0:
        return torch.zeros_like(finite, dtype=matrix.dtype)
    relative = values / torch.where(values[..., :1] > 0, values[..., :1], 1.0)
    return torch.where(finite, relative.square().sum(-1), torch.nan)


def state_measures(core: MemoryCore, state: TensorDict) -> dict[str, Tensor]:
    """Measures `[H]` of a single memory's state, means over its rows.

    Fast weights: `<leaf>_norm`, `_drift`, `_effective_rank` and `_stable_rank` of every matrix.
    Attention: the same of the cached `keys` and `values`, without a drift, and `cache_entries`. Any
    other core: `<leaf>_norm` and `_drift` `[1]` of its real leaves.
    """
    if isinstance(core, AttentionMemory):
        return _cache_measures(core, state)
    if not isinstance(core, FastWeightMemory | ChannelGatedMemory):
        return _vector_measures(core, state)
    measures: dict[str, Tensor] = {}
    initial = core.init_state(1)
    num_heads = core.views.token_heads.num_heads
    for name, matrix in state.items():
        if name == "weights" or name.startswith("weights_") or name in MOMENTS:
            written = matrix - initial[name]
            of_memories = {
                f"{name}_norm": _mean_norm(matrix),
                f"{name}_drift": _mean_norm(written),
            } | _ranks(name, written)
            # A head may own several memories, which lie next to each other.
            measures |= {
                measure: torch.unflatten(value, 0, (num_heads, -1)).mean(1)
                for measure, value in of_memories.items()
            }
    return measures


def _ranks(name: str, written: Tensor) -> dict[str, Tensor]:
    """The ranks of matrices `[B, M, m, n]`: means over the rows, `[M]`."""
    ranks = {"effective_rank": effective_rank(written), "stable_rank": stable_rank(written)}
    return {f"{name}_{measure}": value.mean(0) for measure, value in ranks.items()}


def _cache_measures(core: AttentionMemory, state: TensorDict) -> dict[str, Tensor]:
    measures = {}
    for name in ("keys", "values"):
        # Slots that hold nothing are zero and change neither norm nor rank.
        cells = state[name].transpose(1, 2)
        measures[f"{name}_norm"] = _mean_norm(cells)
        measures |= _ranks(name, cells)
    slots, valid = state["keys"].shape[1], state.get("valid", None)
    entries = state["position"].clamp(max=slots) if valid is None else valid.sum(1)
    num_heads = core.views.token_heads.num_heads
    mean = entries.to(state["keys"].dtype).mean()
    return measures | {"cache_entries": mean.expand(num_heads)}


def _mean_norm(matrix: Tensor) -> Tensor:
    """Of `[B, M, ...]`, over the rows: `[M]`."""
    mean: Tensor = torch.linalg.vector_norm(matrix, dim=tuple(range(2, matrix.ndim))).mean(0)
    return mean


def _vector_measures(core: MemoryCore, state: TensorDict) -> dict[str, Tensor]:
    measures = {}
    initial = core.init_state(1)
    for name, leaf in state.items():
        if leaf.is_floating_point() and leaf.shape[1:] == initial[name].shape[1:]:
            measures[f"{name}_norm"] = _mean_norm(leaf.unsqueeze(1))
            measures[f"{name}_drift"] = _mean_norm((leaf - initial[name]).unsqueeze(1))
    return measures


def _singular_values(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Singular values in falling order, and which matrices are finite: others count as zero."""
    finite = torch.isfinite(matrix).all(-1).all(-1)
    safe = torch.where(finite[..., None, None], matrix, 0.0)
    return torch.linalg.svdvals(safe), finite
