"""Textbook update rules, composed from the memory's own pieces with fixed gates.

Hebb          W += v k^T
delta         W += (v - W k) k^T
gated delta   W = .98 W, then delta
ridge         W = argmin sum |W k - v|^2 + .01 |W|^2
network       one gradient step per pair, rate 1/2, of a net with 256 hidden units
softmax       sum_j softmax_j(12 q . k_j) v_j, over all pairs or over the last 32
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from sojourn.memory import (
    AnchoredGradient,
    Cache,
    ConstantRate,
    DotProduct,
    FastWeightMemory,
    FixedRetention,
    GradientStep,
    GrowingCache,
    Heads,
    Mesa,
    NoDecay,
    SlidingWindow,
    Softmax,
    TwoLayerNet,
)

from .rules import WIDTH, Reader, reader_of, write_then_ask

HALF_LIFE = math.log(0.5) / math.log(0.98)
SMALL_RIDGE = 0.01
RIDGE = 0.26  # of the solver, whose smallest is a quarter: longer keys make it relatively smaller
HIDDEN_UNITS = 256
SHARPNESS = 12.0
WINDOW = 32


def named_rules() -> dict[str, Reader]:
    """Name of a rule -> its reader."""
    step = partial(GradientStep, retention=NoDecay, write_rate=ConstantRate)
    decay = partial(FixedRetention, shortest=HALF_LIFE, longest=HALF_LIFE)
    make = partial(FastWeightMemory, WIDTH, num_heads=1, key_width=WIDTH, value_width=WIDTH)
    return {
        "Hebb": _reader(make(rule=step, objective=DotProduct)),
        "delta": _reader(make(rule=step)),
        "gated delta .98": _reader(make(rule=partial(step, retention=decay))),
        "ridge": _lengthened(_reader(make(rule=step, solver=partial(Mesa, ridge=RIDGE)))),
        "network": _reader(_with_network(make)),
        "softmax": partial(_attend, GrowingCache),
        f"softmax, last {WINDOW}": partial(_attend, partial(SlidingWindow, window=WINDOW)),
    }


def _reader(memory: FastWeightMemory) -> Reader:
    reader = reader_of(memory)
    assert reader is not None
    return reader


def _lengthened(read: Reader) -> Reader:
    factor = (RIDGE / SMALL_RIDGE) ** 0.5
    return lambda keys, values, queries: read(factor * keys, values, factor * queries)


def _with_network(make: Callable[..., FastWeightMemory]) -> FastWeightMemory:
    """Steps of one pair each; the hidden layer is random, the last one starts at zero."""
    half = partial(ConstantRate, rate=0.5)
    net = partial(TwoLayerNet, expansion=HIDDEN_UNITS // WIDTH)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        memory = make(
            rule=partial(GradientStep, retention=NoDecay, write_rate=half),
            solver=partial(AnchoredGradient, net=net, chunk_size=1),
        )
    nn.init.zeros_(memory.get_parameter("solver.net.initial_last"))
    return memory


def _attend(
    make_cache: Callable[[Heads], Cache], keys: Tensor, values: Tensor, queries: Tensor
) -> Tensor:
    heads = Heads(WIDTH, 1, WIDTH, WIDTH, 1)
    tokens, mask = write_then_ask(keys, values, queries)
    cache = make_cache(heads)
    occupied = torch.full((keys.shape[0],), keys.shape[1])
    tokens = tokens._replace(query=SHARPNESS * tokens.query)
    state = cache.init_state(keys.shape[0], keys) | {"position": torch.zeros_like(occupied)}
    entries, _ = cache(tokens, state, occupied, None, mask)
    found: Tensor = Softmax(heads)(tokens.query, entries)[:, keys.shape[1] :, 0]
    return found
