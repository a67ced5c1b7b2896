"""The cache of badly predicted pairs against a loop over tokens with a plain list as cache."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from sojourn.memory import (
    AbsorbLosers,
    CachedDelta,
    Gates,
    Heads,
    Rehearse,
    SquaredError,
    Tokens,
)

BATCH, HEADS, KEY, VALUE, STEPS = 3, 2, 4, 3, 17
HEAD = Heads(width=8, num_heads=HEADS, key_width=KEY, value_width=VALUE)
STORAGES = {
    "rehearse": Rehearse,
    "rehearse, no fading": partial(Rehearse, score_half_life=math.inf),
    "absorb losers": AbsorbLosers,
}


PARTS = ("keys", "values", "rates", "scores")


class OneHead:
    """One head of one row, as it is defined; a cached pair is `[key, value, rate, score]`."""

    def __init__(self, solver, head: int, leaves: dict[str, Tensor]) -> None:
        self.solver, self.head = solver, head
        self.losers_only = isinstance(solver.storage, AbsorbLosers)
        self.initial = solver.memory.initial_weights[head]
        self.weights = leaves["weights"]
        self.anchor = leaves.get("anchor")
        slots = zip(*(leaves[f"cache_{n}"] for n in PARTS), strict=True)
        self.cache = [[*slot[:3], slot[3].detach()] for slot in slots if slot[3] >= 0]
        self.phase = int(leaves["phase"])

    def restart(self) -> None:
        self.weights = self.anchor = self.initial
        self.cache = []

    def delta(self, key, value, rate, retention=1.0) -> Tensor:
        decayed = retention * self.weights
        previous = self.solver.objective.predicts_with == "previous"
        error = value - (self.weights if previous else decayed) @ key
        self.weights = decayed + rate * torch.outer(error, key)
        return error

    def give_up(self):
        """Sorted, worst predicted first; what does not fit is returned."""
        self.cache.sort(key=lambda pair: -pair[3])  # stable: the older of two equals stays first
        return self.cache.pop() if len(self.cache) > self.solver.cache_size else None

    def write(self, key, value, retention, rate) -> None:
        if self.losers_only:
            error = value - self.anchor @ key
            self.cache.append([key, value, rate, (rate * error.norm()).detach()])
            loser = self.give_up() or [torch.zeros_like(key), torch.zeros_like(value), 0.0]
            self.delta(*loser[:3], retention)
        else:
            error = self.delta(key, value, rate, retention)
            self.cache.append([key, value, rate, (rate * error.norm()).detach()])
            self.give_up()
        self.phase += 1

    def read(self, query: Tensor) -> Tensor:
        read = self.weights @ query
        if self.cache:
            keys, values = (torch.stack(part) for part in list(zip(*self.cache, strict=True))[:2])
            sharpness = self.solver.log_sharpness.exp()[self.head, 0, 0]
            read = read + self.solver.strength[self.head] * (
                functional.softmax(sharpness * keys @ query, -1) @ values
            )
        return read

    def close_period(self) -> None:
        if self.phase < self.solver.period:
            return
        self.phase = 0
        if self.losers_only:
            self.anchor = self.weights
            for pair in self.cache:
                pair[3] = (pair[2] * (pair[1] - self.weights @ pair[0]).norm()).detach()
            self.give_up()
        else:
            for pair in self.cache:
                self.delta(*pair[:3])
                pair[3] = pair[3] * self.solver.storage.fading

    def leaves(self) -> dict[str, Tensor]:
        empty = [torch.zeros(KEY), torch.zeros(VALUE), torch.tensor(0.0), torch.tensor(-1.0)]
        slots = self.cache + [empty] * (self.solver.cache_size - len(self.cache))
        keys, values, rates, scores = (
            torch.stack([one.double() for one in part]) for part in zip(*slots, strict=True)
        )
        found = {"weights": self.weights, "cache_keys": keys, "cache_values": values}
        found |= {"cache_rates": rates, "cache_scores": scores}
        return found | ({"anchor": self.anchor} if self.losers_only else {})


def online_loop(solver, tokens, gates, state, reset, mask):
    reads, finals = [], []
    for b in range(BATCH):
        for h in range(HEADS):
            leaves = {n: leaf[b, h] if leaf.ndim > 1 else leaf[b] for n, leaf in state.items()}
            one = OneHead(solver, h, leaves)
            for t in range(tokens.query.shape[1]):
                query, key, value = (view[b, t, h] for view in tokens)
                if reset is not None and reset[b, t]:
                    one.restart()
                valid = mask is None or mask[b, t]
                if valid:
                    one.write(key, value, gates[0][b, t, h].exp(), gates[1][b, t, h])
                reads.append(one.read(query))
                if valid:
                    one.close_period()
            finals.append(one.leaves())
    reads = torch.stack(reads).view(BATCH, HEADS, -1, VALUE).transpose(1, 2)
    stacked = {n: torch.stack([one[n] for one in finals]) for n in finals[0]}
    return reads, {n: leaf.unflatten(0, (BATCH, HEADS)) for n, leaf in stacked.items()}


def make_solver(storage="rehearse", dtype=torch.float64, **changes) -> CachedDelta:
    changes = {"cache_size": 3, "period": 4, "taken_at": "decayed"} | changes
    objective = SquaredError(HEAD, changes.pop("taken_at"))
    solver = CachedDelta(HEAD, objective, STORAGES[storage], **changes).to(dtype)
    with torch.no_grad():
        for parameter in solver.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return solver


def make_inputs(steps=STEPS, dtype=torch.float64):
    def normal(size: int) -> Tensor:
        return torch.randn(BATCH, steps, HEADS, size, dtype=dtype)

    views = normal(KEY) / 2, functional.normalize(normal(KEY), dim=-1), normal(VALUE)
    gates = functional.logsigmoid(normal(1) + 3).squeeze(-1), torch.sigmoid(normal(1)).squeeze(-1)
    return (
        Tokens(*(view.requires_grad_() for view in views)),
        Gates(*(gate.requires_grad_() for gate in gates)),
    )


def live_state(solver) -> dict[str, Tensor]:
    """A state that has seen 7, 5 and 2 tokens: rows at different places of their periods."""
    tokens, gates = make_inputs(7)
    valid = torch.arange(7) < torch.tensor([[7], [5], [2]])
    _, state = solver(tokens, gates, solver.init_state(BATCH), None, valid)
    return {
        n: leaf.detach().requires_grad_() if leaf.is_floating_point() else leaf
        for n, leaf in state.items()
    }


def make_flags(kind: str) -> tuple[Tensor | None, Tensor | None]:
    reset = torch.rand(BATCH, STEPS) < 0.12
    reset[0, 0] = reset[1, 5] = reset[1, 6] = reset[2, -1] = True
    mask = torch.rand(BATCH, STEPS) < 0.7
    mask[0, 3:12] = mask[1, 5] = False
    return (reset if "reset" in kind else None), (mask if "mask" in kind else None)


def assert_equals_the_loop(solver: CachedDelta, kind: str) -> None:
    (tokens, gates), flags, state = make_inputs(), make_flags(kind), live_state(solver)
    sources = [*tokens, *gates, *solver.parameters()]
    sources += [leaf for n, leaf in state.items() if leaf.is_floating_point() and "scores" not in n]
    results = []
    for run in (partial(online_loop, solver), solver):
        reads, final = run(tokens, gates, state, *flags)
        final = {name: final[name] for name in sorted(final) if name != "phase"}
        total = reads.tanh().square().sum() + sum(leaf.sin().sum() for leaf in final.values())
        gradients = torch.autograd.grad(total, sources, allow_unused=True, materialize_grads=True)
        results.append((reads, *final.values(), *gradients))
    for truth, fast in zip(*results, strict=True):
        torch.testing.assert_close(fast, truth, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", ["none", "reset", "mask", "reset and mask"])
@pytest.mark.parametrize("storage", STORAGES)
def test_blocks_equal_the_loop(storage, kind):
    assert_equals_the_loop(make_solver(storage), kind)


@pytest.mark.parametrize(
    "changes",
    [
        {"period": 1},
        {"period": 7, "cache_size": 1},
        {"period": 100, "cache_size": 9},
        {"taken_at": "previous"},
    ],
    ids=str,
)
@pytest.mark.parametrize("storage", ["rehearse", "absorb losers"])
def test_any_period_and_size_equal_the_loop(storage, changes):
    assert_equals_the_loop(make_solver(storage, **changes), "reset and mask")
