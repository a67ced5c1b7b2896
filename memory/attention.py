"""Attention over a cache of keys and values: a regression from keys to values, read at the query.

    o_t = m(q_t; {(k_j, v_j)})   over the visible tokens j,   m an estimator, by default softmax

Source: Vaswani et al. 2017. Plain matmuls, so that it can be differentiated twice.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from tensordict import TensorDict
from torch import Tensor

from .cache import Cache, Entries, GrowingCache
from .checks import check_choice
from .core import MemoryCore
from .estimator import Estimator, Softmax
from .heads import Heads, project_pieces
from .precision import full_precision, state_dtype
from .readout import Readout
from .rotary import ANGLES, rotate
from .segments import count_valid
from .several_reads import join_queries, split_queries
from .state import expand_rows
from .views import TokenViews, Views


class AttentionMemory(MemoryCore):
    """Attention whose state is a `cache`: `GrowingCache` or `SlidingWindow`.

    `estimator` reads from what is visible: `Softmax`, `TopK`, `NadarayaWatson` or `KernelRidge`.
    A token reads its cache with `queries_per_head` queries per head, zero if it sees nothing.
    `positions`: `rotary`, `even` (by valid tokens since the reset) or `none`; the views must have
    none of their own then. Time and memory of one call are quadratic in its number of tokens.
    `commit` is ignored.
    """

    def __init__(
        self,
        width: int,
        num_heads: int = 2,
        key_width: int = 16,
        value_width: int = 16,
        queries_per_head: int = 1,
        views: Callable[[Heads], TokenViews] = Views,
        cache: Callable[[Heads], Cache] = GrowingCache,
        estimator: Callable[[Heads], Estimator] = Softmax,
        readout: Callable[[Heads], Readout] = Readout,
        positions: str = "rotary",
    ) -> None:
        super().__init__(width)
        heads = Heads(width, num_heads, key_width, value_width, queries_per_head=queries_per_head)
        check_choice("positions", positions, (*ANGLES, "none"))
        self.positions = positions
        self.queries_per_head = queries_per_head
        self.views = views(heads)
        seen = self.views.token_heads
        if positions != "none" and seen.key_width % 2:
            raise ValueError(
                f"key_width must be even for {positions} positions, got {seen.key_width}; "
                f"use {seen.key_width + 1}"
            )
        if positions != "none" and "position" in self.views.init_state(1):
            raise ValueError(
                "keys of views with positions would be rotated twice, got positions in both; "
                "use positions=none for the memory or its views"
            )
        self.cache = cache(seen)
        self.grows = self.cache.grows
        self.estimator = estimator(seen)
        self.readout = readout(heads)
        self.feature_sizes = [self.views.num_features, self.readout.num_features]
        self.projection = project_pieces(width, [self.views, self.readout])

    def init_state(self, batch: int) -> TensorDict:
        """The empty cache, `position` `[B]` (int64) and, with a convolution, `conv_window`."""
        weight = self.projection.weight
        like = torch.empty(0, dtype=state_dtype(weight), device=weight.device)
        leaves = self.views.init_state(batch) | self.cache.init_state(batch, like)
        leaves["position"] = like.new_zeros(batch, dtype=torch.int64)
        return TensorDict(leaves, batch_size=[batch])

    def reset_rows(self, state: TensorDict, rows: Tensor) -> TensorDict:
        leaves = dict(state.items())
        emptied = self.cache.reset_rows(leaves, rows)
        emptied["position"] = leaves["position"].masked_fill(rows, 0)
        for name, initial in self.views.init_state(rows.shape[0]).items():
            emptied[name] = torch.where(expand_rows(rows, initial), initial, leaves[name])
        return TensorDict(emptied, batch_size=state.batch_size)

    def advance(
        self,
        x: Tensor,
        state: TensorDict,
        reset: Tensor | None = None,
        mask: Tensor | None = None,
        commit: Tensor | None = None,
    ) -> tuple[Tensor, TensorDict]:
        features = self.projection(x)
        with full_precision(x):
            features = features.to(state_dtype(self.projection.weight))
            for_views, for_readout = features.split(self.feature_sizes, dim=-1)
            leaves = dict(state.items())
            tokens, next_leaves = self.views(for_views, leaves, reset, mask)
            before, after = count_valid(leaves["position"], x.shape[1], reset, mask)
            if self.positions != "none":
                tokens = tokens._replace(
                    query=rotate(tokens.query, before, self.positions),
                    key=rotate(tokens.key, before, self.positions),
                )
            entries, cache_state = self.cache(tokens, leaves, after, reset, mask)
            reads = self._read(tokens.query, entries)
        y: Tensor = self.readout(reads, for_readout)
        next_leaves |= cache_state | {"position": after}
        return y, TensorDict(next_leaves, batch_size=state.batch_size)

    def _read(self, query: Tensor, entries: Entries) -> Tensor:
        """Reads `[B, T, n H, V]`: the n queries of a token see what the token sees."""
        queries = self.queries_per_head
        entries = entries._replace(visible=entries.visible.repeat_interleave(queries, dim=1))
        reads: Tensor = self.estimator(split_queries(query, queries), entries)
        return join_queries(reads, queries)
