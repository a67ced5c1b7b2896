"""What an update rule can do alone: random unit keys, fixed gates, no training.

    recall        the stored value nearest in angle to the read is the right one, over all n pairs
    age           the same by quarter of the stream, oldest first
    overwriting   the latest of R values of each of 16 keys wins over all values ever written
    correlated    recall of 16 pairs whose keys share a direction: cosines of about rho
    unseen        R^2 on new keys after 128 pairs of a linear map, and of a two-layer tanh network

All rules see the same pairs, of key width = value width = `WIDTH`, with one head.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from sojourn.memory import ChannelGatedMemory, FastWeightMemory, MemoryCore, Tokens

from .task import permutations
from .training import make_generator

WIDTH = 32
NUM_ROWS = 16
RECALL_PAIRS = (16, 32, 64, 96)
ASSIGNMENTS = (1, 2, 4, 8)
CORRELATIONS = (0.0, 0.3, 0.6)
FEW_PAIRS = 16  # under overwriting and correlation
SEEN, UNSEEN = 128, 64

Reader = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Reads `[B, m, V]` at queries `[B, m, K]` after writing keys `[B, n, K]`, values `[B, n, V]`."""


class Pairs(NamedTuple):
    """Unit keys and values in the order of writing, `[B, n, K]` and `[B, n, V]`."""

    keys: Tensor
    values: Tensor


def reader_of(memory: MemoryCore) -> Reader | None:
    """A memory's own rule and solver, fed with keys and values instead of tokens.

    Only a feature map that makes keys longer is applied to them. Gates are those of an input of
    zeros. None for memories that are not made of fast weights.
    """
    if isinstance(memory, FastWeightMemory):
        return partial(_read_fast_weights, memory)
    if isinstance(memory, ChannelGatedMemory):
        return partial(_read_channels, memory)
    return None


@torch.no_grad()
def measure_rule(read: Reader) -> dict[str, dict[float, float]]:
    """Name of a table of the module's docstring -> its x -> score."""
    return {
        "recall": {n: recall(read, random_pairs(n)) for n in RECALL_PAIRS},
        "age": dict(enumerate(_by_age(read, random_pairs(RECALL_PAIRS[-1])), start=1)),
        "overwriting": {r: overwriting(read, r) for r in ASSIGNMENTS},
        "correlated": {rho: recall(read, random_pairs(FEW_PAIRS, rho)) for rho in CORRELATIONS},
        "unseen": {i: _unseen(read, make) for i, make in enumerate((_linear, _network), start=1)},
    }


def random_pairs(count: int, correlation: float = 0.0) -> Pairs:
    """`count` pairs for each of `NUM_ROWS` rows; equal arguments give equal bits."""
    generator = make_generator(count)
    shared = _unit(torch.randn(NUM_ROWS, 1, WIDTH, generator=generator))
    own = _unit(torch.randn(NUM_ROWS, count, WIDTH, generator=generator))
    keys = _unit(correlation**0.5 * shared + (1 - correlation) ** 0.5 * own)
    return Pairs(keys, _unit(torch.randn(NUM_ROWS, count, WIDTH, generator=generator)))


def recall(read: Reader, pairs: Pairs) -> float:
    """Share of all pairs whose value is read."""
    return float(_hits(read, pairs).mean())


def overwriting(read: Reader, assignments: int) -> float:
    """Share of keys whose latest value is read, among all values ever written."""
    generator = make_generator(FEW_PAIRS, assignments)
    keys = random_pairs(FEW_PAIRS).keys
    rounds = [
        _unit(torch.randn(NUM_ROWS, FEW_PAIRS, WIDTH, generator=generator))
        for _ in range(assignments)
    ]
    orders = [permutations(1, FEW_PAIRS, generator)[0] for _ in rounds]
    written = Pairs(
        torch.cat([keys[:, order] for order in orders], dim=1),
        torch.cat([values[:, order] for values, order in zip(rounds, orders, strict=True)], dim=1),
    )
    candidates = torch.cat(rounds[::-1], dim=1)
    reads = read(written.keys, written.values, keys)
    return float(_right(reads, candidates).mean())


def _hits(read: Reader, pairs: Pairs) -> Tensor:
    return _right(read(pairs.keys, pairs.values, pairs.keys), pairs.values)


def _right(reads: Tensor, candidates: Tensor) -> Tensor:
    """`[B, n]`: 1 where the i-th read is nearest in angle to the i-th candidate."""
    nearest = (_unit(reads) @ _unit(candidates).mT).argmax(-1)
    return (nearest == torch.arange(reads.shape[1])).double()


def _by_age(read: Reader, pairs: Pairs) -> list[float]:
    return [float(quarter.mean()) for quarter in _hits(read, pairs).chunk(4, dim=1)]


def _unseen(
    read: Reader, make_map: Callable[[torch.Generator], Callable[[Tensor], Tensor]]
) -> float:
    generator = make_generator(SEEN)
    keys = _unit(torch.randn(NUM_ROWS, SEEN + UNSEEN, WIDTH, generator=generator))
    values = make_map(generator)(keys)
    reads = read(keys[:, :SEEN], values[:, :SEEN], keys[:, SEEN:])
    wanted = values[:, SEEN:]
    return float(1 - (reads - wanted).square().sum() / wanted.square().sum())


def _linear(generator: torch.Generator) -> Callable[[Tensor], Tensor]:
    matrix = torch.randn(NUM_ROWS, WIDTH, WIDTH, generator=generator) * WIDTH**-0.5
    return lambda keys: keys @ matrix


def _network(generator: torch.Generator) -> Callable[[Tensor], Tensor]:
    hidden = torch.randn(NUM_ROWS, WIDTH, 2 * WIDTH, generator=generator) * 2
    outer = torch.randn(NUM_ROWS, 2 * WIDTH, WIDTH, generator=generator) / 8
    return lambda keys: torch.tanh(2 * keys @ hidden) @ outer


def _unit(x: Tensor) -> Tensor:
    return functional.normalize(x, dim=-1)


def write_then_ask(
    keys: Tensor, values: Tensor, queries: Tensor, writes: int = 1
) -> tuple[Tokens, Tensor]:
    """One head's tokens: the pairs, then the queries, which the mask `[B, n + m]` keeps from
    writing. A token that writes several pairs writes the same one each time.
    """
    key = functional.pad(keys, (0, 0, 0, queries.shape[1])).unsqueeze(2)
    value = functional.pad(values, (0, 0, 0, queries.shape[1])).unsqueeze(2)
    query = functional.pad(queries, (0, 0, keys.shape[1], 0)).unsqueeze(2)
    mask = torch.arange(key.shape[1]) < keys.shape[1]
    tokens = Tokens(query, key.expand(-1, -1, writes, -1), value.expand(-1, -1, writes, -1))
    return tokens, mask.expand(keys.shape[0], -1)


def _read_fast_weights(
    memory: FastWeightMemory, keys: Tensor, values: Tensor, queries: Tensor
) -> Tensor:
    keys, queries = memory.views.lengthened(keys), memory.views.lengthened(queries)
    if memory.anchored:  # such solvers expect the scale of the views' queries and undo it
        queries = queries * keys.shape[-1] ** -0.5
    tokens, mask = write_then_ask(keys, values, queries, memory.solver.heads.num_writes)
    features = tokens.query.new_zeros(*mask.shape, memory.rule.num_features)
    gates = memory.rule(features, tokens)
    state: Mapping[str, Tensor] = dict(memory.init_state(keys.shape[0]).items())
    reads, _ = memory.solver(tokens, gates, state, None, mask)
    found: Tensor = reads[:, keys.shape[1] :, 0]
    return found


def _read_channels(
    memory: ChannelGatedMemory, keys: Tensor, values: Tensor, queries: Tensor
) -> Tensor:
    keys, queries = memory.views.lengthened(keys), memory.views.lengthened(queries)
    tokens, mask = write_then_ask(keys, values, queries)
    features = tokens.query.new_zeros(*mask.shape, memory.rule.num_features)
    edits = memory.rule(features, tokens)
    state: Mapping[str, Tensor] = dict(memory.init_state(keys.shape[0]).items())
    reads, _ = memory.solver(edits, state, None, mask, mask)
    found: Tensor = reads[:, keys.shape[1] :].sum(2)
    return found
