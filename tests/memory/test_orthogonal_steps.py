"""LaCT and ATLAS against loops of autograd, one row, head and token at a time."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from sojourn.memory import (
    AnchoredGradient,
    CellGates,
    CellMomentum,
    CellStep,
    Decay,
    DotProduct,
    FastWeightMemory,
    Gates,
    Heads,
    LinearNet,
    MomentumDecay,
    MomentumGates,
    Orthogonalise,
    OrthogonalMomentumDecay,
    PostStep,
    RunningMean,
    SquaredError,
    SwiGLUNet,
    Tokens,
    TwoLayerNet,
)
from sojourn.memory.muon import COEFFICIENTS

BATCH, HEADS, WIDTH, STEPS, CELL, WINDOW = 3, 2, 3, 15, 4, 3
HEAD = Heads(width=8, num_heads=HEADS, key_width=WIDTH, value_width=WIDTH)
KINDS = ["none", "reset", "mask", "reset and mask"]
POST_STEPS = {"muon": partial(Orthogonalise, smallest=0.5), "plain": PostStep}


def make_solver(model, post_step="muon", chunk_size=CELL, window=WINDOW, dtype=torch.float64):
    net, objective = (SwiGLUNet, DotProduct) if model == "lact" else (TwoLayerNet, SquaredError)
    mixing = CellMomentum if model == "lact" else OrthogonalMomentumDecay
    solver = AnchoredGradient(
        HEAD,
        objective(HEAD),
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


def make_tokens(dtype=torch.float64) -> Tokens:
    def normal() -> Tensor:
        return torch.randn(BATCH, STEPS, HEADS, WIDTH, dtype=dtype)

    views = normal() / 2, functional.normalize(normal(), dim=-1), normal()
    return Tokens(*(view.requires_grad_() for view in views))


def make_gates(model, dtype=torch.float64):
    def draw(*last: int) -> Tensor:
        return torch.rand(BATCH, STEPS, HEADS, *last, dtype=dtype)

    if model == "lact":
        return CellGates(draw(3).requires_grad_(), draw().requires_grad_())
    parts = (draw() + 0.3).log().clamp(max=0), draw(), draw().log(), 0.3 * draw()
    return MomentumGates(*(part.requires_grad_() for part in parts))


def make_flags(kind: str) -> tuple[Tensor | None, Tensor | None]:
    reset = torch.rand(BATCH, STEPS) < 0.15
    reset[0, 0] = reset[1, 5] = reset[1, 6] = reset[2, -1] = True
    mask = torch.rand(BATCH, STEPS) < 0.7
    mask[0, 3:12] = mask[1, 5] = False
    return (reset if "reset" in kind else None), (mask if "mask" in kind else None)


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", ["lact", "atlas"])
def test_solver_equals_the_loop(model, kind):
    solver = make_solver(model, window=1 if model == "lact" else WINDOW)
    results = both(solver, model, make_tokens(), make_gates(model), make_flags(kind))
    for fast, slow in zip(*results, strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("chunk_size", [1, 7, 100])
@pytest.mark.parametrize("model", ["lact", "atlas"])
def test_cells_of_any_size_equal_the_loop(model, chunk_size):
    solver = make_solver(model, "plain", chunk_size, 1 if model == "lact" else WINDOW)
    flags = make_flags("reset and mask")
    results = both(solver, model, make_tokens(), make_gates(model), flags)
    for fast, slow in zip(*results, strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kind", ["none", "reset and mask"])
def test_atlas_without_muon_and_window_is_titans(kind):
    atlas = make_solver("atlas", "plain", window=1)
    titans = AnchoredGradient(
        HEAD, SquaredError(HEAD), partial(TwoLayerNet, expansion=1), MomentumDecay, CELL
    ).double()
    titans.gain_limit.largest = titans.longest_error = float("inf")
    titans.load_state_dict(atlas.state_dict())
    tokens, flags = make_tokens(), make_flags(kind)
    gates = make_gates("atlas")
    reads, after = atlas(tokens, gates, atlas.init_state(BATCH), *flags)
    truth, final = titans(tokens, gates, titans.init_state(BATCH), *flags)
    torch.testing.assert_close(reads, truth, rtol=1e-11, atol=1e-12)
    assert after.keys() == final.keys()
    for name, leaf in final.items():
        torch.testing.assert_close(after[name], leaf, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("mixing", [Decay, MomentumDecay, RunningMean])
def test_any_mixing_takes_windows(mixing):
    """Two tokens of a window of two, in one cell, against the sum of their shares by hand."""
    solver = AnchoredGradient(
        HEAD, SquaredError(HEAD), LinearNet, mixing, 4, float("inf"), float("inf"), window=2
    ).double()
    torch.nn.init.normal_(solver.window.scores)
    query, key, value = (view[:, :2] for view in make_tokens())
    rate = torch.rand(BATCH, 2, HEADS, dtype=torch.float64)
    none = torch.zeros_like(rate)
    gates = Gates(none, rate)
    if mixing is MomentumDecay:
        gates = MomentumGates(none, rate, none - 1e30, none + 1)
    _, after = solver(Tokens(query, key, value), gates, solver.init_state(BATCH), None, None)
    start = solver.net.initial("last")
    error = torch.einsum("hvk,bthk->bthv", start, key) - value
    gradient = torch.einsum("bthv,bthk->bthvk", error, key)
    shares = solver.window.scores.softmax(-1)[:, :, None, None]
    rate = rate[..., None, None]
    first, second = gradient.unbind(1)
    windowed = shares[:, 0] * first + shares[:, 1] * second
    moved = -rate[:, 0] * first - rate[:, 1] * windowed
    if mixing is RunningMean:
        torch.testing.assert_close(after["step_last"], moved)
    else:
        torch.testing.assert_close(after["weights_last"], start + moved)


def test_rows_keep_their_initial_lengths():
    solver = make_solver("lact", window=1)
    _, after = solver(make_tokens(), make_gates("lact"), solver.init_state(BATCH), None, None)
    for layer in solver.net.layers:
        lengths, weights = solver.net.initial(layer).norm(dim=-1), after[f"weights_{layer}"]
        torch.testing.assert_close(weights.norm(dim=-1), lengths.expand(BATCH, -1, -1))
        assert not torch.allclose(weights, solver.net.initial(layer))


@pytest.mark.parametrize("model", ["lact", "atlas"])
@pytest.mark.parametrize("gate", ["zero", "tiny", "one"])
@pytest.mark.parametrize("what", ["random", "identical keys", "zero keys", "all zero"])
def test_any_gate_is_finite_in_float32(model, gate, what):
    query, key, value = (view.detach() for view in make_tokens(torch.float32))
    if what == "identical keys":
        key = key[:, :1].repeat(1, STEPS, 1, 1)
    elif what != "random":
        key = torch.zeros_like(key)
    if what == "all zero":
        query, value = torch.zeros_like(query), torch.zeros_like(value)
    tokens = Tokens(*(view.requires_grad_() for view in (query, key, value)))
    size = {"zero": 0.0, "tiny": 1e-20, "one": 1.0}[gate]
    gates = make_gates(model, torch.float32)
    parts = []
    for name, part in zip(gates._fields, gates, strict=True):
        extreme = {0.0: -1e30, 1e-20: -50.0, 1.0: 0.0}[size] if "log" in name else size
        parts.append(torch.full_like(part, extreme).requires_grad_())
    gates = type(gates)(*parts)
    solver = make_solver(model, dtype=torch.float32)
    reads, after = solver(tokens, gates, solver.init_state(BATCH), *make_flags("reset"))
    assert reads.isfinite().all() and all(leaf.isfinite().all() for leaf in after.values())
    sources = [*tokens, *gates, *solver.parameters()]
    total = reads.square().mean() + sum(after[f"weights_{n}"].sum() for n in solver.net.layers)
    for gradient in torch.autograd.grad(total, sources, allow_unused=True, materialize_grads=True):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("num_rates", [1, 2, 3])
def test_rates_must_be_one_or_as_many_as_layers(num_rates):
    make = partial(
        FastWeightMemory,
        WIDTH,
        rule=partial(CellStep, num_rates=num_rates),
        solver=partial(AnchoredGradient, net=SwiGLUNet, mixing=CellMomentum),
    )
    if num_rates == 2:
        with pytest.raises(ValueError, match="must be 1 or the net's 3 layers, got 2; use 3"):
            make()
        return
    core = make()
    assert core(torch.randn(BATCH, STEPS, WIDTH), core.init_state(BATCH))[0].isfinite().all()
