"""How the weights of one layer of a fast network move through a block of tokens.

    W_t = carried_t W + initial_t W_0 + accumulated_t S + sum_j gradients[t, j] g_j

is a motion that is linear in the gradients g_j at the anchor; W and S are what the block meets, W_0
the initial weights. A layer's gradients have rank one, so W_t x is a known combination of W x,
W_0 x, S x and the errors: no weights per token are ever formed.

Source: the dual form of Sun et al. 2024 (TTT, arXiv 2407.04620).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from .checks import check_at_least
from .fast_net import Factors
from .grid import Grid
from .heads import Heads, Piece
from .rule import Gates, Rule

Coefficients = TypeVar("Coefficients", bound=tuple[Any, ...])


class Mixture(NamedTuple):
    """Coefficients of N blocks of L slots over P pairs; None where the term is absent."""

    gradients: Tensor
    """`[B, H, N, L, P]`"""
    carried: Tensor
    """`[B, H, N, L]`, as `initial` and `accumulated`."""
    initial: Tensor | None = None
    accumulated: Tensor | None = None
    step_gradients: Tensor | None = None
    """`[B, H, N, 1, P]`: of g_j in S at the end of the block."""
    step_carried: Tensor | None = None
    """`[B, H, N, 1]`: of the S that the block meets in S at its end."""


class LayerBlock(NamedTuple):
    """What a motion needs of a block and a layer."""

    coefficients: Any
    """Of one block, made by the mixing."""
    factors: Factors
    """The gradients of the block's P pairs."""
    initial: Tensor
    """`[H, out, in]`"""
    full: Tensor
    """`[B, 1, 1, 1]`: whether a cell ends with the block."""
    restarted: Tensor | None
    """`[B, 1, 1, 1]`: whether a reset lies in the block, or None."""
    layer: int


class Moved(NamedTuple):
    """What the layer's inputs `[B, H, L, in]` become at their tokens' weights; its leaves after."""

    apply: Callable[[Tensor], Tensor]
    leaves: dict[str, Tensor]


class Mixing(Piece, ABC):
    """Turns gates into coefficients and moves weights by them; `chunk_size` is a cell's length."""

    gates: type[tuple[Tensor, ...]] = Gates
    """The type of gates that it takes from the rule."""
    anchor: str = "anchor"
    """The kind of leaf at which gradients are taken."""

    def __init__(self, heads: Heads, chunk_size: int) -> None:
        super().__init__(heads)
        check_at_least("chunk_size", chunk_size, 1)
        self.chunk_size = chunk_size

    def check_rule(self, rule: Rule, num_layers: int) -> None:
        """Raise ValueError when the rule's gates do not fit a net of so many layers."""

    def init_state(self, batch: int, like: Tensor) -> dict[str, Tensor]:
        """Leaves of the mixing's own; `like` gives the device."""
        return {}

    @abstractmethod
    def init_layer(self, weights: Tensor) -> dict[str, Tensor]:
        """The leaves of a layer by kind, from its initial weights `[B, H, out, in]`."""

    @abstractmethod
    def forward(
        self, gates: Any, grid: Grid, state: Mapping[str, Tensor]
    ) -> tuple[Any, dict[str, Tensor]]:
        """Coefficients of all blocks and the next own leaves; gates are `[B, H, N, L, ...]`."""

    @abstractmethod
    def move(self, block: LayerBlock, leaves: Mapping[str, Tensor]) -> Moved:
        """Moves one layer, whose leaves are given by kind, through a block."""


class LinearMixing(Mixing):
    """Weights that are a `Mixture` of the gradients."""

    accumulates: bool
    """Whether there is an S."""
    moves_weights: bool
    """Whether W moves at every token (then the anchor is kept beside it) or once per cell."""

    def init_layer(self, weights: Tensor) -> dict[str, Tensor]:
        leaves = {"weights": weights}
        if self.moves_weights:
            leaves["anchor"] = weights
        if self.accumulates:
            leaves["step"] = torch.zeros_like(weights)
        return leaves

    def move(self, block: LayerBlock, leaves: Mapping[str, Tensor]) -> Moved:
        base, live, step = self._at_end(block, leaves)
        if block.coefficients.carried.shape[-1] == 1:
            # The weights of a block of one token are there already.
            apply = partial(_multiply, live)
        else:
            apply = partial(_read, block, leaves)
        after = {} if step is None else {"step": step}
        if not self.moves_weights:
            cleared = {name: torch.where(block.full, 0.0, leaf) for name, leaf in after.items()}
            return Moved(apply, cleared | {"weights": torch.where(block.full, live, base)})
        anchor = restart(leaves["anchor"], block)
        after["anchor"] = torch.where(block.full, live, anchor)
        return Moved(apply, after | {"weights": live})

    def _at_end(
        self, block: LayerBlock, leaves: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """After the last token: weights without the block's gradients, weights with them, and S."""
        mixture, (errors, inputs) = block.coefficients, block.factors
        base = mixture.carried[..., -1:, None] * leaves["weights"]
        if mixture.initial is not None:
            base = base + mixture.initial[..., -1:, None] * block.initial
        live = base + (mixture.gradients[..., -1, :, None] * errors).mT @ inputs
        if mixture.accumulated is None:
            return base, live, None
        live = live + mixture.accumulated[..., -1:, None] * leaves["step"]
        step = mixture.step_carried.unsqueeze(-1) * leaves["step"]
        return base, live, step + (mixture.step_gradients.mT * errors).mT @ inputs


def restart(anchor: Tensor, block: LayerBlock) -> Tensor:
    """The anchor after the block's resets."""
    if block.restarted is None:
        return anchor
    return torch.where(block.restarted, block.initial, anchor)


def split_blocks(coefficients: Coefficients) -> Iterator[Coefficients]:
    """The coefficients of each of N blocks, without their axis N."""
    columns: list[Iterable[Any]] = [
        repeat(None) if part is None else part.unbind(2) for part in coefficients
    ]
    # An absent term repeats without end.
    for parts in zip(*columns, strict=False):
        yield type(coefficients)(*parts)


def _multiply(weights: Tensor, x: Tensor) -> Tensor:
    return x @ weights.mT


def _read(block: LayerBlock, leaves: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """`W_t x_t` for the inputs `[B, H, L, in]` of a layer, each at its own token's weights."""
    mixture, (errors, inputs) = block.coefficients, block.factors
    y: Tensor = mixture.carried.unsqueeze(-1) * (x @ leaves["weights"].mT)
    if mixture.initial is not None:
        y = y + mixture.initial.unsqueeze(-1) * (x @ block.initial.mT)
    if mixture.accumulated is not None:
        y = y + mixture.accumulated.unsqueeze(-1) * (x @ leaves["step"].mT)
    y = y + (mixture.gradients * (x @ inputs.mT)) @ errors
    return y
