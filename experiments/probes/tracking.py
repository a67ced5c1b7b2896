"""State-tracking tasks: each token changes a hidden state that must be told after every token.

    register machine   r <- c,   r <- s + c,   r <- s + u     (mod m)
    permutation        p_t = g_t o p_{t-1},   g_t uniform over S_n

A memory that adds up what it sees cannot do it at any length: the writes depend on the state.
Sources: Merrill et al. 2024 (arXiv 2404.08819) and Grazzi et al. 2024 (arXiv 2411.12537) on
permutation groups; the register machine is ours.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .task import Batch, Classification, one_hot, permutations


class RegisterMachine(Classification):
    """`size` instructions on `num_registers` registers that hold numbers mod `modulus`, first 0.

    The three kinds are equally frequent, r, s, u and c uniform, u other than s. A token names r, s,
    u and c, one-hot, absent ones zero; after each the contents of all registers are asked.
    """

    size_name = "instructions"

    def __init__(
        self,
        size: int,
        train_sizes: Sequence[int],
        test_sizes: Sequence[int],
        num_registers: int = 3,
        modulus: int = 2,
    ) -> None:
        super().__init__(size, train_sizes, test_sizes, modulus, num_registers)
        for name, value in (("num_registers", num_registers), ("modulus", modulus)):
            if value < 2:
                raise ValueError(f"{name}: expected at least 2, got {value}")
        self.num_features = 3 * num_registers + modulus

    def sample(self, rows: int, size: int, generator: torch.Generator) -> Batch:
        registers, modulus = self.num_answers, self.num_classes
        shape = (rows, size)

        def draw(high: int) -> Tensor:
            return torch.randint(high, shape, generator=generator)

        kind, target, source = draw(3), draw(registers), draw(registers)
        other = (source + 1 + draw(registers - 1)) % registers
        constant = draw(modulus)
        source = torch.where(kind > 0, source, -1)
        other = torch.where(kind == 2, other, -1)
        constant = torch.where(kind < 2, constant, -1)
        named = [one_hot(index, registers) for index in (target, source, other)]
        inputs = torch.cat([*named, one_hot(constant, modulus)], dim=-1)
        contents = self._run(target, source, other, constant)
        asked = torch.ones(shape, dtype=torch.bool)
        return Batch(inputs, contents, asked, asked)

    def _run(self, target: Tensor, source: Tensor, other: Tensor, constant: Tensor) -> Tensor:
        """The contents `[B, T, num_registers]` after each instruction."""
        contents = torch.zeros(target.shape[0], self.num_answers, dtype=torch.int64)
        after = []
        for t in range(target.shape[1]):
            result = constant[:, t].clamp(min=0)
            for operand in (source[:, t], other[:, t]):
                held = contents.gather(1, operand.clamp(min=0).unsqueeze(1)).squeeze(1)
                result = result + torch.where(operand >= 0, held, 0)
            contents = contents.scatter(
                1, target[:, t].unsqueeze(1), (result % self.num_classes).unsqueeze(1)
            )
            after.append(contents)
        return torch.stack(after, dim=1)


class PermutationComposition(Classification):
    """`size` permutations of `num_objects` objects, one after the other: where is each object now?

    A token is a permutation matrix `[num_objects^2]`; an answer is the place of one object, so that
    the score counts objects.
    """

    size_name = "permutations"

    def __init__(
        self,
        size: int,
        train_sizes: Sequence[int],
        test_sizes: Sequence[int],
        num_objects: int = 3,
    ) -> None:
        super().__init__(size, train_sizes, test_sizes, num_objects, num_objects)
        if num_objects < 2:
            raise ValueError(f"num_objects: expected at least 2, got {num_objects}")
        self.num_features = num_objects**2

    def sample(self, rows: int, size: int, generator: torch.Generator) -> Batch:
        objects = self.num_classes
        moves = permutations(rows * size, objects, generator).view(rows, size, objects)
        place = torch.arange(objects).expand(rows, objects)
        after = []
        for t in range(size):
            place = moves[:, t].gather(1, place)
            after.append(place)
        asked = torch.ones(rows, size, dtype=torch.bool)
        return Batch(one_hot(moves, objects).flatten(2), torch.stack(after, dim=1), asked, asked)
