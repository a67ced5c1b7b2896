"""The recurrences that are timed: ours, and the published ones on the same tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from sojourn.memory import (
    AnchoredGradient,
    ChannelDelta,
    ConjugateGradient,
    DotProduct,
    Edits,
    ExactChannel,
    ExactMomentum,
    ExactScalar,
    FeedbackDelta,
    Gates,
    Heads,
    Mesa,
    MomentumDecay,
    MomentumGates,
    SquaredError,
    Tokens,
    TwoLayerNet,
)

Call = Callable[[], Tensor]
SHAPES = {"B=16 T=64 d=16": (16, 64, 16), "B=4 T=512 d=32": (4, 512, 32)}
HEADS = 2
CHUNKS = (16, 32, 64)


class Views(NamedTuple):
    """Leaves `[B, T, H, ...]` that both sides differentiate by; d key and value channels."""

    query: Tensor
    key: Tensor
    value: Tensor
    rate: Tensor
    retention: Tensor
    momentum: Tensor
    channel_retention: Tensor
    channel_rate: Tensor

    @property
    def tokens(self) -> Tokens:
        return Tokens(self.query * self.query.shape[-1] ** -0.5, self.key, self.value)


class Row(NamedTuple):
    """Our call and, by name of the setting, theirs: the fastest of them counts."""

    title: str
    ours: Call
    theirs: dict[str, Call]


def make_views(batch: int, steps: int, width: int) -> Views:
    """Random views and gates."""
    torch.manual_seed(0)

    def normal(*size: int) -> Tensor:
        return torch.randn(batch, steps, HEADS, *size)

    views = Views(
        normal(width),
        functional.normalize(normal(width), dim=-1),
        normal(width),
        normal().sigmoid(),
        functional.logsigmoid(normal() + 3),
        functional.logsigmoid(normal() + 1),
        functional.logsigmoid(normal(width) + 3),
        normal(width).sigmoid(),
    )
    return Views(*(view.requires_grad_() for view in views))


def published(module: str, function: str) -> Callable[..., Any]:
    """A reference of flash-linear-attention."""
    return getattr(import_module(f"fla.ops.{module}.naive"), function)  # type: ignore[no-any-return]


def by_chunk(module: str, function: str, *views: Tensor, **options: Any) -> dict[str, Call]:
    """Their chunk form at several chunk sizes."""
    call = published(module, function)
    return {
        f"C={chunk}": lambda chunk=chunk: call(*views, chunk_size=chunk, **options)[0]
        for chunk in CHUNKS
    }


def scalar_rows(x: Views, heads: Heads) -> list[Row]:
    """One retention per head."""

    def solve(solver: ExactScalar, retention: Tensor, rate: Tensor) -> Tensor:
        state = solver.init_state(x.query.shape[0])
        return solver(x.tokens, Gates(retention, rate), state, None, None)[0]

    hebbian = ExactScalar(heads, DotProduct(heads))
    additive = ExactScalar(heads, DotProduct(heads), chunk_size=32)
    additive.forgets = False
    delta = ExactScalar(heads, SquaredError(heads))
    none, one = torch.zeros_like(x.rate), torch.ones_like(x.rate)
    qkv = (x.query, x.key, x.value)
    linear = published("linear_attn", "naive_chunk_linear_attn")
    swapped = [view.detach().transpose(1, 2).requires_grad_() for view in (*qkv, x.rate)]
    return [
        Row("linear attention", lambda: solve(additive, none, one), {"C=64": lambda: linear(*qkv)}),
        Row(
            "one retention, Hebbian",
            lambda: solve(hebbian, x.retention, one),
            by_chunk("simple_gla", "naive_chunk_simple_gla", *qkv, x.retention),
        ),
        Row(
            "DeltaNet",
            lambda: solve(delta, none, x.rate),
            by_chunk("delta_rule", "delta_rule_chunkwise", *swapped),
        ),
        Row(
            "Gated DeltaNet",
            lambda: solve(delta, x.retention, x.rate),
            by_chunk("gated_delta_rule", "naive_chunk_gated_delta_rule", *qkv, x.retention, x.rate),
        ),
    ]


def channel_rows(x: Views, heads: Heads) -> list[Row]:
    """One retention per key channel, and Comba."""
    qkv = (x.query, x.key, x.value)
    delta, feedback = (ExactChannel(rule(heads)) for rule in (ChannelDelta, FeedbackDelta))

    def solve(solver: ExactChannel, erase: Tensor, write: Tensor, retention: Tensor) -> Tensor:
        query, key, value = x.tokens
        edits = Edits(query, erase * key, key, write * value, retention)
        return solver(edits, solver.init_state(x.query.shape[0]), None, None, None)[0]

    def kda() -> Tensor:
        rate = x.rate.unsqueeze(-1)
        return solve(delta, rate, rate, x.channel_retention)

    def comba() -> Tensor:
        rate = x.rate.unsqueeze(-1)
        return solve(feedback, rate, rate, x.retention.unsqueeze(-1))

    def gdn2() -> Tensor:
        return solve(delta, x.channel_rate, x.channel_rate, x.channel_retention)

    gates = (x.channel_retention, x.channel_rate, x.channel_rate)
    return [
        Row("KDA", kda, by_chunk("kda", "naive_chunk_kda", *qkv, x.channel_retention, x.rate)),
        Row("Gated DeltaNet-2", gdn2, by_chunk("gdn2", "naive_chunk_gdn2", *qkv, *gates)),
        Row(
            "Comba", comba, by_chunk("comba", "naive_chunk_comba", *qkv, x.key, x.retention, x.rate)
        ),
    ]


def other_rows(x: Views, heads: Heads) -> list[Row]:
    """Momentum, ridge regression, and a neural memory whose tokens share anchors of 16."""
    batch, width = x.query.shape[0], heads.key_width
    momentum = ExactMomentum(heads, SquaredError(heads, "previous"))
    gates = MomentumGates(x.retention, x.rate, x.momentum, torch.ones_like(x.rate))
    theirs = by_chunk(
        "momentum_delta_rule",
        "chunk_momentum_delta_rule_ref",
        *(x.query, x.key, x.value, x.key, x.retention, x.momentum),
        *(torch.ones_like(x.rate), x.rate),
    )
    iterations = 30
    cholesky = Mesa(heads, SquaredError(heads))
    iterative = Mesa(heads, SquaredError(heads), partial(ConjugateGradient, iterations))
    ridge = torch.ones(HEADS, width)
    conjugate = published("mesa_net", "naive_mesa_net_CG")
    views = (x.query, x.key, x.value, x.retention, ridge, x.rate)
    mesa = {f"C={c}": lambda c=c: conjugate(*views, c, iterations)[0] for c in CHUNKS}
    plain = Gates(x.retention, x.rate)

    def solve(solver: Any, gates: Any) -> Tensor:
        return solver(x.tokens, gates, solver.init_state(batch), None, None)[0]  # type: ignore[no-any-return]

    return [
        Row("Momentum DeltaNet", lambda: solve(momentum, gates), theirs),
        Row("MesaNet, 30 iterations", lambda: solve(iterative, plain), mesa),
        Row("MesaNet, ours by Cholesky", lambda: solve(cholesky, plain), mesa),
        neural_row(x, width),
    ]


def neural_row(x: Views, width: int) -> Row:
    """Titans: their module against our solver fed by the projections of that module."""
    cell = 16
    package = import_module("titans_pytorch")
    options = {"pre_rmsnorm": False, "mem_model_norm_add_residual": False}
    theirs = package.NeuralMemory(width, chunk_size=1, batch_size=cell, **options)
    heads = Heads(width, 1, width, width)
    solver = AnchoredGradient(
        heads,
        SquaredError(heads),
        TwoLayerNet,
        MomentumDecay,
        chunk_size=cell,
        largest_error=math.inf,
        largest_gain=math.inf,
    )
    tokens_in = x.query[:, :, 0]

    def ours() -> Tensor:
        projections = (theirs.to_queries, theirs.to_keys, theirs.to_values)
        tokens = Tokens(*(projection(tokens_in).unsqueeze(2) for projection in projections))
        rate = 2 / width * theirs.to_adaptive_step[0](tokens_in).sigmoid()
        decay = functional.logsigmoid(-theirs.to_decay_factor[0](tokens_in))
        momentum = functional.logsigmoid(theirs.to_momentum[0](tokens_in))
        gates = MomentumGates(decay, rate, momentum, torch.ones_like(rate))
        state = solver.init_state(tokens_in.shape[0])
        return solver(tokens, gates, state, None, None)[0]  # type: ignore[no-any-return]

    return Row("Titans, two layers", ours, {"titans-pytorch": lambda: theirs(tokens_in)[0]})
