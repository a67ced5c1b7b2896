"""Feature maps that make keys longer, the normaliser, rotary positions: against definitions."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from sojourn.memory import (
    AnchoredGradient,
    AttentionMemory,
    ChannelGatedMemory,
    ConstantRate,
    DotProduct,
    ExactScalar,
    FastWeightMemory,
    FeedbackDelta,
    GradientStep,
    Heads,
    KernelRidge,
    NoDecay,
    Normalised,
    Polynomial,
    Readout,
    Views,
)
from sojourn.memory.features import EXPANSIONS, dpfp, hedgehog, taylor

BATCH, STEPS, WIDTH, KEY = 3, 14, 6, 4


def linear_attention(feature_map: str, chunk_size: int = 4, smallest: float = 1e-6):
    exact = partial(ExactScalar, chunk_size=chunk_size)
    return FastWeightMemory(
        WIDTH,
        num_heads=2,
        key_width=KEY,
        value_width=3,
        views=partial(Views, feature_map=feature_map, key_norm="none", value_map="identity"),
        objective=DotProduct,
        rule=partial(GradientStep, retention=NoDecay, write_rate=ConstantRate),
        solver=partial(Normalised, solver=exact, smallest=smallest),
        readout=partial(Readout, norm="none", gate="none"),
    ).double()


@pytest.mark.parametrize("name", EXPANSIONS)
def test_expansions_tell_their_width(name):
    expansion = EXPANSIONS[name]
    for size in (1, 4, 7):
        assert expansion.map(torch.randn(2, 3, size)).shape == (2, 3, expansion.width(size))


def test_taylor_is_the_series_of_the_exponential():
    q, k = torch.randn(2, 5, 6, dtype=torch.float64)
    score = (q * k).sum(-1) / 6**0.5
    product = (taylor(q) * taylor(k)).sum(-1)
    torch.testing.assert_close(product, 1 + score + score**2 / 2)


def test_dpfp_equals_its_definition():
    x = torch.randn(3)
    parts = [max(float(value), 0.0) for value in (*x, *-x)]
    expected = [parts[i] * parts[i - shift] for shift in (1, 2) for i in range(6)]
    torch.testing.assert_close(dpfp(x, 2), torch.tensor(expected))


def test_hedgehog_is_a_distribution():
    features = hedgehog(torch.randn(5, 4) * 100)
    assert (features >= 0).all()
    torch.testing.assert_close(features.sum(-1), torch.ones(5))


@pytest.mark.parametrize("name", ["elu_plus_one", "relu", *EXPANSIONS])
def test_normalised_reads_are_weighted_means_of_the_values(name):
    core = linear_attention(name)
    x = torch.randn(1, STEPS, WIDTH, dtype=torch.float64)
    features = core.projection(x)
    state = dict(core.init_state(1).items())
    tokens, _ = core.views(features, state, None, None)
    gates = core.rule(features[..., :0], tokens)
    reads, _ = core.solver(tokens, gates, state, None, None)
    query, key, value = (view[0] for view in tokens)
    for t in range(STEPS):
        scores = torch.einsum("hk,jhk->jh", query[t], key[: t + 1])
        total = scores.sum(0).clamp(min=1e-6)
        expected = torch.einsum("jh,jhv->hv", scores / total, value[: t + 1])
        torch.testing.assert_close(reads[0, t], expected)


@pytest.mark.parametrize("name", ["elu_plus_one", *EXPANSIONS])
def test_steps_and_splits_equal_one_call(tools, name):
    core = linear_attention(name, smallest=1.0)
    tools.randomise(core)
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64)
    reset, mask = torch.rand(BATCH, STEPS) < 0.15, torch.rand(BATCH, STEPS) < 0.8
    flags = {"reset": reset, "mask": mask}
    parameters = list(core.parameters())
    results = []
    for sizes in ([STEPS], [1] * STEPS, [5, 1, 8]):
        y, state = tools.run_in_parts(core, x, core.init_state(BATCH), flags, sizes)
        gradients = torch.autograd.grad(y.tanh().square().sum(), parameters)
        results.append([y, state["weights"], *gradients])
    for part in results[1:]:
        for got, want in zip(part, results[0], strict=True):
            torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", ["relu", *EXPANSIONS])
@pytest.mark.parametrize("scale", [0.0, 1e-8, 1.0, 1e3])
def test_normalised_reads_are_finite_in_float32(name, scale):
    core = linear_attention(name).float()
    x = (scale * torch.randn(BATCH, STEPS, WIDTH)).requires_grad_()
    y, _ = core(x, core.init_state(BATCH))
    assert y.isfinite().all()
    for gradient in torch.autograd.grad(y.sum(), [x, *core.parameters()]):
        assert gradient.isfinite().all()


OTHERS = {
    "attention": partial(AttentionMemory, positions="none"),
    "kernel ridge": partial(AttentionMemory, positions="none", estimator=KernelRidge),
    "channel-gated": ChannelGatedMemory,
    "feedback": partial(ChannelGatedMemory, rule=FeedbackDelta),
    "network": partial(FastWeightMemory, solver=partial(AnchoredGradient, chunk_size=4)),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", EXPANSIONS)
def test_every_memory_may_have_longer_keys(tools, name, other):
    core = OTHERS[other](WIDTH, key_width=KEY, views=partial(Views, feature_map=name)).double()
    tools.randomise(core)
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64)
    y, after = core(x, core.init_state(BATCH))
    by_parts, state = tools.run_in_parts(core, x, core.init_state(BATCH), {}, [1, 5, 1, 7])
    torch.testing.assert_close(by_parts, y)
    tools.assert_same_state(state, after)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("name", ["silu", *EXPANSIONS])
def test_a_network_meets_queries_on_the_scale_of_its_keys(name, degree):
    views = partial(Views, feature_map=name)
    views = views if degree == 1 else partial(Polynomial, views=views)
    core = FastWeightMemory(WIDTH, key_width=KEY, views=views, solver=AnchoredGradient).double()
    read, met = core.solver.net.read, []

    def watched(query, apply):
        met.append(query)
        return read(query, apply)

    core.solver.net.read = watched
    core(torch.randn(BATCH, 1, WIDTH, dtype=torch.float64), core.init_state(BATCH))
    lengths = met[0].norm(dim=-1)
    torch.testing.assert_close(lengths, torch.ones_like(lengths), rtol=0, atol=0.02)


def test_positions_count_valid_tokens_since_the_reset():
    heads = Heads(width=WIDTH, num_heads=1, key_width=KEY, value_width=3)
    views = Views(heads, conv_width=1, positions="rotary").double()
    features = torch.ones(1, 5, views.num_features, dtype=torch.float64)
    reset = torch.tensor([[False, False, True, False, False]])
    mask = torch.tensor([[True, False, True, True, True]])
    state = {"position": torch.tensor([3])}
    tokens, after = views(features, state, reset, mask)
    assert after["position"].tolist() == [3] and after["position"].dtype == torch.int64
    first = views(features[:, :1], {"position": torch.tensor([0])}, None, None)[0]
    torch.testing.assert_close(tokens.key[:, 2:3], first.key)
    at_four = views(features[:, :1], {"position": torch.tensor([4])}, None, None)[0]
    torch.testing.assert_close(tokens.key[:, 1:2], at_four.key)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda h: Views(h, positions="rotray"),
            "positions must be one of rotary, even, steered, none, got 'rotray'; "
            "did you mean 'rotary'?",
        ),
        (
            lambda h: Views(Heads(8, 2, 3, 4), positions="rotary"),
            "keys must have even width for rotary positions, got 3; use 4",
        ),
        (lambda h: Views(h, value_map="dpfp"), "value_map must be one of identity, silu, relu"),
        (
            lambda h: Normalised(h, DotProduct(h), smallest=0.0),
            "smallest normaliser must be above 0, got 0.0; use 1e-6",
        ),
    ],
)
def test_bad_arguments_are_refused_in_one_line(make, message):
    with pytest.raises(ValueError) as error:
        make(Heads(width=8, num_heads=2, key_width=4, value_width=4))
    assert message in str(error.value) and "\n" not in str(error.value)
