"""Solver of neural memories: every token of a cell takes its gradient at the cell's anchor.

    g_t = grad loss(f_A(k_t), v_t),   W_t = mixing of g_1 .. g_t,   o_t = f_{W_t}(q_t)
    A <- W_t when the cell has had `chunk_size` valid tokens, A <- W_0 at a reset

All tokens of a cell are back-propagated at once; how the weights then move is the mixing's. A state
may be taken in the middle of a cell: it holds A, W, S and how far the cell has come.

Sources: the dual form of Sun et al. 2024 (TTT, arXiv 2407.04620), here with decay and momentum as
in Behrouz et al. 2025 (Titans, arXiv 2501.00663), resets, masks and rows at their own phases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from .fast_net import Factors, FastNet, LinearNet
from .grid import Grid
from .heads import Heads
from .limits import GainLimit, shorten
from .mixing import Decay
from .motion import LayerBlock, Mixing, split_blocks
from .objective import Objective
from .pair_window import BlockPairs, PairWindow
from .rule import Rule
from .solver import Solver
from .views import Tokens


class Block(NamedTuple):
    """L tokens of one block of the grid, the P pairs that they see and its flags."""

    query: Tensor
    """`[B, H, L, K]`"""
    key: Tensor
    """`[B, H, P, K]`"""
    value: Tensor
    """`[B, H, P, V]`"""
    coefficients: Any
    full: Tensor
    """`[B]`: whether a cell ends with the block."""
    restarted: Tensor | None
    """`[B, P]`: pairs of tokens at or after a reset, or None."""


class AnchoredGradient(Solver):
    """Trains a `net` online, with gradients that see the weights of the last cell border.

    `chunk_size` is part of the model, not only of its cost: 1 is the plain online rule. Masked
    tokens do not count for the cell; a reset does not move the cell's border.

    Two limits (`memory/limits.py`): errors whose root mean square over the value channels exceeds
    `largest_error` are shortened to it; gradients are shortened until a unit step moves the token's
    own prediction by at most `largest_gain` times its error.
    A linear net with unit keys has gain 1.

    With a `window` c > 1 every token improves the last c pairs (`memory/pair_window.py`).
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
        window: int = 1,
    ) -> None:
        super().__init__(heads, objective)
        if not largest_error > 0:
            raise ValueError(f"largest_error must be above 0, got {largest_error}; use 2.0")
        self.net = net(heads)
        self.mixing = mixing(heads, chunk_size)
        self.window = PairWindow(heads, window)
        self.gates = self.mixing.gates
        self.chunk_size = chunk_size
        self.gain_limit = GainLimit(largest_gain)
        self.longest_error = largest_error * heads.value_width**0.5

    def check_rule(self, rule: Rule) -> None:
        self.mixing.check_rule(rule, len(self.net.layers))

    def init_state(self, batch: int) -> dict[str, Tensor]:
        """Leaves of every layer, `[B, H, out, in]`: `weights_*` and others of the mixing; `phase`.

        Also the own leaves of the mixing and of the window.
        """
        leaves: dict[str, Tensor] = {}
        for layer in self.net.layers:
            weights = self.net.initial(layer).expand(batch, -1, -1, -1)
            leaves |= _named(self.mixing.init_layer(weights), layer)
        leaves["phase"] = weights.new_zeros(batch, dtype=torch.int64)
        return (
            leaves | self.mixing.init_state(batch, weights) | self.window.init_state(batch, weights)
        )

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
        coefficients, next_state = self.mixing(gates, grid, state)
        pairs, next_window = self.window(tokens, grid, state, reset, mask)

        leaves = {layer: _kinds(state, layer) for layer in self.net.layers}
        reads = []
        for block in self._blocks(tokens.query, pairs, grid, coefficients):
            read, leaves = self._run(block, leaves)
            reads.append(read)
        for layer, kinds in leaves.items():
            next_state |= _named(kinds, layer)
        next_state |= next_window | {"phase": grid.next_phase}
        return grid.unfold(torch.stack(reads, dim=1).transpose(2, 3)), next_state

    def _blocks(
        self, query: Tensor, pairs: BlockPairs, grid: Grid, coefficients: Any
    ) -> Iterator[Block]:
        """The blocks of the grid, in order."""
        # A net is not linear: it must meet queries on the scale of the keys it was trained on.
        query = grid.fold(query * self.heads.key_width**0.5)
        views = (view.transpose(2, 3).unbind(1) for view in (query, pairs.key, pairs.value))
        queries, keys, values = views
        restarted = grid.restarted
        if pairs.shares is not None:
            coefficients = _share_out(coefficients, pairs.shares)
            if restarted is not None:
                # Older pairs are seen from before a reset only.
                restarted = functional.pad(restarted, (pairs.key.shape[2] - grid.num_slots, 0))
        for n, part in enumerate(split_blocks(coefficients)):
            after_reset = None if restarted is None else restarted[:, n]
            yield Block(queries[n], keys[n], values[n], part, grid.full[:, n], after_reset)

    def _run(
        self, block: Block, leaves: Mapping[str, Mapping[str, Tensor]]
    ) -> tuple[Tensor, dict[str, dict[str, Tensor]]]:
        """Reads `[B, H, L, V]` of a block and the leaves after it, by layer and kind."""
        anchors = {layer: kinds[self.mixing.anchor] for layer, kinds in leaves.items()}
        factors = self._factors(block, anchors)
        full = block.full.view(-1, 1, 1, 1)
        restarted = block.restarted
        if restarted is not None:
            restarted = restarted[:, -1, None, None, None]
        moved = {}
        for number, layer in enumerate(self.net.layers):
            one = LayerBlock(
                coefficients=block.coefficients,
                factors=factors[layer],
                initial=self.net.initial(layer),
                full=full,
                restarted=restarted,
                layer=number,
            )
            moved[layer] = self.mixing.move(one, leaves[layer])
        read = self.net.read(block.query, lambda layer, x: moved[layer].apply(x))
        return read, {layer: after.leaves for layer, after in moved.items()}

    def _factors(self, block: Block, anchors: Mapping[str, Tensor]) -> dict[str, Factors]:
        """Every pair's limited gradient, at the anchor or, after a reset, the initial weights."""
        factors = self._factors_at(anchors, block)
        if block.restarted is not None:
            initial = {layer: self.net.initial(layer) for layer in self.net.layers}
            fresh = self._factors_at(initial, block)
            restarted = block.restarted[:, None, :, None]
            for layer, (errors, inputs) in factors.items():
                factors[layer] = Factors(
                    torch.where(restarted, fresh[layer].errors, errors),
                    torch.where(restarted, fresh[layer].inputs, inputs),
                )
        limited: dict[str, Factors] = self.gain_limit(factors)
        return limited

    def _factors_at(self, weights: Mapping[str, Tensor], block: Block) -> dict[str, Factors]:
        """Every pair's gradient at `weights`."""
        gradient = partial(self._loss_gradient, block.value)
        return self.net.factors(weights, block.key, gradient)

    def _loss_gradient(self, value: Tensor, prediction: Tensor) -> Tensor:
        return shorten(self.objective.gradient(prediction, value), self.longest_error)


def _kinds(state: Mapping[str, Tensor], layer: str) -> dict[str, Tensor]:
    """The leaves of one layer by kind."""
    named = (name.rpartition("_") for name in state)
    return {kind: state[f"{kind}_{layer}"] for kind, _, name in named if name == layer}


def _named(kinds: Mapping[str, Tensor], layer: str) -> dict[str, Tensor]:
    """The leaves of one layer by their names in the state."""
    return {f"{kind}_{layer}": leaf for kind, leaf in kinds.items()}


def _share_out(coefficients: Any, shares: Tensor) -> Any:
    """Coefficients of the pairs, `[..., P]`, from those of the tokens that improve them."""
    of_tokens = (name for name in ("gradients", "step_gradients") if name in coefficients._fields)
    parts = {name: getattr(coefficients, name) for name in of_tokens}
    changes = {name: part @ shares for name, part in parts.items() if part is not None}
    return coefficients._replace(**changes)


def _fold_gate(gate: Tensor, grid: Grid, mask: Tensor | None) -> Tensor:
    """`[B, T, H, ...]` to `[B, H, N, L, ...]`, zero for masked tokens: no step, no decay."""
    if mask is not None:
        gate = torch.where(mask.view(*mask.shape, *(1,) * (gate.ndim - 2)), gate, 0.0)
    return grid.fold(gate).movedim(3, 1)
