"""Laws of whole families of registered memories: chunk sizes are speed, erasing never lengthens."""

from __future__ import annotations

import re

import pytest
import torch

from .conftest import NAMES, config_path

SPEED = re.compile(r"^ *chunk_size: .*# speed only", re.MULTILINE)
EXACT = [name for name in NAMES if SPEED.search(config_path(name).read_text())]
PLACES = ("solver", "solver__solver", "long_term__solver", "members__fast__solver")
NEVER_GROW = ["delta_net", "gated_delta_net", "delta_product", "longhorn", "kda", "comba", "memt"]
NEVER_GROW += ["falcon1", "falcon2", "falcon3", "omega_linear"]
OVERSHOOTS = pytest.mark.xfail(
    strict=True, raises=AssertionError, reason="momentum carries the weights past their target"
)
STEPS = 23


@pytest.mark.parametrize("name", EXACT)
def test_chunk_sizes_never_change_a_memory_or_its_gradients(tools, name):
    x = torch.randn(2, STEPS, 6, dtype=torch.float64, requires_grad=True)
    reset, mask = torch.rand(2, STEPS) < 0.1, torch.rand(2, STEPS) < 0.9
    commit = torch.rand(2, STEPS) < 0.3
    results = []
    for chunk_size in (1, 4, 7, 16, STEPS):
        torch.manual_seed(0)
        sizes = {f"{place}__chunk_size": chunk_size for place in PLACES}
        core = tools.build(name, key_width=4, value_width=3, **sizes).double()
        assert chunk_size in {getattr(part, "chunk_size", 0) for part in core.modules()}
        tools.randomise(core)
        y, after = core(x, core.init_state(2), reset, mask, commit)
        leaves = [one for one in tools.flatten(after).values() if one.is_floating_point()]
        loss = y.tanh().square().sum() + sum(one.sin().sum() for one in leaves)
        options = {"allow_unused": True, "materialize_grads": True}
        gradients = torch.autograd.grad(loss, [x, *core.parameters()], **options)
        results.append([y, *leaves, *gradients])
    for other in results[1:]:
        for one, first in zip(other, results[0], strict=True):
            torch.testing.assert_close(one, first, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    "name",
    [
        *NEVER_GROW,
        *(pytest.param(one, marks=OVERSHOOTS) for one in ("momentum_delta", "titans_linear")),
    ],
)
def test_delta_memories_never_grow_without_values(tools, name):
    core = tools.build(name, key_width=4, value_width=3).double()
    tools.randomise(core)
    views = getattr(core.views, "views", core.views)
    views.value_map = torch.zeros_like
    state = core.init_state(2)
    norm = state["weights"].norm(dim=(-2, -1))
    assert (norm > 0).all()
    for _ in range(60):
        _, state = core.step(3 * torch.randn(2, 6, dtype=torch.float64), state)
        shrunk = state["weights"].norm(dim=(-2, -1))
        assert (shrunk <= norm + 1e-12).all()
        norm = shrunk
