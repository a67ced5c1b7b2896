"""Copying at a distance: repeat a word after a pause.

    s_1 ... s_L   blank x distance   go x L,   answer at the i-th go: s_i

Source: Hochreiter & Schmidhuber 1997, in the form of Arjovsky et al. 2016 (arXiv 1511.06464).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .task import Batch, Classification, one_hot


class Copying(Classification):
    """A word of `word_length` symbols (out of `num_symbols`), `size` blanks, then the word again.

    Sequences `[B, 2 * word_length + size, num_symbols + 2]`.
    """

    size_name = "blanks"
    smallest = 0

    def __init__(
        self,
        size: int,
        train_sizes: Sequence[int],
        test_sizes: Sequence[int],
        word_length: int = 8,
        num_symbols: int = 8,
    ) -> None:
        super().__init__(size, train_sizes, test_sizes, num_symbols)
        for name, value in (("word_length", word_length), ("num_symbols", num_symbols)):
            if value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")
        self.word_length = word_length
        self.num_features = num_symbols + 2

    def sample(self, rows: int, size: int, generator: torch.Generator) -> Batch:
        word = torch.randint(self.num_classes, (rows, self.word_length), generator=generator)

        def filled(count: int, symbol: int) -> Tensor:
            return torch.full((rows, count), symbol)

        blank, go = self.num_classes, self.num_classes + 1
        tokens = torch.cat([word, filled(size, blank), filled(self.word_length, go)], dim=1)
        targets = torch.cat([filled(self.word_length + size, 0), word], dim=1)
        asked = tokens == go
        return Batch(one_hot(tokens, self.num_features), targets.unsqueeze(-1), asked, asked)
