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
    ExactScalar,
    Gates,
    Heads,
    HuberError,
    LinearNet,
    MomentumDecay,
    MomentumGates,
    MomentumStep,
    PowerError,
    RunningMean,
    SquaredError,
    SwiGLUNet,
    Tokens,
    TwoLayerNet,
)

BATCH, HEADS, WIDTH, STEPS = 3, 2, 4, 19
HEAD = Heads(width=8, num_heads=HEADS, key_width=WIDTH, value_width=WIDTH)
NETS = {"linear": LinearNet, "two layers": TwoLayerNet, "swiglu": SwiGLUNet}
MIXINGS = {"decay": Decay, "momentum": MomentumDecay, "running mean": RunningMean}
OBJECTIVES = {
    "squared": SquaredError,
    "dot": DotProduct,
    "huber": partial(HuberError, threshold=0.4),
    "power 3": PowerError,
    "power 1.5": partial(PowerError, power=1.5),
}


def predict(net, weights: dict[str, Tensor], x: Tensor) -> Tensor:
    """f_W(x) of one head, as it is defined."""

    def layer(name: str, x: Tensor) -> Tensor:
        one = x.new_ones(1)
        return weights[name] @ (torch.cat([x, one]) if net.num_bias_columns else x)

    if isinstance(net, LinearNet):
        last = layer("last", x)
    elif isinstance(net, TwoLayerNet):
        last = layer("last", functional.gelu(layer("hidden", x), approximate="tanh"))
    else:
        last = layer("last", functional.silu(layer("gate", x)) * layer("hidden", x))
    return last


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


def online_loop(solver, tokens, gates, state, reset, mask):
    """The recurrence with autograd gradients; one row, one head, one token at a time."""
    net, mixing, size = solver.net, solver.mixing, solver.chunk_size
    reads = torch.zeros_like(tokens.value)
    finals: dict[str, Tensor] = {name: leaf.clone() for name, leaf in state.items()}
    for b in range(BATCH):
        for h in range(HEADS):
            initial = {layer: net.initial(layer)[h] for layer in net.layers}
            weights = {layer: state[f"weights_{layer}"][b, h] for layer in net.layers}
            anchor = {
                layer: state.get(f"anchor_{layer}", state[f"weights_{layer}"])[b, h]
                for layer in net.layers
            }
            zeros = {layer: torch.zeros_like(one) for layer, one in weights.items()}
            step = {
                layer: state[f"step_{layer}"][b, h] if mixing.accumulates else zeros[layer]
                for layer in net.layers
            }
            phase = int(state["phase"][b])
            count = int(state["mean_count"][b]) if "mean_count" in state else 0
            for t in range(tokens.query.shape[1]):
                query, key, value = (view[b, t, h] for view in tokens)
                if reset is not None and reset[b, t]:
                    weights, anchor, step, count = initial, initial, zeros, 0
                if mask is None or mask[b, t]:
                    inner = [
                        one.requires_grad_() if one.is_leaf else one for one in anchor.values()
                    ]
                    prediction = put_out(net, h, predict(net, anchor, key), key)
                    objective = loss(solver.objective, h, prediction, value)
                    (error,) = torch.autograd.grad(objective, prediction, create_graph=True)
                    shortened = error * (solver.longest_error / error.norm()).clamp(max=1)
                    gradient = dict(
                        zip(
                            anchor,
                            torch.autograd.grad(prediction, inner, shortened, create_graph=True),
                            strict=True,
                        )
                    )
                    a, rate = gates.log_retention[b, t, h].exp(), gates.write_rate[b, t, h]
                    phase, count = phase + 1, count + 1
                    m = gates.log_momentum[b, t, h].exp() if isinstance(gates, MomentumGates) else 0
                    m = 1 if isinstance(mixing, RunningMean) else m
                    step = {n: m * step[n] - rate * gradient[n] for n in step}
                    if mixing.moves_weights:
                        weights = {n: a * weights[n] + step[n] for n in step}
                scale = 0.0
                if isinstance(mixing, RunningMean) and count:
                    scale = (1 / count + mixing.correction[count - 1]).clamp(min=0)
                live = weights
                if not mixing.moves_weights:
                    live = {n: weights[n] + scale * step[n] for n in step}
                scaled = query * WIDTH**0.5
                reads[b, t, h] = put_out(net, h, predict(net, live, scaled), scaled)
                if phase == size:
                    weights, anchor, phase, count = live, live, 0, 0
                    if not mixing.moves_weights:
                        step = zeros
            for n in net.layers:
                finals[f"weights_{n}"][b, h] = weights[n]
                if mixing.moves_weights:
                    finals[f"anchor_{n}"][b, h] = anchor[n]
                if mixing.accumulates:
                    finals[f"step_{n}"][b, h] = step[n]
            finals["phase"][b] = phase
            if "mean_count" in state:
                finals["mean_count"][b] = count
    return reads, finals


def make_solver(net="two layers", mixing="decay", objective="squared", chunk_size=4, **changes):
    changes = {"output": "plain", "bias": "none", "dtype": torch.float64} | changes
    dtype, longest = changes.pop("dtype"), changes.pop("largest_error", 1.0)
    solver = AnchoredGradient(
        HEAD,
        OBJECTIVES[objective](HEAD),
        partial(NETS[net], **changes),
        MIXINGS[mixing],
        chunk_size,
        longest,
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
        return MomentumGates(*(g.requires_grad_() for g in (*gates, functional.logsigmoid(draw()))))
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


@pytest.mark.parametrize("objective", ["squared", "dot"])
def test_linear_net_with_chunk_one_is_the_exact_memory(objective):
    tokens, gates = make_tokens(), make_gates("decay")
    solver = make_solver("linear", objective=objective, chunk_size=1, largest_error=1e9)
    piece = {"squared": partial(SquaredError, taken_at="previous"), "dot": DotProduct}[objective]
    exact = ExactScalar(HEAD, piece(HEAD), chunk_size=8).double()
    with torch.no_grad():
        exact.initial_weights.copy_(solver.net.initial("last"))
    flags = make_flags("reset and mask")
    reads, state = solver(tokens, gates, solver.init_state(BATCH), *flags)
    truth, final = exact(tokens, gates, exact.init_state(BATCH), *flags)
    # An exact memory is read with queries scaled by key_width^-1/2.
    torch.testing.assert_close(reads * WIDTH**-0.5, truth, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(state["weights_last"], final["weights"], rtol=1e-10, atol=1e-12)


def test_without_momentum_titans_is_a_plain_step():
    tokens, gates = make_tokens(), make_gates("decay")
    torch.manual_seed(3)
    plain = make_solver(mixing="decay")
    torch.manual_seed(3)
    momentum = make_solver(mixing="momentum")
    none = torch.full_like(gates.write_rate, -1e30)
    flags = make_flags("reset and mask")
    reads, state = plain(tokens, gates, plain.init_state(BATCH), *flags)
    same, after = momentum(tokens, MomentumGates(*gates, none), momentum.init_state(BATCH), *flags)
    torch.testing.assert_close(same, reads, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(after["weights_last"], state["weights_last"], rtol=1e-10, atol=1e-12)


def test_power_two_is_the_squared_error_and_a_wide_huber_too():
    prediction, value = torch.randn(2, BATCH, HEADS, 5, WIDTH, dtype=torch.float64)
    squared = SquaredError(HEAD).gradient(prediction, value)
    power = PowerError(HEAD, power=2.0).gradient(prediction, value)
    huber = HuberError(HEAD, threshold=50.0).double().gradient(prediction, value)
    torch.testing.assert_close(power, squared)
    torch.testing.assert_close(huber, squared)


@pytest.mark.parametrize("gate", [0.0, -1e-8, -5.0, -50.0, -1e30, "mixed"])
@pytest.mark.parametrize("mixing", MIXINGS)
def test_any_gate_is_finite_and_right_in_float32(mixing, gate):
    tokens = make_tokens(dtype=torch.float32)
    choices = torch.tensor([0.0, -1e-8, -1.0, -50.0, -1e30] if gate == "mixed" else [gate])

    def draw() -> Tensor:
        return choices[torch.randint(len(choices), (BATCH, STEPS, HEADS))].requires_grad_()

    rate = torch.full((BATCH, STEPS, HEADS), 0.1).requires_grad_()
    gates = MomentumGates(draw(), rate, draw()) if mixing == "momentum" else Gates(draw(), rate)
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


@pytest.mark.parametrize("case", ["identical keys", "zero query", "zero key", "zero value"])
@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("output", ["plain", "residual_layer_norm"])
def test_degenerate_tokens_stay_finite_in_float32(net, output, case):
    steps = 256
    query, key, value = (view.detach().clone() for view in make_tokens(steps, torch.float32))
    if case == "identical keys":
        key = key[:, :1].expand_as(key).clone()
    else:
        {"zero query": query, "zero key": key, "zero value": value}[case].zero_()
    tokens = Tokens(*(view.requires_grad_() for view in (query, key, value)))
    gates = make_gates("momentum", steps, torch.float32)
    gates = gates._replace(write_rate=0.2 * gates.write_rate)
    solver = make_solver(net, "momentum", chunk_size=8, output=output, dtype=torch.float32)
    reads, state = solver(tokens, gates, solver.init_state(BATCH), None, None)
    assert reads.isfinite().all() and all(leaf.isfinite().all() for leaf in state.values())
    sources = [*tokens, *solver.parameters()]
    for gradient in torch.autograd.grad(reads.square().mean(), sources, allow_unused=True):
        assert gradient is None or gradient.isfinite().all()


@pytest.mark.parametrize("mixing", MIXINGS)
def test_rows_stand_anywhere_on_their_grids(mixing):
    """Rows at mixed phases, run together, give what each gives alone."""
    tokens, gates = make_tokens(), make_gates(mixing)
    solver = make_solver(mixing=mixing)
    state, flags = live_state(solver), make_flags("reset and mask")
    assert len(set(state["phase"].tolist())) == BATCH
    reads, after = solver(tokens, gates, state, *flags)
    for b in range(BATCH):
        one = slice(b, b + 1)
        alone, final = solver(
            Tokens(*(view[one] for view in tokens)),
            type(gates)(*(gate[one] for gate in gates)),
            {name: leaf[one] for name, leaf in state.items()},
            *(flag[one] for flag in flags),
        )
        torch.testing.assert_close(alone, reads[one], rtol=1e-12, atol=1e-12)
        for name, leaf in final.items():
            torch.testing.assert_close(leaf, after[name][one], rtol=1e-12, atol=1e-12)


def test_a_reset_does_not_move_the_border_of_the_cell(tools):
    core = tools.build("titans", width=8, solver__chunk_size=4)
    reset = torch.zeros(2, 6, dtype=torch.bool)
    reset[0, 2] = True
    _, state = core(torch.randn(2, 6, 8), core.init_state(2), reset)
    assert state["phase"].tolist() == [2, 2]
    cleared = core.reset_rows(state, torch.tensor([True, False]))
    assert cleared["phase"].tolist() == [2, 2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: TwoLayerNet(HEAD, activation="relu"),
            "activation must be one of gelu, silu, tanh",
        ),
        (lambda: LinearNet(HEAD, bias="slow"), "bias must be one of none, fast, got 'slow'"),
        (lambda: LinearNet(HEAD, output="norm"), "output must be one of plain, residual"),
        (
            lambda: LinearNet(Heads(8, 2, 4, 3), output="residual"),
            "a residual output needs value_width = key_width, got 3 and 4; use value_width=4",
        ),
        (lambda: SwiGLUNet(HEAD, expansion=0), "expansion must be at least 1, got 0; use 1"),
        (lambda: PowerError(HEAD, power=0.5), "power must be at least 1.0, got 0.5; use 1.0"),
        (lambda: HuberError(HEAD, threshold=0.0), "threshold must be at least 0.001, got 0.0"),
        (lambda: Decay(HEAD, 0), "chunk_size must be at least 1, got 0; use 1"),
        (
            lambda: AnchoredGradient(HEAD, SquaredError(HEAD), largest_error=0.0),
            "largest_error must be above 0, got 0.0; use 2.0",
        ),
        (
            lambda: ExactScalar(HEAD, HuberError(HEAD)),
            "ExactScalar needs an error linear in the weights, got HuberError",
        ),
    ],
)
def test_bad_arguments_are_refused_in_one_line(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


def test_momentum_needs_a_rule_that_gives_it():
    solver = make_solver(mixing="momentum")
    with pytest.raises(ValueError, match="use MomentumStep"):
        solver(make_tokens(), make_gates("decay"), solver.init_state(BATCH), None, None)
    assert MomentumStep(HEAD).num_features == 3 * HEADS
