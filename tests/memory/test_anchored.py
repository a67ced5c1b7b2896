"""The anchored solver against autograd, token by token and row by row."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from sojourn.memory import (
    AnchoredGradient,
    Decay,
    DotProduct,
    Gates,
    Heads,
    HuberError,
    LinearNet,
    MomentumDecay,
    MomentumGates,
    PeriodicStep,
    PowerError,
    RunningMean,
    SquaredError,
    SwiGLUNet,
    Tokens,
    TwoLayerNet,
)

BATCH, HEADS, WIDTH, STEPS = 3, 2, 4, 19
INF = float("inf")
HEAD = Heads(width=8, num_heads=HEADS, key_width=WIDTH, value_width=WIDTH)
NETS = {"linear": LinearNet, "two layers": TwoLayerNet, "swiglu": SwiGLUNet}
MIXINGS = {
    "decay": Decay,
    "momentum": MomentumDecay,
    "running mean": RunningMean,
    "periodic": PeriodicStep,
}
OBJECTIVES = {
    "squared": SquaredError,
    "dot": DotProduct,
    "huber": partial(HuberError, threshold=0.4),
    "power 3": PowerError,
    "power 1.5": partial(PowerError, power=1.5),
}


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


def make_solver(net="two layers", mixing="decay", objective="squared", chunk_size=4, **changes):
    changes = {"output": "plain", "bias": "none", "dtype": torch.float64} | changes
    dtype, longest = changes.pop("dtype"), changes.pop("largest_error", 1.0)
    gain = changes.pop("largest_gain", 0.8)
    solver = AnchoredGradient(
        HEAD,
        OBJECTIVES[objective](HEAD),
        partial(NETS[net], **changes),
        MIXINGS[mixing],
        chunk_size,
        longest,
        gain,
    ).to(dtype)
    with torch.no_grad():
        for parameter in solver.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return solver


def make_tokens(steps=STEPS, dtype=torch.float64) -> Tokens:
    def normal() -> Tensor:
        return torch.randn(BATCH, steps, HEADS, WIDTH, dtype=dtype)

    views = normal() / 2, functional.normalize(normal(), dim=-1), normal()
    return Tokens(*(view.requires_grad_() for view in views))


def make_gates(mixing: str, steps=STEPS, dtype=torch.float64) -> Gates | MomentumGates:
    def draw() -> Tensor:
        return torch.randn(BATCH, steps, HEADS, dtype=dtype)

    gates = functional.logsigmoid(draw() + 2), torch.rand_like(draw()) / 3
    if mixing == "momentum":
        gates = *gates, functional.logsigmoid(draw()), torch.rand_like(draw())
        return MomentumGates(*(gate.requires_grad_() for gate in gates))
    return Gates(*(gate.requires_grad_() for gate in gates))


def live_state(solver) -> dict[str, Tensor]:
    """Random leaves, rows at different places of their cells."""
    state = {}
    for name, leaf in solver.init_state(BATCH).items():
        if leaf.is_floating_point():
            leaf = (leaf + 0.2 * torch.randn_like(leaf)).detach().requires_grad_()
        state[name] = leaf
    state["phase"] = torch.arange(BATCH) % solver.chunk_size
    if "mean_count" in state:
        state["mean_count"] = torch.arange(BATCH) // 2 % solver.chunk_size
    return state


def make_flags(kind: str) -> tuple[Tensor | None, Tensor | None]:
    reset = torch.rand(BATCH, STEPS) < 0.15
    reset[0, 0] = reset[1, 5] = reset[1, 6] = reset[2, -1] = True
    mask = torch.rand(BATCH, STEPS) < 0.7
    mask[0, 3:12] = mask[1, 5] = False
    return (reset if "reset" in kind else None), (mask if "mask" in kind else None)


def assert_equals_the_loop(solver, tokens, gates, flags):
    state = live_state(solver)
    sources = [*tokens, *gates, *solver.parameters()]
    sources += [leaf for leaf in state.values() if leaf.is_floating_point()]
    results = []
    for run in (partial(online_loop, solver), solver):
        reads, final = run(tokens, gates, state, *flags)
        final = {name: final[name] for name in sorted(final)}
        total = reads.tanh().square().sum()
        total = total + sum(leaf.sin().sum() for leaf in final.values() if leaf.is_floating_point())
        gradients = torch.autograd.grad(total, sources, allow_unused=True, materialize_grads=True)
        results.append((reads, *final.values(), *gradients))
    for truth, fast in zip(*results, strict=True):
        torch.testing.assert_close(fast, truth, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", ["none", "reset", "mask", "reset and mask"])
@pytest.mark.parametrize("mixing", MIXINGS)
def test_cells_equal_the_loop_at_any_flags(mixing, kind):
    solver = make_solver(mixing=mixing, output="residual_layer_norm", bias="fast")
    assert_equals_the_loop(solver, make_tokens(), make_gates(mixing), make_flags(kind))


@pytest.mark.parametrize("output", ["plain", "residual", "residual_layer_norm"])
@pytest.mark.parametrize("net", NETS)
def test_cells_equal_the_loop_for_any_net(net, output):
    solver = make_solver(net, "momentum", output=output, bias="fast")
    flags = make_flags("reset and mask")
    assert_equals_the_loop(solver, make_tokens(), make_gates("momentum"), flags)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_cells_equal_the_loop_for_any_objective(objective):
    solver = make_solver(objective=objective)
    assert_equals_the_loop(solver, make_tokens(), make_gates("decay"), make_flags("reset"))


@pytest.mark.parametrize("chunk_size", [1, 7, 100])
@pytest.mark.parametrize("mixing", MIXINGS)
def test_chunks_of_any_size_equal_the_loop_with_that_anchor(mixing, chunk_size):
    solver = make_solver(mixing=mixing, chunk_size=chunk_size)
    flags = make_flags("reset and mask")
    assert_equals_the_loop(solver, make_tokens(), make_gates(mixing), flags)


@pytest.mark.parametrize("gate", [0.0, -1e-8, -5.0, -50.0, -1e30, "mixed"])
@pytest.mark.parametrize("mixing", MIXINGS)
def test_any_gate_is_finite_and_right_in_float32(mixing, gate):
    tokens = make_tokens(dtype=torch.float32)
    choices = torch.tensor([0.0, -1e-8, -1.0, -50.0, -1e30] if gate == "mixed" else [gate])

    def draw() -> Tensor:
        return choices[torch.randint(len(choices), (BATCH, STEPS, HEADS))].requires_grad_()

    rate = torch.full((BATCH, STEPS, HEADS), 0.1).requires_grad_()
    gates = Gates(draw(), rate)
    if mixing == "momentum":
        gates = MomentumGates(*gates, draw(), torch.ones_like(rate).requires_grad_())
    solver = make_solver(mixing=mixing, chunk_size=8, dtype=torch.float32)
    flags = make_flags("reset")
    reads, state = solver(tokens, gates, solver.init_state(BATCH), *flags)
    sources = [*tokens, *gates, *solver.parameters()]
    for gradient in torch.autograd.grad(reads.square().mean(), sources, allow_unused=True):
        assert gradient is None or gradient.isfinite().all()
    truth, final = online_loop(solver, tokens, gates, solver.init_state(BATCH), *flags)
    torch.testing.assert_close(reads, truth, rtol=1e-4, atol=1e-4)
    for name, leaf in final.items():
        torch.testing.assert_close(state[name], leaf, rtol=1e-4, atol=1e-4)
