"""Which code runs a call's chunks; kernels stood in for by loops in their own layout."""

from __future__ import annotations

import copy
import sys
import types
import warnings

import pytest
import torch
from torch import nn

from sojourn.memory import backend, backend_kernels, check_backends

STEPS = 9
COVERED = {
    "linear_attention": "chunk_simple_gla",
    "retnet": "chunk_simple_gla",
    "mamba2": "chunk_simple_gla",
    "delta_net": "chunk_gated_delta_rule",
    "gated_delta_net": "chunk_gated_delta_rule",
    "longhorn": "chunk_gated_delta_rule",
    "delta_product": "chunk_gated_delta_rule",
    "falcon1": "chunk_comba",
    "falcon2": "chunk_comba",
    "comba": "chunk_comba",
    "gla": "chunk_gla",
    "kda": "chunk_gdn2",
    "gdn2": "chunk_gdn2",
}


def recurrence(
    q, k, v, scale, initial_state, output_final_state, g, beta=None, p=None, b=None, w=None
):
    """A kernel's results token by token: views `[B, T, H, ...]`, state `[B, H, K, V]`."""
    state, reads = initial_state, []
    channels = g.exp() if g.ndim == 4 else g.exp().unsqueeze(-1)
    for t in range(q.shape[1]):
        before, decayed = state, channels[:, t].unsqueeze(-1) * state
        key, written = k[:, t], v[:, t]
        if w is not None:
            written = w[:, t] * written - ((b[:, t] * key).unsqueeze(-1) * decayed).sum(-2)
        elif beta is not None:
            met, asked = (decayed, key) if p is None else (before, p[:, t])
            error = written - (asked.unsqueeze(-1) * met).sum(-2)
            written = beta[:, t].unsqueeze(-1) * error
        state = decayed + key.unsqueeze(-1) * written.unsqueeze(-2)
        reads.append(scale * (q[:, t].unsqueeze(-1) * state).sum(-2))
    assert output_final_state
    return torch.stack(reads, 1), state


@pytest.fixture
def calls(monkeypatch) -> list[str]:
    """The names of the kernels called, on a CPU that passes for their device."""
    called: list[str] = []

    def make(name: str):
        def kernel(**arguments):
            called.append(name)
            return recurrence(**arguments)

        return kernel

    for kernel in vars(backend_kernels).values():
        if isinstance(kernel, backend_kernels.Kernel):
            module = types.ModuleType(kernel.module)
            setattr(module, kernel.name, make(kernel.name))
            monkeypatch.setitem(sys.modules, kernel.module, module)
    monkeypatch.setattr(backend, "find_spec", lambda name: object())
    monkeypatch.setattr(backend, "DEVICE", "cpu")
    backend._say_once.cache_clear()
    return called


def make(tools, name: str, chosen: str) -> nn.Module:
    torch.manual_seed(0)
    core = tools.small(name)
    tools.randomise(core)
    if chosen != "torch":
        backend.choose_backend(core.solver, chosen)
    return core


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", COVERED)
def test_a_kernel_computes_what_our_chunks_do(tools, calls, name, masked):
    x = torch.randn(2, STEPS, 6)
    mask = torch.rand(2, STEPS) < 0.7 if masked else None
    results = []
    for chosen in ("torch", "fla"):
        core = make(tools, name, chosen)
        state = core(x[:, :2], core.init_state(2), torch.ones(2, 2, dtype=torch.bool))[1]
        tokens = x.clone().requires_grad_()
        y, after = core(tokens, state, mask=mask)
        loss = y.square().sum() + after["weights"].sin().sum()
        sources = [tokens, *core.parameters()]
        gradients = torch.autograd.grad(loss, sources, allow_unused=True, materialize_grads=True)
        results.append((y, after["weights"], *gradients))
    assert calls == [COVERED[name]]
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)


def test_every_other_core_is_refused_or_falls_back(tools, name, calls):
    if name in COVERED or not hasattr(tools.small(name), "solver"):
        return
    with pytest.raises(ValueError, match=r"^backend=fla: .* no kernel for \w+; use backend=torch$"):
        make(tools, name, "fla")
    with pytest.warns(UserWarning, match="PyTorch, since flash-linear-attention has no kernel for"):
        core = make(tools, name, "auto")
    core(torch.randn(2, STEPS, 6), core.init_state(2))
    assert calls == []


def test_a_reset_inside_and_single_tokens_run_in_torch(tools, calls):
    core = make(tools, "gated_delta_net", "fla")
    x, state = torch.randn(2, STEPS, 6), core.init_state(2)
    reset = torch.zeros(2, STEPS, dtype=torch.bool)
    reset[1, 4] = True
    y, _ = core(x, state, reset)
    core.step(x[:, 0], state)
    assert calls == []
    core(x, state, torch.zeros_like(reset))
    assert calls == ["chunk_gated_delta_rule"]
    torch.testing.assert_close(y, make(tools, "gated_delta_net", "torch")(x, state, reset)[0])


def test_the_state_moves_between_backends(tools, calls):
    ours, theirs = make(tools, "kda", "torch"), make(tools, "kda", "fla")
    x = torch.randn(2, STEPS, 6)
    whole, after = ours(x, ours.init_state(2))
    first, state = theirs(x[:, :4], theirs.init_state(2))
    second, state = ours(x[:, 4:7], state)
    third, state = theirs(x[:, 7:], state)
    torch.testing.assert_close(torch.cat([first, second, third], 1), whole, rtol=1e-4, atol=1e-5)
    tools.assert_same_state(state, after, 1e-4)
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    assert copy.deepcopy(theirs).solver.backend.name == "fla"


def test_auto_says_once_what_it_chose(tools, calls, monkeypatch):
    core = make(tools, "gla", "auto")
    x, state = torch.randn(2, STEPS, 6), core.init_state(2)
    with pytest.warns(UserWarning, match="auto: kernels of flash-linear-attention; PyTorch for"):
        core(x, state)
    monkeypatch.setattr(backend, "DEVICE", "cuda")
    with pytest.warns(
        UserWarning, match="auto: PyTorch, since kernels need a cuda device, not cpu"
    ):
        core(x, state)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        core(x, state)
    assert calls == ["chunk_gla"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"DEVICE": "cuda"}, "kernels need a cuda device, not cpu"),
        ({"LONGEST_KEY": 3}, "kernels take keys of at most 3 channels, not 4"),
    ],
)
def test_fla_where_no_kernel_runs_is_one_clear_line(tools, calls, monkeypatch, change, reason):
    core = make(tools, "kda", "fla")
    for name, value in change.items():
        monkeypatch.setattr(backend, name, value)
    with pytest.raises(ValueError, match=f"^backend=fla: {reason}; use backend=torch$"):
        core(torch.randn(2, STEPS, 6), core.init_state(2))


def test_float64_and_torch_func_are_closed(tools, calls):
    core = make(tools, "kda", "fla")
    x, state = torch.randn(2, STEPS, 6), core.init_state(2)
    with pytest.raises(ValueError, match="kernels are closed to torch"):
        torch.func.grad(lambda x: core(x, state)[0].sum())(x)
    core.double()
    with pytest.raises(ValueError, match="kernels have no float64"):
        core(x.double(), core.init_state(2))


def test_a_missing_package_and_a_wrong_device_at_launch(tools, calls, monkeypatch):
    core = make(tools, "kda", "fla")
    check_backends(core, torch.device("cpu"))
    monkeypatch.setattr(backend, "DEVICE", "cuda")
    with pytest.raises(ValueError, match="kernels need a cuda device, not cpu"):
        check_backends(core, torch.device("cpu"))
    monkeypatch.setattr(backend, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="flash-linear-attention is not installed; use"):
        make(tools, "kda", "fla")
    with pytest.raises(ValueError, match="backend must be one of torch, fla, auto, got 'triton'"):
        make(tools, "kda", "triton")
