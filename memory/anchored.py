"""Solver of neural memories: every token of a cell takes its gradient at the cell's anchor.

    g_t = grad loss(f_A(k_t), v_t),   W_t = mixing of g_1 .. g_t,   o_t = f_{W_t}(q_t)
    A <- W_t when the cell has had `chunk_size` valid tokens, A <- W_0 at a reset

All tokens of a cell are back-propagated at once. A layer's gradients have rank one, so that W_t x
is a known combination of W x, W_0 x, S x and the errors: no weights per token are ever formed. A
state may be taken in the middle of a cell: it holds A, W, S and how far the cell has come.

Sources: the dual form of Sun et al. 2024 (TTT, arXiv 2407.04620), here with decay and momentum as
in Behrouz et al. 2025 (Titans, arXiv 2501.00663), resets, masks and rows at their own phases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .fast_net import Factors, FastNet, LinearNet
from .grid import Grid
from .heads import Heads
from .limits import limit_gain, shorten
from .mixing import Decay, Mixing, Mixture
from .objective import Objective
from .solver import Solver
from .views import Tokens

WEIGHT_LEAVES = ("weights_", "anchor_", "step_")


class Block(NamedTuple):
    """The tokens of one block of the grid `[B, H, L, ...]` and its flags."""

    tokens: Tokens
    mixture: Mixture
    full: Tensor
    """`[B]`: whether a cell ends with the block."""
    restarted: Tensor | None
    """`[B, L]`: tokens at or after a reset, or None."""


class Moved(NamedTuple):
    """Weights `[B, H, out, in]` of a layer: without the block's gradients, with them, and S."""

    base: Tensor
    live: Tensor
    step: Tensor | None


class AnchoredGradient(Solver):
    """Trains a `net` online, with gradients that see the weights of the last cell border.

    `chunk_size` is part of the model, not only of its cost: 1 is the plain online rule. Masked
    tokens do not count for the cell; a reset does not move the cell's border.

    Two limits (`memory/limits.py`): errors whose root mean square over the value channels exceeds
    `largest_error` are shortened to it; gradients are shortened until a unit step moves the token's
    own prediction by at most `largest_gain` times its error.
    A linear net with unit keys has gain 1.
    """

    anchored = True
    clocks = ("phase",)

    def __init__(
        self,
        heads: Heads,
        objective: Objective,
        net: Callable[[Heads], FastNet] = LinearNet,
        mixing: Callable[[Heads, int], Mixing] = Decay,
        chunk_size: int = 16,
        largest_error: float = 2.0,
        largest_gain: float = 1.0,
    ) -> None:
        super().__init__(heads, objective)
        if not largest_error > 0:
            raise ValueError(f"largest_error must be above 0, got {largest_error}; use 2.0")
        if not largest_gain > 0:
            raise ValueError(f"largest_gain must be above 0, got {largest_gain}; use 1.0")
        self.net = net(heads)
        self.mixing = mixing(heads, chunk_size)
        self.gates = self.mixing.gates
        self.chunk_size = chunk_size
        self.largest_gain = largest_gain
        self.longest_error = largest_error * heads.value_width**0.5

    def init_state(self, batch: int) -> dict[str, Tensor]:
        """Leaves of every layer, `[B, H, out, in]`: `weights_*`, `anchor_*`, `step_*`; `phase`."""
        leaves = {}
        for layer in self.net.layers:
            weights = self.net.initial(layer).expand(batch, -1, -1, -1)
            leaves[f"weights_{layer}"] = weights
            if self.mixing.moves_weights:
                leaves[f"anchor_{layer}"] = weights
            if self.mixing.accumulates:
                leaves[f"step_{layer}"] = torch.zeros_like(weights)
        leaves["phase"] = weights.new_zeros(batch, dtype=torch.int64)
        return leaves | self.mixing.init_state(batch, weights)

    def forward(
        self,
        tokens: Tokens,
        gates: Any,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        steps = tokens.query.shape[1]
        grid = Grid(state["phase"], steps, self.chunk_size, reset, mask)
        gates = type(gates)(*(_fold_gate(gate, grid=grid, mask=mask) for gate in gates))
        mixture, next_state = self.mixing(gates, grid, state)

        leaves = dict(state)
        reads = []
        for block in self._blocks(tokens, grid, mixture):
            read, leaves = self._run(block, leaves)
            reads.append(read)
        next_state |= {name: leaves[name] for name in leaves if name.startswith(WEIGHT_LEAVES)}
        next_state["phase"] = grid.next_phase
        return grid.unfold(torch.stack(reads, dim=1).transpose(2, 3)), next_state

    def _blocks(self, tokens: Tokens, grid: Grid, mixture: Mixture) -> Iterator[Block]:
        """The blocks of the grid, in order."""
        # A net is not linear: it must meet queries on the scale of the keys it was trained on.
        tokens = tokens._replace(query=tokens.query * self.heads.key_width**0.5)
        views = [[part.transpose(1, 2) for part in grid.fold(view).unbind(1)] for view in tokens]
        for n, part in enumerate(mixture.blocks()):
            restarted = None if grid.restarted is None else grid.restarted[:, n]
            yield Block(Tokens(*(view[n] for view in views)), part, grid.full[:, n], restarted)

    def _run(self, block: Block, leaves: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Reads `[B, H, L, V]` of a block and the leaves after it."""
        factors = self._factors(block, leaves)
        moved = {n: self._move(n, block.mixture, factors[n], leaves) for n in self.net.layers}
        if block.tokens.query.shape[2] == 1:
            apply = partial(_apply_live, moved)
        else:
            apply = partial(self._layer, block.mixture, factors, leaves)
        read = self.net.read(block.tokens.query, apply)
        after: dict[str, Tensor] = {}
        for layer in self.net.layers:
            after |= self._close(layer, block, moved[layer], leaves)
        return read, after

    def _factors(self, block: Block, leaves: Mapping[str, Tensor]) -> dict[str, Factors]:
        """Every token's gradient, at the anchor or, after a reset, at the initial weights."""
        anchor = "anchor_" if self.mixing.moves_weights else "weights_"
        weights = {layer: leaves[anchor + layer] for layer in self.net.layers}
        factors = self._factors_at(weights, block.tokens)
        if block.restarted is None:
            return factors
        initial = {layer: self.net.initial(layer) for layer in self.net.layers}
        fresh = self._factors_at(initial, block.tokens)
        restarted = block.restarted[:, None, :, None]
        return {
            layer: Factors(
                *(
                    torch.where(restarted, new, old)
                    for new, old in zip(fresh[layer], factors[layer], strict=True)
                )
            )
            for layer in self.net.layers
        }

    def _factors_at(self, weights: Mapping[str, Tensor], tokens: Tokens) -> dict[str, Factors]:
        """Every token's gradient at `weights`, its gain limited."""
        gradient = partial(self._loss_gradient, tokens.value)
        return limit_gain(self.net.factors(weights, tokens.key, gradient), self.largest_gain)

    def _loss_gradient(self, value: Tensor, prediction: Tensor) -> Tensor:
        return shorten(self.objective.gradient(prediction, value), self.longest_error)

    def _layer(
        self,
        mixture: Mixture,
        factors: Mapping[str, Factors],
        leaves: Mapping[str, Tensor],
        layer: str,
        x: Tensor,
    ) -> Tensor:
        """`W_t x_t` for the inputs `[B, H, L, in]` of a layer, each at its own token's weights."""
        errors, inputs = factors[layer]
        y = mixture.carried.unsqueeze(-1) * (x @ leaves[f"weights_{layer}"].mT)
        if mixture.initial is not None:
            y = y + mixture.initial.unsqueeze(-1) * (x @ self.net.initial(layer).mT)
        if mixture.accumulated is not None:
            y = y + mixture.accumulated.unsqueeze(-1) * (x @ leaves[f"step_{layer}"].mT)
        return y + (mixture.gradients * (x @ inputs.mT)) @ errors

    def _move(
        self, layer: str, mixture: Mixture, factors: Factors, leaves: Mapping[str, Tensor]
    ) -> Moved:
        """One layer's weights after the last token of a block."""
        errors, inputs = factors
        base = mixture.carried[..., -1:, None] * leaves[f"weights_{layer}"]
        if mixture.initial is not None:
            base = base + mixture.initial[..., -1:, None] * self.net.initial(layer)
        live = base + (mixture.gradients[..., -1, :, None] * errors).mT @ inputs
        if mixture.accumulated is None:
            return Moved(base, live, None)
        assert mixture.step_gradients is not None and mixture.step_carried is not None
        step = leaves[f"step_{layer}"]
        live = live + mixture.accumulated[..., -1:, None] * step
        step = mixture.step_carried.unsqueeze(-1) * step
        step = step + (mixture.step_gradients.unsqueeze(-1) * errors).mT @ inputs
        return Moved(base, live, step)

    def _close(
        self, layer: str, block: Block, moved: Moved, leaves: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """The leaves of one layer after a block."""
        full = block.full.view(-1, 1, 1, 1)
        base, live, step = moved
        after = {} if step is None else {f"step_{layer}": step}
        if not self.mixing.moves_weights:
            cleared = {name: torch.where(full, 0.0, leaf) for name, leaf in after.items()}
            return cleared | {f"weights_{layer}": torch.where(full, live, base)}
        anchor = leaves[f"anchor_{layer}"]
        if block.restarted is not None:
            restarted = block.restarted[:, -1, None, None, None]
            anchor = torch.where(restarted, self.net.initial(layer), anchor)
        after[f"anchor_{layer}"] = torch.where(full, live, anchor)
        return after | {f"weights_{layer}": live}


def _apply_live(moved: Mapping[str, Moved], layer: str, x: Tensor) -> Tensor:
    """`W x` for blocks of one token, whose weights are there already."""
    return x @ moved[layer].live.mT


def _fold_gate(gate: Tensor, grid: Grid, mask: Tensor | None) -> Tensor:
    """`[B, T, H]` to `[B, H, N, L]`, zero where the token is masked: no step, no decay."""
    if mask is not None:
        gate = torch.where(mask.unsqueeze(-1), gate, 0.0)
    return grid.fold(gate).movedim(3, 1)
