"""LaCT and ATLAS as they are defined: one row, one head, one token at a time, by autograd."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from sojourn.memory import (
    AnchoredGradient,
    CellGates,
    CellMomentum,
    DotProduct,
    Heads,
    MomentumGates,
    Orthogonalise,
    OrthogonalMomentumDecay,
    PostStep,
    SquaredError,
    SwiGLUNet,
    TwoLayerNet,
)
from sojourn.memory.muon import COEFFICIENTS

from .solver_inputs import BATCH, HEADS

WIDTH, STEPS, CELL, WINDOW = 3, 15, 4, 3
NARROW = Heads(width=8, num_heads=HEADS, key_width=WIDTH, value_width=WIDTH)
POST_STEPS = {"muon": partial(Orthogonalise, smallest=0.5), "plain": PostStep}


def make_solver(model, post_step="muon", chunk_size=CELL, window=WINDOW, dtype=torch.float64):
    net, objective = (SwiGLUNet, DotProduct) if model == "lact" else (TwoLayerNet, SquaredError)
    mixing = CellMomentum if model == "lact" else OrthogonalMomentumDecay
    solver = AnchoredGradient(
        NARROW,
        objective(NARROW),
        partial(net, expansion=1),
        partial(mixing, post_step=POST_STEPS[post_step]),
        chunk_size,
        float("inf"),
        float("inf"),
        window,
    ).to(dtype)
    with torch.no_grad():
        for parameter in solver.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return solver


def gates_of(model, dtype=torch.float64):
    def draw(*last: int) -> Tensor:
        return torch.rand(BATCH, STEPS, HEADS, *last, dtype=dtype)

    if model == "lact":
        return CellGates(draw(3).requires_grad_(), draw().requires_grad_())
    parts = (draw() + 0.3).log().clamp(max=0), draw(), draw().log(), 0.3 * draw()
    return MomentumGates(*(part.requires_grad_() for part in parts))


def muon(solver, step: Tensor) -> Tensor:
    """The polynomials as they are written, of a matrix of any shape."""
    if not isinstance(solver.mixing.post_step, Orthogonalise):
        return step
    smallest = solver.mixing.post_step.smallest
    norm = (step.square().sum() + (1e-6 * smallest) ** 2).sqrt()
    x = step / norm
    for a, b, c in COEFFICIENTS:
        x = a * x + b * (x @ x.T @ x) + c * (x @ x.T @ x @ x.T @ x)
    return x * (norm / smallest).clamp(max=1)


def predict(net, weights: dict[str, Tensor], x: Tensor) -> Tensor:
    if isinstance(net, SwiGLUNet):
        return weights["last"] @ (functional.silu(weights["gate"] @ x) * (weights["hidden"] @ x))
    return weights["last"] @ functional.gelu(weights["hidden"] @ x, approximate="tanh")


def gradients(solver, weights, key, value) -> dict[str, Tensor]:
    prediction = predict(solver.net, weights, key)
    loss = (prediction - value).square().sum() / 2
    if isinstance(solver.objective, DotProduct):
        loss = -(prediction * value).sum()
    found = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
    return dict(zip(weights, found, strict=True))


def row_lengths(matrix: Tensor) -> Tensor:
    return torch.stack([(row.square().sum() + 1e-12).sqrt() for row in matrix]).unsqueeze(1)


class Lact:
    """One head of LaCT."""

    def __init__(self, solver, head: int, phase: int) -> None:
        self.solver, self.head, self.phase = solver, head, phase
        self.initial = {layer: solver.net.initial(layer)[head] for layer in solver.net.layers}
        self.zeros = {layer: torch.zeros_like(one) for layer, one in self.initial.items()}
        self.restart()

    def restart(self) -> None:
        self.weights, self.momentum, self.total = self.initial, self.zeros, self.zeros
        self.kept, self.pairs = [], []

    def write(self, key, value, rates, kept) -> None:
        gradient = gradients(self.solver, self.weights, key, value)
        steps = zip(gradient.items(), rates, strict=True)
        self.total = {layer: self.total[layer] - rate * g for (layer, g), rate in steps}
        self.kept.append(kept)
        self.phase += 1

    def read(self, query) -> Tensor:
        return predict(self.solver.net, self.weights, query)

    def close(self) -> None:
        if self.phase < self.solver.chunk_size:
            return
        mean = sum(self.kept) / len(self.kept)
        self.momentum = {n: mean * self.momentum[n] + self.total[n] for n in self.total}
        step = self.solver.mixing.log_step[self.head].exp()
        weights = {}
        for layer, initial in self.initial.items():
            unit = row_lengths(initial).norm() / min(initial.shape) ** 0.5
            new = self.weights[layer] + step * unit * muon(self.solver, self.momentum[layer])
            lengths = row_lengths(initial) / row_lengths(new)
            weights[layer] = new * lengths
        self.weights, self.total, self.kept, self.phase = weights, self.zeros, [], 0

    def leaves(self) -> dict[str, Tensor]:
        return {
            f"{kind}_{layer}": leaf[layer]
            for kind, leaf in self.kinds().items()
            for layer in self.initial
        }

    def kinds(self) -> dict[str, dict[str, Tensor]]:
        return {"weights": self.weights, "momentum": self.momentum, "step": self.total}


class Atlas(Lact):
    """One head of ATLAS."""

    def restart(self) -> None:
        super().restart()
        self.anchor = self.initial

    def write(self, key, value, log_retention, rate, log_momentum, gain) -> None:
        self.pairs = [*self.pairs, (key, value)][-WINDOW:]
        shares = self.solver.window.scores[self.head, -len(self.pairs) :].softmax(0)
        found = [gradients(self.solver, self.anchor, k, v) for k, v in self.pairs]
        total = {n: sum(p * g[n] for p, g in zip(shares, found, strict=True)) for n in self.zeros}
        self.total = {n: log_momentum.exp() * self.total[n] - rate * total[n] for n in total}
        self.weights = {
            n: log_retention.exp() * self.weights[n] + gain * muon(self.solver, self.total[n])
            for n in total
        }
        self.phase += 1

    def close(self) -> None:
        if self.phase == self.solver.chunk_size:
            self.anchor, self.phase = self.weights, 0

    def kinds(self) -> dict[str, dict[str, Tensor]]:
        return {"weights": self.weights, "anchor": self.anchor, "step": self.total}


def loop(solver, model, tokens, gates, phase, reset=None, mask=None):
    """Reads and the last leaves of every row and head."""
    reads, finals = [], []
    for b in range(BATCH):
        for h in range(HEADS):
            one = (Lact if model == "lact" else Atlas)(solver, h, int(phase[b]))
            for t in range(STEPS):
                query, key, value = (view[b, t, h] for view in tokens)
                if reset is not None and reset[b, t]:
                    one.restart()
                before = one.read(query * WIDTH**0.5)
                if mask is None or mask[b, t]:
                    one.write(key, value, *(gate[b, t, h] for gate in gates))
                reads.append(before if model == "lact" else one.read(query * WIDTH**0.5))
                one.close()
            finals.append(one.leaves())
    reads = torch.stack(reads).view(BATCH, HEADS, STEPS, -1).transpose(1, 2)
    stacked = {name: torch.stack([final[name] for final in finals]) for name in finals[0]}
    return reads, {n: leaf.unflatten(0, (BATCH, HEADS)) for n, leaf in stacked.items()}


def both(solver, model, tokens, gates, flags):
    """Reads, leaves and gradients of the solver, and those of the loop."""
    phase = torch.arange(BATCH) % solver.chunk_size
    sources = [*tokens, *gates, *solver.parameters()]
    fast = solver(tokens, gates, solver.init_state(BATCH) | {"phase": phase}, *flags)
    slow = loop(solver, model, tokens, gates, phase, *flags)
    names = sorted(slow[1])
    results = []
    for reads, final in (fast, slow):
        total = reads.tanh().square().sum() + sum(final[name].sin().sum() for name in names)
        found = torch.autograd.grad(total, sources, allow_unused=True, materialize_grads=True)
        results.append((reads, *(final[name] for name in names), *found))
    return results
