"""Every memory is one graph for torch.compile: no branch depends on data, nothing waits for it."""

from __future__ import annotations

import pytest
import torch

from sojourn.memory import MemoryCore

WIDTH = 6
# Tracing itself looks at the gradients of intermediates and makes instances of functions.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
]
QUICK = ("gated_delta_net", "kda", "softmax_attention")


def compiled_and_plain(tools, core: MemoryCore, steps: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, steps, WIDTH)
    reset = torch.zeros(2, steps, dtype=torch.bool)
    reset[0, steps // 2] = True
    state = core.init_state(2).detach()
    torch.compiler.reset()
    compiled = torch.compile(core, backend="eager", fullgraph=True)
    (y, after), (y_plain, after_plain) = compiled(x, state, reset), core(x, state, reset)
    torch.testing.assert_close(y, y_plain, rtol=1e-5, atol=1e-6)
    tools.assert_same_state(after, after_plain, tolerance=1e-5)


@pytest.mark.parametrize("name", QUICK)
def test_one_graph(tools, name):
    compiled_and_plain(tools, tools.small(name), steps=6)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 6])
def test_one_graph_for_steps_and_chunks(tools, single, steps):
    compiled_and_plain(tools, single.core(torch.float32), steps)
