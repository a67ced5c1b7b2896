"""What a probe asks of a memory: sequences, what must be answered where, and how answers score.

    accuracy   (1 / n) sum [argmax of the answer = target]
    R^2        1 - sum (answer - target)^2 / sum target^2

Every task has one size that makes it harder (pairs, assignments, distance, length): it is trained
at some sizes and scored at others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class Batch(NamedTuple):
    """Sequences `[B, T, num_features]` and the targets `[B, T, G]` of G answers per token.

    `trained` and `scored` `[B, T]` say at which tokens answers enter the loss and the score.
    """

    inputs: Tensor
    targets: Tensor
    trained: Tensor
    scored: Tensor


class Task(ABC):
    """A supervised sequence task; `chance` is the score of an answer that ignores the input.

    `train_sizes` are the sizes of training batches, one drawn for each; `test_sizes` those of the
    curve; `size` that of the score. Raises ValueError when a size is below `smallest`.
    """

    size_name: str
    smallest: int = 1
    num_features: int
    num_outputs: int
    chance: float

    def __init__(self, size: int, train_sizes: Sequence[int], test_sizes: Sequence[int]) -> None:
        for name, sizes in (("train_sizes", train_sizes), ("test_sizes", test_sizes)):
            if not sizes:
                raise ValueError(f"{name}: expected at least one size, for example [{size}]")
        wrong = [s for s in (size, *train_sizes, *test_sizes) if s < self.smallest]
        if wrong:
            raise ValueError(
                f"sizes: expected at least {self.smallest} {self.size_name}, got {wrong[0]}"
            )
        self.size = size
        self.train_sizes = tuple(train_sizes)
        self.test_sizes = tuple(sorted(set(test_sizes) | {size}))

    @abstractmethod
    def sample(self, rows: int, size: int, generator: torch.Generator) -> Batch:
        """`rows` sequences of a size; equal generators give equal bits."""

    @abstractmethod
    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        """The scalar training loss of `outputs` `[B, T, num_outputs]`."""

    @abstractmethod
    def score(self, outputs: Tensor, batch: Batch) -> float:
        """1 for perfect answers, about `chance` for blind ones."""


class Classification(Task):
    """`num_answers` answers per token, each from `num_classes` classes; chance is 1 / classes."""

    def __init__(
        self,
        size: int,
        train_sizes: Sequence[int],
        test_sizes: Sequence[int],
        num_classes: int,
        num_answers: int = 1,
    ) -> None:
        super().__init__(size, train_sizes, test_sizes)
        self.num_classes, self.num_answers = num_classes, num_answers
        self.num_outputs = num_answers * num_classes
        self.chance = 1 / num_classes

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        logits = self._by_answer(outputs)[batch.trained]
        return functional.cross_entropy(
            logits.flatten(0, 1), batch.targets[batch.trained].flatten()
        )

    def score(self, outputs: Tensor, batch: Batch) -> float:
        right = self._by_answer(outputs).argmax(-1) == batch.targets
        return float(right[batch.scored].double().mean())

    def _by_answer(self, outputs: Tensor) -> Tensor:
        return torch.unflatten(outputs, -1, (self.num_answers, self.num_classes))


def one_hot(index: Tensor, num_classes: int) -> Tensor:
    """`[...]` to float `[..., num_classes]`; a negative index gives zeros."""
    known = functional.one_hot(index.clamp(min=0), num_classes)
    return known.to(torch.get_default_dtype()) * (index >= 0).unsqueeze(-1)


def permutations(rows: int, count: int, generator: torch.Generator) -> Tensor:
    """`[rows, count]`: a uniform permutation of 0 .. count - 1 in every row."""
    return torch.rand(rows, count, generator=generator, dtype=torch.float64).argsort(dim=-1)
