"""Muon at every token: weights that fade and take an orthogonalised step of the momentum.

    S_t = m_t S_{t-1} - b_t g_t,   W_t = a_t W_{t-1} + p_t Muon(S_t)

g_t is the gradient of token t, or of its window, at the anchor. Muon is not linear, so that S_t and
W_t are formed for every token: C |W| numbers per cell and 4 products of layer size per token.

Source: Behrouz et al. 2025 (ATLAS, arXiv 2505.23735).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .decay import ChunkDecay
from .grid import Grid
from .heads import Heads
from .mixing import over_heads
from .motion import LayerBlock, Mixing, Moved, restart
from .muon import Orthogonalise, PostStep
from .steps import MomentumGates


class OrthogonalMixture(NamedTuple):
    """Coefficients of N blocks of L slots over P pairs.

    S_t = accumulated_t S + sum_j gradients[t, j] g_j
    W_t = carried_t W + initial_t W_0 + sum_i steps[t, i] Muon(S_i)
    """

    gradients: Tensor
    """`[B, H, N, L, P]`"""
    steps: Tensor
    """`[B, H, N, L, L]`"""
    accumulated: Tensor
    """`[B, H, N, L]`, as `carried` and `initial`."""
    carried: Tensor
    initial: Tensor | None


class OrthogonalMomentumDecay(Mixing):
    """`MomentumDecay` whose momentum passes through `post_step` before it moves the weights.

    The gate `gain` is the length p of a step.
    """

    gates = MomentumGates

    def __init__(
        self,
        heads: Heads,
        chunk_size: int,
        post_step: Callable[[Heads], PostStep] = Orthogonalise,
    ) -> None:
        super().__init__(heads, chunk_size)
        self.post_step = post_step(heads)

    def init_layer(self, weights: Tensor) -> dict[str, Tensor]:
        return {"weights": weights, "anchor": weights, "step": torch.zeros_like(weights)}

    def forward(
        self, gates: Any, grid: Grid, state: Mapping[str, Tensor]
    ) -> tuple[OrthogonalMixture, dict[str, Tensor]]:
        reset = over_heads(grid.reset)
        after = ChunkDecay(gates.log_retention, reset).after_write()
        momentum = ChunkDecay(gates.log_momentum, reset).after_write()
        # A masked token must not take the step once more.
        gain = gates.gain * grid.valid.unsqueeze(1)
        mixture = OrthogonalMixture(
            gradients=-momentum.writes * gates.write_rate.unsqueeze(-2),
            steps=after.writes * gain.unsqueeze(-2),
            accumulated=momentum.carried,
            carried=after.carried,
            initial=after.initial,
        )
        return mixture, {}

    def move(self, block: LayerBlock, leaves: Mapping[str, Tensor]) -> Moved:
        mixture, (errors, inputs) = block.coefficients, block.factors
        weighted = mixture.gradients.unsqueeze(-1) * errors.unsqueeze(2)
        step = weighted.mT @ inputs.unsqueeze(2)
        step = step + mixture.accumulated[..., None, None] * leaves["step"].unsqueeze(2)
        flat = mixture.steps @ self.post_step(step).flatten(3)
        weights = torch.unflatten(flat, 3, step.shape[3:])
        weights = weights + mixture.carried[..., None, None] * leaves["weights"].unsqueeze(2)
        if mixture.initial is not None:
            weights = weights + mixture.initial[..., None, None] * block.initial.unsqueeze(1)
        live = weights[:, :, -1]
        anchor = torch.where(block.full, live, restart(leaves["anchor"], block))
        after = {"weights": live, "anchor": anchor, "step": step[:, :, -1]}
        return Moved(partial(_multiply_each, weights), after)


def _multiply_each(weights: Tensor, x: Tensor) -> Tensor:
    """`W_t x_t` from `[B, H, L, out, in]` and `[B, H, L, in]`."""
    return (weights @ x.unsqueeze(-1)).squeeze(-1)
