"""Several queries per head: every core reads the same memory as often, at any split."""

from __future__ import annotations

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import Tensor

from sojourn.memory import AttentionMemory, FastWeightMemory, MemoryCore

BATCH, STEPS, WIDTH, HEADS, QUERIES = 3, 11, 6, 2, 3
SIZES = {
    "num_heads": HEADS,
    "key_width": 4,
    "value_width": 4,
    "solver.chunk_size": 4,
    "solver.window": 3,
    "solver.period": 3,
    "cache.window": 5,
}
CORES = [
    "gated_delta_net",
    "linear_attention",
    "delta_product",
    "titans_linear",
    "falcon1",
    "mamba2",
    "mesa_net",
    "omega_linear",
    "titans",
    "ttt_linear",
    "retnet",
    "residual_replay",
    "softmax_attention",
    "sliding_window",
    "topk_attention",
    "nadaraya_watson",
    "kernel_ridge",
]


def make(tools, name: str, queries: int = QUERIES) -> MemoryCore:
    config = OmegaConf.load(tools.config_path(name))
    for key, value in SIZES.items():
        if OmegaConf.select(config, key) is not None:
            OmegaConf.update(config, key, value)
    config.queries_per_head = queries
    core = instantiate(config, width=WIDTH).double()
    tools.randomise(core)
    return core


def one_query(tools, core, name: str, query: int) -> MemoryCore:
    """The same memory with one of the queries alone: parameters of the others left out."""
    alone = make(tools, name, 1)
    heads = core.views.heads
    q = heads.num_heads * heads.key_width
    v = heads.num_heads * heads.value_width
    kept_q = slice(query * q, (query + 1) * q)
    parameters = dict(core.named_parameters())
    views = core.views.num_features

    def features(x: Tensor, axis: int) -> Tensor:
        """Columns of the projection, or channels of the convolution, of this query."""
        x = x.movedim(axis, 0)
        return torch.cat([x[kept_q], x[QUERIES * q :]]).movedim(0, axis)

    with torch.no_grad():
        for parameter_name, parameter in alone.named_parameters():
            key = parameter_name
            if key.startswith("solver.") and key not in parameters:
                key = key.replace("solver.", "solver.solver.", 1)
            source = parameters[key]
            if key.endswith("convolution.kernel"):
                source = features(source, 1)
            elif key == "projection.weight":
                rest, gate = source[views:], source[:0]
                if core.readout.num_features:
                    rest, gate = source[views : -QUERIES * v], source[-QUERIES * v :]
                    gate = gate[query * v : (query + 1) * v]
                source = torch.cat([features(source[:views], 0), rest, gate])
            elif key == "readout.scale":
                source = source[query * v : (query + 1) * v]
            elif key == "readout.output.weight":
                source = source[:, query * v : (query + 1) * v]
            parameter.copy_(source)
    return alone


def make_flags() -> tuple[Tensor, Tensor]:
    reset = torch.rand(BATCH, STEPS) < 0.2
    reset[0, 0] = reset[1, 4] = reset[1, 5] = reset[2, -1] = True
    mask = torch.rand(BATCH, STEPS) < 0.7
    mask[2] = False
    return reset, mask


# A rehearsal lies between the first query of its token and the others.
@pytest.mark.parametrize("name", [name for name in CORES if name != "residual_replay"])
def test_outputs_are_the_sum_over_memories_with_one_query_each(tools, name):
    """The output projection is linear, and every query reads the same stream's memory."""
    core = make(tools, name)
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64)
    reset, mask = make_flags()
    y, state = core(x, core.init_state(BATCH), reset, mask)
    total = torch.zeros_like(y)
    for query in range(QUERIES):
        alone = one_query(tools, core, name, query)
        y_alone, state_alone = alone(x, alone.init_state(BATCH), reset, mask)
        total = total + y_alone
        conv = {"conv_window"} & set(state.keys())  # it holds the queries too
        tools.assert_same_state(state_alone.exclude(*conv), state.exclude(*conv), 1e-9)
    torch.testing.assert_close(y, total, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", CORES)
def test_steps_and_splits_equal_one_call(tools, name):
    core = make(tools, name)
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64, requires_grad=True)
    reset, mask = make_flags()
    results = []
    for sizes in ([STEPS], [1] * STEPS, [2, 1, 5, 3]):
        flags = {"reset": reset, "mask": mask}
        y, state = tools.run_in_parts(core, x, core.init_state(BATCH), flags, sizes)
        leaves = [leaf for leaf in tools.flatten(state).values() if leaf.is_floating_point()]
        total = y.tanh().square().sum() + sum(leaf.sin().sum() for leaf in leaves)
        gradients = torch.autograd.grad(
            total, [x, *core.parameters()], allow_unused=True, materialize_grads=True
        )
        results.append((state, [y, *gradients]))
    for state, parts in results[1:]:
        tools.assert_same_state(state, results[0][0], 1e-9)
        for part, whole in zip(parts, results[0][1], strict=True):
            torch.testing.assert_close(part, whole, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", CORES)
def test_further_queries_only_read(tools, name):
    """A masked token changes nothing, and the state is that of one query per head."""
    core, one = make(tools, name), make(tools, name, 1)
    x = torch.randn(BATCH, 3, WIDTH, dtype=torch.float64)
    _, state = core(torch.randn(BATCH, 5, WIDTH, dtype=torch.float64), core.init_state(BATCH))
    nothing = torch.zeros(BATCH, 3, dtype=torch.bool)
    for steps in (1, 3):
        y, after = core(x[:, :steps], state, mask=nothing[:, :steps])
        assert y.isfinite().all()
        tools.assert_same_state(after, state, tolerance=0.0)
    shapes, expected = (
        {n: leaf.shape for n, leaf in tools.flatten(each.init_state(2)).items()}
        for each in (core, one)
    )
    shapes.pop("conv_window", None), expected.pop("conv_window", None)  # it holds the queries
    assert shapes == expected


@pytest.mark.parametrize("make_core", [FastWeightMemory, AttentionMemory])
def test_no_query_is_refused(make_core):
    with pytest.raises(ValueError, match="queries_per_head must be at least 1, got 0; use 1"):
        make_core(8, queries_per_head=0)
