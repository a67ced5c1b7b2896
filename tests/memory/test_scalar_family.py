"""Published memories with scalar gates: what they share, and where they must stay sane."""

from __future__ import annotations

import math

import pytest
import torch

from sojourn.memory import (
    FastWeightMemory,
    FixedRetention,
    Heads,
    NormalisedStep,
    SelectiveStep,
    Tokens,
)

WIDTH = 6
SIZES = {"width": WIDTH, "key_width": 4, "value_width": 3}
NAMES = [
    "retnet",
    "mamba2",
    "longhorn",
    "falcon1",
    "titans_linear",
    "momentum_delta",
    "delta_product",
]


def randomised(tools, name: str, **changes) -> FastWeightMemory:
    core = tools.build(name, **(SIZES | {"solver__chunk_size": 4} | changes)).double()
    tools.randomise(core)
    return core


def test_one_write_per_token_is_delta_net(tools):
    changes = {"rule__write_rate__largest": 2.0, "readout__gate": "none"}
    product = randomised(tools, "delta_product", writes_per_token=1, **changes)
    delta = randomised(tools, "delta_net", **changes)
    delta.load_state_dict(product.state_dict())
    x = torch.randn(2, 9, WIDTH, dtype=torch.float64)
    y, state = product(x, product.init_state(2))
    y_delta, state_delta = delta(x, delta.init_state(2))
    assert torch.equal(y, y_delta)
    tools.assert_same_state(state, state_delta, tolerance=0.0)


def test_two_writes_make_a_rotation(tools):
    """Two reflections do, which no single write with rate <= 2 can."""
    core = tools.build("delta_product", width=WIDTH, num_heads=1, key_width=2, value_width=2)
    first, second = torch.tensor([1.0, 0.0]), torch.tensor([math.cos(0.3), math.sin(0.3)])
    key = torch.stack([first, second]).view(1, 1, 2, 2)
    tokens = Tokens(torch.eye(2)[:1].view(1, 1, 1, 2), key, torch.zeros(1, 1, 2, 2))
    gates = core.rule(torch.full((1, 1, 2), 100.0), tokens)
    state = {"weights": torch.eye(2).view(1, 1, 2, 2)}
    _, after = core.solver(tokens, gates, state, None, None)
    cos, sin = math.cos(0.6), math.sin(0.6)
    expected = torch.tensor([[cos, sin], [-sin, cos]])
    torch.testing.assert_close(after["weights"][0, 0], expected)


@pytest.mark.parametrize("name", ["longhorn", "delta_product", "falcon1"])
def test_writes_without_values_never_grow_the_weights(tools, name):
    core = randomised(tools, name)
    with torch.no_grad():
        core.projection.weight[: core.views.num_features].mul_(3.0)
    x = torch.randn(2, 30, WIDTH, dtype=torch.float64)
    state = core.init_state(2)
    norm = state["weights"].norm(dim=(-2, -1))
    for t in range(30):
        for_views, for_rule, _ = core.projection(x[:, t : t + 1]).split(core.feature_sizes, -1)
        leaves = dict(state.items())
        tokens, moved = core.views(for_views, leaves, None, None)
        tokens = tokens._replace(value=torch.zeros_like(tokens.value))
        _, solved = core.solver(tokens, core.rule(for_rule, tokens), leaves, None, None)
        state = leaves | moved | solved
        shrunk = state["weights"].norm(dim=(-2, -1))
        assert (shrunk <= norm + 1e-12).all()
        norm = shrunk


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["identical tokens", "zero tokens", "saturated gates"])
def test_degenerate_inputs_are_finite_in_float32(tools, name, kind):
    core = tools.build(name, **SIZES)
    x = torch.randn(2, 40, WIDTH)
    if kind == "identical tokens":
        x = x[:, :1].expand(-1, 40, -1)
    elif kind == "zero tokens":
        x = torch.zeros_like(x)
    else:
        size = core.feature_sizes[0]
        with torch.no_grad():
            core.projection.weight[size : size + core.feature_sizes[1]].mul_(1e4)
    x = x.clone().requires_grad_()
    y, state = core(x, core.init_state(2))
    assert y.isfinite().all()
    assert all(leaf.isfinite().all() for leaf in tools.flatten(state).values())
    gradients = torch.autograd.grad(y.square().sum(), [x, *core.parameters()])
    assert all(g.isfinite().all() for g in gradients)


def test_fixed_retention_has_log_spaced_half_lives_and_nothing_to_learn():
    gate = FixedRetention(Heads(width=8, num_heads=3, key_width=4, value_width=3), 20, 80)
    log_retention = gate(torch.zeros(2, 5, 0))
    assert log_retention.shape == (2, 5, 3) and not list(gate.parameters())
    half_lives = torch.tensor([20.0, 40.0, 80.0])
    torch.testing.assert_close((log_retention[1, 4] * half_lives).exp(), torch.full((3,), 0.5))


def test_ridge_and_time_step_start_at_log_spaced_half_lives():
    heads = Heads(width=8, num_heads=4, key_width=4, value_width=3)
    token = Tokens(*(torch.full((1, 1, 4, size), 0.5) for size in (4, 4, 3)))
    for rule in (NormalisedStep(heads), SelectiveStep(heads)):
        log_retention = rule(torch.zeros(1, 1, rule.num_features), token).log_retention[0, 0]
        torch.testing.assert_close(
            -math.log(2) / log_retention, torch.tensor([16.0, 32.0, 64.0, 128.0]), rtol=1e-3, atol=0
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda h: NormalisedStep(h, shortest=0.5), "shortest half-life must be longer for write"),
        (lambda h: SelectiveStep(h, time_step=20.0), "largest time step must be at least 20.0"),
        (
            lambda h: NormalisedStep(Heads(8, 2, 4, 4, writes_per_token=2)),
            "a normalised step makes one write per token, got writes_per_token 2; use 1",
        ),
        (lambda h: Heads(8, 2, 4, 4, writes_per_token=0), "writes_per_token must be at least 1"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make(Heads(width=8, num_heads=2, key_width=4, value_width=4))
    assert "\n" not in str(error.value)
