"""Compiled calls give what eager ones give, compile once for each shape and stay out of the way."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch
from tensordict import TensorDict
from torch import Tensor
from torch._dynamo.utils import counters

from sojourn.memory import MemoryCore, Stack, compile_calls, compiled, eager

BATCH, STEPS, WIDTH = 3, 11, 6
# Tracing itself looks at the gradients of intermediates and makes instances of functions.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning"),
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Nothing compiled and nothing counted before, nothing left behind."""
    torch.compiler.reset()
    counters.clear()
    compiled._compiled_consume.cache_clear()
    yield
    compiled._compiled_consume.cache_clear()


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are traced and run by PyTorch: what is asked is which ones, and how often."""
    monkeypatch.setattr(compiled, "BACKEND", "eager")


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The graphs of both passes that code is made of are run by PyTorch: no compiler is needed."""
    monkeypatch.setattr(compiled, "BACKEND", "aot_eager_decomp_partition")


def flags(steps: int) -> dict[str, Tensor]:
    return {
        "reset": torch.rand(BATCH, steps) < 0.15,
        "mask": torch.rand(BATCH, steps) < 0.8,
        "commit": torch.rand(BATCH, steps) < 0.3,
    }


def random_core(tools, name: str) -> MemoryCore:
    core = tools.small(name).double()
    tools.randomise(core)
    return core


def num_graphs() -> int:
    return counters["stats"]["unique_graphs"]


def outcome(core: MemoryCore, tools, x: Tensor, state, kinds: dict[str, Tensor]) -> list[Tensor]:
    """Outputs, final leaves and the gradients of a scalar of both."""
    y, after = core(x, state, **kinds)
    leaves = [leaf for leaf in tools.flatten(after).values() if leaf.is_floating_point()]
    loss = y.tanh().square().sum() + sum(leaf.sin().sum() for leaf in leaves)
    inputs = [leaf for leaf in tools.flatten(state).values() if leaf.requires_grad]
    sources = [x, *inputs, *core.parameters()]
    gradients = torch.autograd.grad(loss, sources, allow_unused=True, materialize_grads=True)
    return [y, *leaves, *gradients]


def compare(core: MemoryCore, tools, steps: int, tolerance: float = 1e-9) -> None:
    """A slice with all flags and gradients at everything, then a token without gradients."""
    x = torch.randn(BATCH, steps, core.width, dtype=torch.float64, requires_grad=True)
    with torch.no_grad():
        state = core(x.detach(), core.init_state(BATCH))[1].detach()
    for leaf in tools.flatten(state).values():
        leaf.requires_grad_(leaf.is_floating_point())
    kinds = flags(steps)
    plain = outcome(core, tools, x, state, kinds)
    first = {name: flag[:, :1] for name, flag in kinds.items()}
    with torch.no_grad():
        one = core(x[:, :1], state, **first)
    core.compiled = True
    for got, want in zip(outcome(core, tools, x, state, kinds), plain, strict=True):
        torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)
    assert num_graphs() > 0, "the slice was not compiled"
    with torch.no_grad():
        y, after = core(x[:, :1], state, **first)
    torch.testing.assert_close(y, one[0], rtol=tolerance, atol=tolerance)
    tools.assert_same_state(after, one[1], tolerance=tolerance)
    assert not counters["graph_break"]


def test_graphs_of_slice_gradient_and_token_are_the_eager_ones(lowered, tools):
    compare(random_core(tools, "gated_delta_net"), tools, steps=6)


@pytest.mark.slow
def test_graphs_of_every_memory_are_the_eager_ones(lowered, tools, single):
    core = single.core()
    if core.grows:
        pytest.skip("what grows is refused")
    compare(core, tools, STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gated_delta_net", "kda"])
def test_code_is_what_the_eager_call_is(tools, name):
    compare(random_core(tools, name), tools, STEPS)


def update(core: MemoryCore, state: TensorDict) -> TensorDict:
    """A slice learned from and a token lived; the state after both."""
    y, after = core(torch.randn(BATCH, STEPS, WIDTH), state, torch.rand(BATCH, STEPS) < 0.1)
    y.square().mean().backward()
    with torch.no_grad():
        for parameter in core.parameters():
            if parameter.grad is not None:
                parameter.sub_(0.1 * parameter.grad)
        core.zero_grad()
        return core.step(torch.randn(BATCH, WIDTH), after.detach())[1]


def test_nothing_is_compiled_again_by_later_updates(traced, tools):
    core = Stack([tools.small("gated_delta_net"), tools.small("none")])
    compile_calls(core)
    state = update(core, core.init_state(BATCH).detach())
    graphs = num_graphs()
    assert graphs == 2, "one of the slice, one of the token"
    for _ in range(3):
        state = update(core, state)
    # A state out of a file: the same numbers in the same order.
    update(copy.deepcopy(core), state.clone())
    assert num_graphs() == graphs


def test_many_shapes_are_compiled(traced, tools):
    core = tools.small("none")
    compile_calls(core)
    for steps in range(2, 14):
        core(torch.randn(BATCH, steps, WIDTH), core.init_state(BATCH))
    assert num_graphs() == 12


def test_other_calls_stay_eager(traced, tools):
    core = tools.small("gated_delta_net")
    compile_calls(core)
    x, state = torch.randn(BATCH, STEPS, WIDTH), core.init_state(BATCH)
    core.step(x[:, 0], state)
    with torch.no_grad():
        core(x, state)
    with eager(core):
        assert not core.compiled
        core(x, state)
    assert core.compiled and num_graphs() == 0
    core(x, state)
    assert num_graphs() == 1


@pytest.mark.slow
def test_recomputed_slices_are_compiled(lowered, tools):
    core = random_core(tools, "gated_delta_net")
    core.recompute_every = 4
    compare(core, tools, steps=12)


def test_a_copy_belongs_to_nobody(traced, tools):
    """The parameters of a copy are its own, and a state dict has no other names."""
    core = tools.small("gated_delta_net")
    names = set(core.state_dict())
    compile_calls(core)
    x, state = torch.randn(BATCH, STEPS, WIDTH), core.init_state(BATCH)
    core(x, state)
    twin = copy.deepcopy(core)
    tools.randomise(twin)
    with eager(twin):
        expected = twin(x, state)[0]
    torch.testing.assert_close(twin(x, state)[0], expected)
    assert set(twin.state_dict()) == names


def test_what_grows_is_refused(tools):
    with pytest.raises(ValueError, match="compile: this memory grows with every token"):
        compile_calls(tools.small("softmax_attention"))


def test_a_missing_compiler_is_named(tools, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler -O2")
    with pytest.raises(ValueError, match="there is no 'no-such-compiler -O2' here; install one"):
        compile_calls(tools.small("gru"))
