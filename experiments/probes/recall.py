"""Recall tasks: which value was written last under a key?

    k_1 v_1 k_2 v_2 ... k_W v_W   q_1 q_2 ... q_n,   answer at q: the last v behind an equal k

Source: multi-query associative recall of Arora et al. 2023 (Zoology, arXiv 2312.04927). Here every
key is asked once, after all writes and in random order, and no answer is shown.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .task import Batch, Classification, one_hot, permutations


class Recall(Classification):
    """`size` pairs of a key (of `num_keys`) and a value (of `num_values`), each written once.

    A token is one key or one value, one-hot; `[B, 3 * size, num_keys + num_values]`. Raises
    ValueError when there are fewer keys than pairs.
    """

    size_name = "pairs"

    def __init__(
        self,
        size: int,
        train_sizes: Sequence[int],
        test_sizes: Sequence[int],
        num_keys: int = 64,
        num_values: int = 16,
    ) -> None:
        super().__init__(size, train_sizes, test_sizes, num_values)
        largest = max(*self.train_sizes, *self.test_sizes)
        if num_keys < largest:
            raise ValueError(
                f"num_keys: expected at least {largest}, the most pairs, got {num_keys}"
            )
        self.num_keys = num_keys
        self.num_features = num_keys + num_values

    def sample(self, rows: int, size: int, generator: torch.Generator) -> Batch:
        keys = permutations(rows, self.num_keys, generator)[:, :size]
        values = torch.randint(self.num_classes, (rows, size), generator=generator)
        order = permutations(rows, size, generator)
        queries, answers = keys.gather(1, order), values.gather(1, order)
        return recall_batch(keys, values, queries, answers, self.num_keys, self.num_classes)


class Overwriting(Classification):
    """`num_pairs` keys, each assigned a new value `size` times; the last one counts.

    The assignments come in rounds; every round has its own order. Tokens as in `Recall`,
    `[B, (2 * size + 1) * num_pairs, num_keys + num_values]`. Raises ValueError when there are fewer
    keys than pairs.
    """

    size_name = "assignments"

    def __init__(
        self,
        size: int,
        train_sizes: Sequence[int],
        test_sizes: Sequence[int],
        num_pairs: int = 6,
        num_keys: int = 32,
        num_values: int = 16,
    ) -> None:
        super().__init__(size, train_sizes, test_sizes, num_values)
        if not 1 <= num_pairs <= num_keys:
            raise ValueError(f"num_pairs: expected 1 to num_keys = {num_keys}, got {num_pairs}")
        self.num_pairs, self.num_keys = num_pairs, num_keys
        self.num_features = num_keys + num_values

    def sample(self, rows: int, size: int, generator: torch.Generator) -> Batch:
        pairs = self.num_pairs
        chosen = permutations(rows, self.num_keys, generator)[:, :pairs]
        orders = permutations(rows * size, pairs, generator).view(rows, size, pairs)
        values = torch.randint(self.num_classes, (rows, size, pairs), generator=generator)
        keys = chosen.unsqueeze(1).expand(-1, size, -1).gather(2, orders)
        latest = torch.empty_like(chosen).scatter_(1, orders[:, -1], values[:, -1])
        asked = permutations(rows, pairs, generator)
        return recall_batch(
            keys.flatten(1),
            values.flatten(1),
            chosen.gather(1, asked),
            latest.gather(1, asked),
            self.num_keys,
            self.num_classes,
        )


def recall_batch(
    keys: Tensor, values: Tensor, queries: Tensor, answers: Tensor, num_keys: int, num_values: int
) -> Batch:
    """Tokens of W writes `[B, W]` followed by Q queries `[B, Q]`, answered at the queries."""
    rows, writes = keys.shape
    written = torch.stack([keys, num_keys + values], dim=2).flatten(1)
    inputs = one_hot(torch.cat([written, queries], dim=1), num_keys + num_values)
    shown = torch.zeros(rows, 2 * writes, dtype=torch.int64)
    asked = torch.cat([shown.bool(), torch.ones_like(queries, dtype=torch.bool)], dim=1)
    targets = torch.cat([shown, answers], dim=1).unsqueeze(-1)
    return Batch(inputs, targets, asked, asked)
