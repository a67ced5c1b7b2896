"""Weights that move once per cell, by the orthogonalised momentum of the cells' gradient sums.

    G = -sum over the cell of b_t g_t,   M <- m M + G,   m the mean of the cell's m_t
    W <- rescale(W + d u Muon(M)),       o_t = f_W(q_t) at the weights of the cell's start

The sum G runs in the state, so that a cell may be cut anywhere. A reset drops the sum, and only the
tokens after it count; a cell without any changes nothing. `rescale` gives every row of W the length
that it has in W_0. u = |W_0| / sqrt(rank) makes the step as long as the weights, so that the old
share of W is about 1 / sqrt(1 + d^2) per cell; d is learned per head.

Source: Zhang et al. 2025 (LaCT, arXiv 2505.23884), with d u = 1. There cells of thousands of tokens
may replace most of the memory; here d starts from half-lives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from .checks import check_at_least
from .decay import ChunkDecay, Coefficients
from .gates import Gate, WriteRate, spread_half_lives
from .grid import Grid
from .heads import Heads
from .mixing import over_heads
from .motion import LayerBlock, Mixing, Moved
from .muon import Orthogonalise, PostStep
from .rule import Rule
from .views import Tokens

SMALLEST_NORM = 1e-6  # of rows and layers


class CellGates(NamedTuple):
    """Write rates `[B, T, H, R]`, one for all layers or one for each, and momentum `[B, T, H]`."""

    write_rate: Tensor
    momentum: Tensor


class CellStep(Rule):
    """Rates that weigh the tokens of a cell, `num_rates` of them, and what is kept of the momentum.

    Raises ValueError for several writes per token.
    """

    gates = CellGates

    def __init__(
        self,
        heads: Heads,
        write_rate: Callable[[Heads], Gate] = WriteRate,
        momentum: Callable[[Heads], Gate] = WriteRate,
        num_rates: int = 1,
    ) -> None:
        super().__init__(heads)
        check_at_least("num_rates", num_rates, 1)
        self.num_rates = num_rates
        self.write_rate = write_rate(replace(heads, num_heads=heads.num_heads * num_rates))
        self.momentum = momentum(heads)
        self.sizes = [self.write_rate.num_features, self.momentum.num_features]
        self.num_features = sum(self.sizes)

    def init_projection(self, weight: Tensor) -> None:
        rate, momentum = torch.split(weight, self.sizes)
        self.write_rate.init_projection(rate)
        self.momentum.init_projection(momentum)

    def forward(self, features: Tensor, tokens: Tokens) -> CellGates:
        rate, momentum = torch.split(features, self.sizes, dim=-1)
        rates = torch.unflatten(self.write_rate(rate), -1, (-1, self.num_rates))
        return CellGates(rates, self.momentum(momentum))


class CellSums(NamedTuple):
    """Coefficients of N blocks of L slots over P pairs."""

    step_gradients: Tensor
    """`[B, H, N, R, P]`: of g_j in G at the end of the block, for every layer or for each."""
    step_carried: Tensor
    """`[B, H, N, 1]`: of the G and M that the block meets."""
    momentum: Tensor
    """`[B, H, N, 1]`: m of the cell so far."""
    carried: Tensor
    """`[B, H, N, L]`: whether the token sees the W that the block meets, `initial`: or W_0."""
    initial: Tensor | None


class CellMomentum(Mixing):
    """Gradient sums of cells, their momentum and a `post_step`; half-lives in tokens."""

    gates = CellGates
    anchor = "weights"

    def __init__(
        self,
        heads: Heads,
        chunk_size: int,
        post_step: Callable[[Heads], PostStep] = Orthogonalise,
        shortest: float = 16.0,
        longest: float = 128.0,
    ) -> None:
        super().__init__(heads, chunk_size)
        self.post_step = post_step(heads)
        # A memory that is replaced at every cell has no half-life.
        check_at_least("shortest half-life", shortest, chunk_size / 8)
        half_lives = spread_half_lives(heads.num_heads, shortest, longest)
        old_share = 0.5 ** (chunk_size / half_lives)
        self.log_step = nn.Parameter(torch.log(old_share**-2 - 1) / 2)

    def check_rule(self, rule: Rule, num_layers: int) -> None:
        if isinstance(rule, CellStep) and rule.num_rates not in (1, num_layers):
            raise ValueError(
                f"num_rates must be 1 or the net's {num_layers} layers, got {rule.num_rates}; "
                f"use {num_layers}"
            )

    def init_state(self, batch: int, like: Tensor) -> dict[str, Tensor]:
        """`cell_momentum` `[B, H, 2]`: sum and number of the m_t of the running cell."""
        return {"cell_momentum": like.new_zeros(batch, self.heads.num_heads, 2)}

    def init_layer(self, weights: Tensor) -> dict[str, Tensor]:
        nothing = torch.zeros_like(weights)
        return {"weights": weights, "step": nothing, "momentum": nothing}

    def forward(
        self, gates: Any, grid: Grid, state: Mapping[str, Tensor]
    ) -> tuple[CellSums, dict[str, Tensor]]:
        none = torch.zeros_like(gates.momentum)
        visible = ChunkDecay(none, over_heads(grid.reset)).after_write()
        last = visible.writes[..., -1:, :]
        means, total = self._means(gates.momentum, grid, visible, state["cell_momentum"])
        sums = CellSums(
            step_gradients=-last * gates.write_rate.mT,
            step_carried=visible.carried[..., -1:],
            momentum=means,
            carried=visible.carried,
            initial=visible.initial,
        )
        return sums, {"cell_momentum": total}

    def _means(
        self, momentum: Tensor, grid: Grid, visible: Coefficients, total: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The mean m `[B, H, N, 1]` of the running cell after every block; sum and number after."""
        valid = grid.valid.unsqueeze(1).expand_as(momentum).to(momentum.dtype)
        both = torch.stack([momentum * valid, valid], dim=-1)
        of_block = (visible.writes[..., -1:, :] @ both).squeeze(-2)
        kept = visible.carried[..., -1:]
        means = []
        for n in range(grid.num_blocks):
            total = of_block[:, :, n] + kept[:, :, n] * total
            means.append(total[..., :1] / total[..., 1:].clamp(min=1.0))
            total = torch.where(grid.full[:, n, None, None], 0.0, total)
        return torch.stack(means, dim=2), total

    def move(self, block: LayerBlock, leaves: Mapping[str, Tensor]) -> Moved:
        sums, (errors, inputs) = block.coefficients, block.factors
        kept = sums.step_carried.unsqueeze(-1)
        shares = _of_layer(sums.step_gradients, block)
        total = kept * leaves["step"] + (shares.mT * errors).mT @ inputs
        momentum = kept * leaves["momentum"]
        weights = sums.carried[..., -1:, None] * leaves["weights"]
        if sums.initial is not None:
            weights = weights + sums.initial[..., -1:, None] * block.initial
        after = {"weights": weights, "step": total, "momentum": momentum}
        if _may_be_full(block.full):
            moved = sums.momentum.unsqueeze(-1) * momentum + total
            committed = {
                "weights": self._commit(weights, moved, block.initial),
                "step": torch.zeros_like(total),
                "momentum": moved,
            }
            after = {n: torch.where(block.full, committed[n], after[n]) for n in after}
        return Moved(partial(_read_start, block, leaves["weights"]), after)

    def _commit(self, weights: Tensor, momentum: Tensor, initial: Tensor) -> Tensor:
        """The weights after a cell, their rows as long as in the initial weights."""
        target = _row_lengths(initial)
        rank = min(initial.shape[-2:])
        unit = target.square().sum((-2, -1), keepdim=True).div(rank).sqrt()
        length = self.log_step.exp().view(-1, 1, 1) * unit
        weights = weights + length * self.post_step(momentum)
        return weights * (target / _row_lengths(weights))


def _may_be_full(full: Tensor) -> bool:
    """Whether to commit at all; on an accelerator the question costs more than a commit.

    A compiled graph must not depend on data: it always commits.
    """
    if torch.compiler.is_compiling() or full.device.type != "cpu":
        return True
    return bool(full.any())


def _row_lengths(weights: Tensor) -> Tensor:
    return (weights.square().sum(-1, keepdim=True) + SMALLEST_NORM**2).sqrt()


def _of_layer(shares: Tensor, block: LayerBlock) -> Tensor:
    """`[B, H, 1, P]` of the block's layer, from one row for all layers or one for each."""
    row = block.layer if shares.shape[-2] > 1 else 0
    return shares[..., row : row + 1, :]


def _read_start(block: LayerBlock, weights: Tensor, x: Tensor) -> Tensor:
    """`W x` at the weights of the cell's start, the initial ones for tokens after a reset."""
    sums = block.coefficients
    y: Tensor = sums.carried.unsqueeze(-1) * (x @ weights.mT)
    if sums.initial is not None:
        y = y + sums.initial.unsqueeze(-1) * (x @ block.initial.mT)
    return y
