"""Neural memories: extreme inputs, phases, and the pieces they are made of."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch.nn import functional

from sojourn.memory import (
    AnchoredGradient,
    Decay,
    DotProduct,
    ExactScalar,
    FastWeightMemory,
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


def make_tokens(steps: int, dtype=torch.float64) -> Tokens:
    query, key, value = torch.randn(3, BATCH, steps, HEADS, WIDTH, dtype=dtype)
    return Tokens(query / 2, functional.normalize(key, dim=-1), value)


def make_gates(mixing: str, steps: int, rate: float = 0.2, dtype=torch.float64):
    draws = torch.randn(3, BATCH, steps, HEADS, dtype=dtype)
    retention, rate = functional.logsigmoid(draws[0] + 2), rate * torch.sigmoid(draws[1])
    if mixing == "momentum":
        momentum = functional.logsigmoid(draws[2])
        return MomentumGates(retention, rate, momentum, torch.ones_like(rate))
    return Gates(retention, rate)


def make_solver(
    net=TwoLayerNet,
    mixing="momentum",
    chunk_size=8,
    objective=SquaredError,
    dtype=torch.float64,
):
    solver = AnchoredGradient(HEAD, objective(HEAD), net, MIXINGS[mixing], chunk_size).to(dtype)
    with torch.no_grad():
        for parameter in solver.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return solver


@pytest.mark.parametrize("case", ["identical keys", "zero query", "zero key", "zero value"])
@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("output", ["plain", "residual_layer_norm"])
def test_degenerate_tokens_stay_finite_in_float32(net, output, case):
    steps = 256
    query, key, value = make_tokens(steps, torch.float32)
    if case == "identical keys":
        key = key[:, :1].expand_as(key).clone()
    else:
        {"zero query": query, "zero key": key, "zero value": value}[case].zero_()
    tokens = Tokens(*(view.requires_grad_() for view in (query, key, value)))
    gates = make_gates("momentum", steps, dtype=torch.float32)
    solver = make_solver(partial(NETS[net], output=output), dtype=torch.float32)
    reads, state = solver(tokens, gates, solver.init_state(BATCH), None, None)
    assert reads.isfinite().all() and all(leaf.isfinite().all() for leaf in state.values())
    sources = [*tokens, *solver.parameters()]
    for gradient in torch.autograd.grad(reads.square().mean(), sources, allow_unused=True):
        assert gradient is None or gradient.isfinite().all()


@pytest.mark.parametrize("limit", [1.0, float("inf")])
def test_the_limited_gain_keeps_an_mlp_from_running_away(limit):
    """Large hidden weights and open gates; without the limit the weights explode."""
    steps = 512
    solver = make_solver(dtype=torch.float32)
    solver.gain_limit.largest = limit
    with torch.no_grad():
        solver.net.initial_hidden.mul_(4)
    retention = torch.full((BATCH, steps, HEADS), -5e-3)
    rate, gain = torch.full_like(retention, 0.2), torch.ones_like(retention)
    gates = MomentumGates(retention, rate, 60 * retention, gain)
    tokens = make_tokens(steps, torch.float32)
    reads, state = solver(tokens, gates, solver.init_state(BATCH), None, None)
    error = (reads - tokens.value).square().mean()
    if limit == 1.0:
        assert error < 10 and all(leaf.abs().max() < 100 for leaf in state.values())
    else:
        assert not error < 1e6


@pytest.mark.parametrize("mixing", MIXINGS)
def test_rows_stand_anywhere_on_their_grids(mixing):
    """Rows at mixed phases, run together, give what each gives alone."""
    solver = make_solver(mixing=mixing, chunk_size=4)
    tokens, gates = make_tokens(STEPS), make_gates(mixing, STEPS)
    reset, mask = torch.rand(BATCH, STEPS) < 0.2, torch.rand(BATCH, STEPS) < 0.7
    lead = torch.arange(7) < torch.tensor([[7], [5], [2]])
    _, state = solver(make_tokens(7), make_gates(mixing, 7), solver.init_state(BATCH), None, lead)
    assert state["phase"].tolist() == [3, 1, 2]
    reads, after = solver(tokens, gates, state, reset, mask)
    for b in range(BATCH):
        one = slice(b, b + 1)
        alone, final = solver(
            Tokens(*(view[one] for view in tokens)),
            type(gates)(*(gate[one] for gate in gates)),
            {name: leaf[one] for name, leaf in state.items()},
            reset[one],
            mask[one],
        )
        torch.testing.assert_close(alone, reads[one], rtol=1e-12, atol=1e-12)
        for name, leaf in final.items():
            torch.testing.assert_close(leaf, after[name][one], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("objective", [partial(SquaredError, taken_at="previous"), DotProduct])
def test_linear_net_with_chunk_one_is_the_exact_memory(objective):
    solver = make_solver(LinearNet, "decay", 1, objective=objective)
    solver.longest_error = solver.gain_limit.largest = float("inf")
    exact = ExactScalar(HEAD, objective(HEAD), chunk_size=8).double()
    with torch.no_grad():
        exact.initial_weights.copy_(solver.net.initial("last"))
    tokens, gates = make_tokens(STEPS), make_gates("decay", STEPS)
    flags = torch.rand(BATCH, STEPS) < 0.2, torch.rand(BATCH, STEPS) < 0.7
    reads, state = solver(tokens, gates, solver.init_state(BATCH), *flags)
    truth, final = exact(tokens, gates, exact.init_state(BATCH), *flags)
    # An exact memory is read with queries scaled by key_width^-1/2.
    torch.testing.assert_close(reads * WIDTH**-0.5, truth, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(state["weights_last"], final["weights"], rtol=1e-10, atol=1e-12)


def test_without_momentum_titans_is_a_plain_step():
    momentum, plain = make_solver(mixing="momentum"), make_solver(mixing="decay")
    plain.load_state_dict(momentum.state_dict())
    tokens, gates = make_tokens(STEPS), make_gates("decay", STEPS)
    flags = torch.rand(BATCH, STEPS) < 0.2, torch.rand(BATCH, STEPS) < 0.7
    reads, state = plain(tokens, gates, plain.init_state(BATCH), *flags)
    none, gain = torch.full_like(gates.write_rate, -1e30), torch.ones_like(gates.write_rate)
    gates = MomentumGates(*gates, none, gain)
    same, after = momentum(tokens, gates, momentum.init_state(BATCH), *flags)
    torch.testing.assert_close(same, reads, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(after["weights_last"], state["weights_last"], rtol=1e-10, atol=1e-12)


def test_power_two_is_the_squared_error_and_a_wide_huber_too():
    prediction, value = torch.randn(2, BATCH, HEADS, 5, WIDTH, dtype=torch.float64)
    squared = SquaredError(HEAD).gradient(prediction, value)
    power = PowerError(HEAD, power=2.0).gradient(prediction, value)
    huber = HuberError(HEAD, threshold=50.0).double().gradient(prediction, value)
    torch.testing.assert_close(power, squared)
    torch.testing.assert_close(huber, squared)


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
            lambda: AnchoredGradient(HEAD, SquaredError(HEAD), largest_gain=0.0),
            "largest_gain must be above 0, got 0.0; use 1.0",
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
    solver = partial(AnchoredGradient, mixing=MomentumDecay)
    with pytest.raises(ValueError, match="use a rule that makes MomentumGates"):
        FastWeightMemory(8, solver=solver)
    assert MomentumStep(HEAD).num_features == 3 * HEADS
