"""More bugs reported against public implementations: long lives, low precision, strong gates."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from statistics import median

import pytest
import torch
from torch.nn.functional import normalize

from sojourn.memory import (
    DotProduct,
    Edits,
    ExactChannel,
    ExactMomentum,
    ExactScalar,
    FeedbackDelta,
    Gates,
    Heads,
    MomentumGates,
    SquaredError,
    Tokens,
    diagnose,
    state_bytes,
)
from sojourn.memory.mesa import SMALLEST_RIDGE
from sojourn.memory.state import leaves

WIDTH, CHUNK = 16, 64
CONJUGATE = "sojourn.memory.ConjugateGradient"
HEADS = Heads(WIDTH, num_heads=2, key_width=16, value_width=16)


def memory(tools, name, width=WIDTH, **changes):
    core = tools.build(name, width=width, **changes)
    tools.randomise(core)
    return core


def tokens_of_unit_keys(steps: int) -> Tokens:
    query, key, value = (torch.randn(2, steps, 2, 16) for _ in range(3))
    return Tokens(*(x.requires_grad_() for x in (query, normalize(key, dim=-1), value)))


def strong_gates(kind: str, steps: int) -> torch.Tensor:
    choices = torch.tensor([0.0, -1.0, -50.0, -100.0] if kind == "mixed" else [-100.0])
    return choices[torch.randint(len(choices), (2, steps, 2))].requires_grad_()


@pytest.mark.parametrize("kind", ["mixed", "all -100"])
@pytest.mark.parametrize("solver", ["scalar", "momentum", "channel"])
def test_strong_decays_in_one_chunk_flash_linear_attention_99(tools, solver, kind):
    """In one chunk of 64, with writes at full rate: finite, and equal to the recurrence."""
    tokens, retention = tokens_of_unit_keys(CHUNK), strong_gates(kind, CHUNK)
    one = torch.ones_like(retention)
    if solver == "channel":
        rule = FeedbackDelta(HEADS)
        run = ExactChannel(rule, CHUNK)
        decays = retention.unsqueeze(-1).expand_as(tokens.key)
        views = (Edits(tokens.query, tokens.key, tokens.key, tokens.value, decays),)
        flags = (None, None, None)
    else:
        scalar = solver == "scalar"
        make = ExactScalar if scalar else ExactMomentum
        run, flags = make(HEADS, SquaredError(HEADS), CHUNK), (None, None)
        gates = Gates(retention, one) if scalar else MomentumGates(retention, one, retention, one)
        views = (tokens, gates)
    state = run.init_state(2)
    reads, after = run(*views, state, *flags)
    for t in range(CHUNK):
        token = (
            type(view)(*(None if x is None else x[:, t : t + 1] for x in view)) for view in views
        )
        read, state = run(*token, state, *flags)
        torch.testing.assert_close(reads[:, t : t + 1], read, rtol=0, atol=1e-4)
    torch.testing.assert_close(after["weights"], state["weights"], rtol=0, atol=1e-4)
    for gradient in torch.autograd.grad(reads.square().sum(), [*tokens, retention]):
        assert gradient.isfinite().all()


def test_orthonormal_keys_and_closed_gates_flash_linear_attention_104():
    """The delta rule is then linear attention; with the gate closed only the last write is left."""
    steps = 16
    key = torch.eye(16).view(1, steps, 1, 16).expand(2, -1, 2, -1)
    tokens = Tokens(torch.randn(2, steps, 2, 16), key, torch.randn(2, steps, 2, 16))
    zero, one = torch.zeros(2, steps, 2), torch.ones(2, steps, 2)
    delta, hebbian = (ExactScalar(HEADS, kind(HEADS)) for kind in (SquaredError, DotProduct))
    start = delta.init_state(2)
    reads, _ = delta(tokens, Gates(zero, one), start, None, None)
    expected, _ = hebbian(tokens, Gates(zero, one), start, None, None)
    torch.testing.assert_close(reads, expected, rtol=0, atol=1e-5)
    _, after = delta(tokens, Gates(zero - 1e4, one), start, None, None)
    last = tokens.value[:, -1].unsqueeze(-1) * tokens.key[:, -1].unsqueeze(-2)
    torch.testing.assert_close(after["weights"], last, rtol=0, atol=1e-6)


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("cut", [1, 32])
def test_every_memory_continues_across_a_cut_flash_linear_attention_285_494(
    tools, name, cut, autocast
):
    core, steps, tolerance = memory(tools, name), 40, 2e-2 if autocast else 1e-4
    x = torch.randn(2, steps, WIDTH)
    results = []
    for sizes in ([steps], [cut, steps - cut]):
        flags = tools.commits(core, 2, steps)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            y, state = tools.run_in_parts(core, x, core.init_state(2), flags, sizes)
        loss = y.float().square().mean()
        gradients = torch.autograd.grad(
            loss, list(core.parameters()), allow_unused=True, materialize_grads=True
        )
        results.append((y, *tools.flatten(state).values(), *gradients))
    for whole, parts in zip(*results, strict=True):
        whole, parts = (one.detach().float() for one in (whole, parts))
        scale = max(1.0, float(whole.abs().max())) if whole.numel() else 1.0
        torch.testing.assert_close(parts, whole, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.slow
@pytest.mark.parametrize(("batch", "steps"), [(3, 256), (1, 512)])
def test_full_width_continues_across_a_cut_flash_linear_attention_285_494(tools, batch, steps):
    core = tools.build("gated_delta_net", width=512, num_heads=2, key_width=256, value_width=256)
    x, cuts = torch.randn(batch, steps, 512), (1, 63, 64, 65, 128, 255)
    results = []
    for sizes in ([steps], *([cut, steps - cut] for cut in cuts)):
        y, state = tools.run_in_parts(core, x, core.init_state(batch), {}, sizes)
        gradients = torch.autograd.grad(y.square().mean(), list(core.parameters()))
        results.append([y, *tools.flatten(state).values(), *gradients])
    for parts in results[1:]:
        for one, whole in zip(parts, results[0], strict=True):
            torch.testing.assert_close(one, whole, rtol=1e-4, atol=1e-4)


def test_nearly_equal_keys_in_low_precision_flash_linear_attention_1187(tools):
    """Ridge regression at the smallest ridge; the moments are float32 whatever autocast says."""
    steps = 512
    core = tools.build("mesa_net", width=WIDTH, solver__method___target_=CONJUGATE)
    with torch.no_grad():
        core.solver.free_ridge.fill_(-50.0)
    same = torch.rand(2, steps, 1) < 0.9
    x = torch.where(same, torch.randn(2, 1, WIDTH), 0.0)
    x = x + torch.where(same, 1e-3, 1.0) * torch.randn(2, steps, WIDTH)
    seen: list[tuple] = []
    core.solver.register_forward_hook(lambda _, given, result: seen.append((given[0], *result)))
    with torch.autocast("cpu", torch.bfloat16):
        y, _ = core(x, core.init_state(2))
        residual = diagnose(core, x, core.init_state(2))["memory"]["solve_residual_largest"]
    assert y.isfinite().all() and (residual < 1e-3).all()
    tokens, reads, state = seen[0]
    assert {leaf.dtype for leaf in state.values()} == {torch.float32}
    ridge = SMALLEST_RIDGE * torch.eye(16).double()
    moments, values = (state[name].detach().double() for name in ("key_moments", "value_moments"))
    solved = torch.linalg.solve(moments + ridge, tokens.query[:, -1].detach().double())
    expected = (values @ solved.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(reads[:, -1].detach().double(), expected, rtol=1e-3, atol=1e-3)
    for gradient in torch.autograd.grad(y.float().square().sum(), list(core.parameters())):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("name", ["titans", "ttt_linear", "yaad"])
def test_memories_learn_below_their_chunk_size_titans_pytorch_59(tools, name):
    core = memory(tools, name, solver__chunk_size=64)
    x = torch.randn(1, 200, WIDTH)
    start = core.init_state(1)
    with torch.no_grad():
        whole, state = core(x, start)
        acting, state_acting = tools.run_in_parts(core, x, start, {}, [1] * 200)
        _, early = tools.run_in_parts(core, x[:, :10], start, {}, [1] * 10)
    torch.testing.assert_close(acting, whole, rtol=1e-4, atol=1e-4)
    tools.assert_same_state(state_acting, state, tolerance=1e-4)
    written = [leaf for leaf in leaves(early) if leaf.is_floating_point() and leaf.ndim == 4]
    untouched = [leaf for leaf in leaves(start) if leaf.is_floating_point() and leaf.ndim == 4]
    assert any(not torch.equal(a, b) for a, b in zip(written, untouched, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gated_delta_net", "titans"])
def test_a_thousand_segments_leave_no_graph_titans_pytorch_34(tools, name):
    core = memory(tools, name)
    state = core.init_state(1)
    peaks = []
    for segment in range(1000):
        y, state = core(torch.randn(1, 32, WIDTH), state)
        y.square().sum().backward()
        state = state.detach()
        if segment in (200, 999):
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, kilobytes on Linux
    assert (peaks[1] - peaks[0]) * unit < 20e6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gated_delta_net", "titans", "sliding_window", "mesa_net"])
def test_acting_never_slows_down_ttt_lm_pytorch_17(tools, name):
    core = memory(tools, name)
    state = core.init_state(1)
    size, seconds = state_bytes(state), []
    with torch.no_grad():
        for _ in range(2100):
            start = time.process_time()
            _, state = core.step(torch.randn(1, WIDTH), state)
            seconds.append(time.process_time() - start)
            assert state_bytes(state) == size
    assert median(seconds[-100:]) <= 1.5 * median(seconds[100:200])


def test_nothing_needs_triton_flash_linear_attention_630():
    code = (
        "import sys; sys.modules.update(triton=None, fla=None)\n"
        "import torch; from sojourn.memory import FastWeightMemory\n"
        "core = FastWeightMemory(8); print(core(torch.ones(1, 4, 8), core.init_state(1))[0].shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "torch.Size([1, 4, 8])", done.stderr


def test_an_empty_view_has_a_small_gradient_keras_23075(tools, name):
    """All inputs zero: keys are zero vectors, which normalisation must not blow up."""
    core = tools.build(name, width=WIDTH)
    x = torch.zeros(1, 5, WIDTH, requires_grad=True)
    y, _ = core(x, core.init_state(1), **tools.commits(core, 1, 5))
    assert y.isfinite().all()
    gradient = torch.autograd.grad(y.sum(), x)[0]
    assert gradient.isfinite().all() and gradient.abs().max() < 1e6
