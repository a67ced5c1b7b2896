"""The anchored recurrence as it is defined: one row, one head, one token at a time, by autograd."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from sojourn.memory import (
    DotProduct,
    HuberError,
    LinearNet,
    MomentumGates,
    PeriodicStep,
    SquaredError,
    TwoLayerNet,
)

from .solver_inputs import HEADS

WIDTH = 4


def last_layer(net, weights: dict[str, Tensor], x: Tensor) -> Tensor:
    """The last layer of f_W(x) of one head, as it is defined."""

    def layer(name: str, x: Tensor) -> Tensor:
        one = x.new_ones(1)
        return weights[name] @ (torch.cat([x, one]) if net.num_bias_columns else x)

    if isinstance(net, LinearNet):
        return layer("last", x)
    if isinstance(net, TwoLayerNet):
        return layer("last", functional.gelu(layer("hidden", x), approximate="tanh"))
    return layer("last", functional.silu(layer("gate", x)) * layer("hidden", x))


def put_out(net, head: int, last: Tensor, x: Tensor) -> Tensor:
    if type(net.output).__name__ == "Plain":
        return last
    if type(net.output).__name__ == "Residual":
        return x + last
    scale, shift = net.output.scale[head, 0], net.output.shift[head, 0]
    return x + functional.layer_norm(last, last.shape, scale, shift, eps=1e-6)


def loss(objective, head: int, prediction: Tensor, value: Tensor) -> Tensor:
    error = prediction - value
    if isinstance(objective, SquaredError):
        return error.square().sum() / 2
    if isinstance(objective, DotProduct):
        return -(prediction * value).sum()
    if isinstance(objective, HuberError):
        c = functional.softplus(objective.threshold_bias[head])
        inside = error.abs() < c
        return torch.where(inside, error.square() / 2, c * (error.abs() - c / 2)).sum()
    return ((error.square() + 1e-4) ** (objective.power / 2) / objective.power).sum()


class OneHead:
    """One head of one row, with autograd gradients; weights are dicts by layer."""

    def __init__(self, solver, head: int, leaves: dict[str, Tensor]) -> None:
        self.solver, self.head, self.net, self.mixing = solver, head, solver.net, solver.mixing
        self.initial = {n: solver.net.initial(n)[head] for n in solver.net.layers}
        self.weights = {n: leaves[f"weights_{n}"] for n in self.initial}
        self.anchor = {n: leaves.get(f"anchor_{n}", leaves[f"weights_{n}"]) for n in self.initial}
        zeros = {n: torch.zeros_like(one) for n, one in self.initial.items()}
        self.step = {n: leaves.get(f"step_{n}", zeros[n]) for n in zeros}
        self.zeros, self.live = zeros, self.weights
        self.phase, self.count = int(leaves["phase"]), int(leaves.get("mean_count", 0))

    def restart(self) -> None:
        self.weights = self.anchor = self.live = self.initial
        self.step, self.count = self.zeros, 0

    def gradient(self, key: Tensor, value: Tensor) -> dict[str, Tensor]:
        last = last_layer(self.net, self.anchor, key)
        prediction = put_out(self.net, self.head, last, key)
        total = loss(self.solver.objective, self.head, prediction, value)
        (error,) = torch.autograd.grad(total, prediction, create_graph=True)
        error = error * (self.solver.longest_error / error.norm()).clamp(max=1)
        sources = [last, *self.anchor.values()]
        behind, *gradients = torch.autograd.grad(prediction, sources, error, create_graph=True)
        gain = sum(one.square().sum() for one in gradients) / behind.square().sum()
        scale = (self.solver.gain_limit.largest / gain).clamp(max=1)
        return {n: scale * one for n, one in zip(self.anchor, gradients, strict=True)}

    def write(self, key: Tensor, value: Tensor, retention, rate, momentum, gain) -> None:
        gradient = self.gradient(key, value)
        self.step = {n: momentum * self.step[n] - rate * gradient[n] for n in gradient}
        self.phase, self.count = self.phase + 1, self.count + 1
        if self.mixing.moves_weights:
            self.weights = {n: retention * self.weights[n] + gain * self.step[n] for n in gradient}
            self.live = self.weights
        self.set_live(retention)

    def set_live(self, retention: Tensor | float = 1.0) -> None:
        if isinstance(self.mixing, PeriodicStep):
            self.live = self.weights
            if self.phase == self.solver.chunk_size:
                self.live = {n: retention * self.weights[n] + self.step[n] for n in self.step}
        elif not self.mixing.moves_weights:
            scale = 0.0
            if self.count:
                scale = (1 / self.count + self.mixing.correction[self.count - 1]).clamp(min=0)
            self.live = {n: self.weights[n] + scale * self.step[n] for n in self.step}

    def read(self, query: Tensor) -> Tensor:
        query = query * WIDTH**0.5
        return put_out(self.net, self.head, last_layer(self.net, self.live, query), query)

    def close_cell(self) -> None:
        if self.phase == self.solver.chunk_size:
            self.weights = self.anchor = self.live
            self.phase = self.count = 0
            if not self.mixing.moves_weights:
                self.step = self.zeros

    def leaf(self, name: str) -> Tensor:
        kind, _, layer = name.partition("_")
        if kind in ("weights", "anchor", "step"):
            return getattr(self, kind)[layer]
        return torch.tensor(self.phase if name == "phase" else self.count)


def online_loop(solver, tokens, gates, state, reset, mask):
    """The recurrence as it is defined: one row, one head, one token at a time."""
    batch, steps = tokens.value.shape[:2]
    reads, finals = [], {name: [] for name in state}
    for b in range(batch):
        for h in range(HEADS):
            leaves = {n: leaf[b, h] if leaf.ndim > 1 else leaf[b] for n, leaf in state.items()}
            one = OneHead(solver, h, leaves)
            one.set_live()
            for t in range(steps):
                query, key, value = (view[b, t, h] for view in tokens)
                if reset is not None and reset[b, t]:
                    one.restart()
                if mask is None or mask[b, t]:
                    a, rate = gates.log_retention[b, t, h].exp(), gates.write_rate[b, t, h]
                    momentum, gain = float(not solver.mixing.moves_weights), 1.0
                    if isinstance(gates, MomentumGates):
                        momentum = gates.log_momentum[b, t, h].exp()
                        gain = gates.gain[b, t, h]
                    one.write(key, value, a, rate, momentum, gain)
                reads.append(one.read(query))
                one.close_cell()
            for name in state:
                finals[name].append(one.leaf(name))
    reads = torch.stack(reads).view(batch, HEADS, steps, -1).transpose(1, 2)
    stacked = {n: torch.stack(leaf).unflatten(0, (batch, HEADS)) for n, leaf in finals.items()}
    return reads, {n: leaf if leaf.ndim > 2 else leaf[:, 0] for n, leaf in stacked.items()}
