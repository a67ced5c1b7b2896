"""Options of the views, rotary positions and learned feature networks, over many cores."""

from __future__ import annotations

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import Tensor
from torch.nn import functional

from sojourn.memory import AttentionMemory, Heads, MemoryCore, Views

BATCH, STEPS, WIDTH, HEADS, KEY = 3, 11, 6, 2, 4
SIZES = {
    "num_heads": HEADS,
    "key_width": KEY,
    "value_width": KEY,
    "solver.chunk_size": 4,
    "solver.block_size": 2,
    "solver.window": 3,
    "solver.period": 3,
    "cache.window": 5,
}
ATTENTION = ["softmax_attention", "sliding_window", "kernel_ridge"]
FAST_WEIGHTS = [
    "delta_product",
    "falcon1",
    "gated_delta_net",
    "kda",
    "linear_attention",
    "memt",
    "mesa_net",
    "omega_linear",
    "residual_replay",
    "titans",
    "titans_linear",
]
OPTIONS = {
    "rotary": {"positions": "rotary"},
    "even": {"positions": "even"},
    "steered": {"positions": "steered"},
    "networks": {"key_network": 2, "value_network": 1},
    "both": {"positions": "rotary", "key_network": 1, "value_network": 2},
}


def make(tools, name: str, dtype=torch.float64, **options) -> MemoryCore:
    config = OmegaConf.load(tools.config_path(name))
    for key, value in SIZES.items():
        if OmegaConf.select(config, key) is not None:
            OmegaConf.update(config, key, value)
    views = config.views.views if "views" in config.views else config.views
    if "positions" in config and "positions" in options:
        steered = options["positions"] == "steered"  # by the views alone
        config.positions = "none" if steered else options.pop("positions")
    for key, value in options.items():
        views[key] = value
    core = instantiate(config, width=WIDTH).to(dtype)
    tools.randomise(core)
    return core


def make_flags() -> dict[str, Tensor]:
    reset, mask = torch.rand(BATCH, STEPS) < 0.2, torch.rand(BATCH, STEPS) < 0.7
    reset[0, 0] = reset[1, 4] = reset[1, 5] = reset[2, -1] = True
    commit = torch.rand(BATCH, STEPS) < 0.5
    return {"reset": reset, "mask": mask, "commit": commit}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", [*FAST_WEIGHTS, *ATTENTION])
def test_steps_and_splits_equal_one_call(tools, name, options):
    core = make(tools, name, **OPTIONS[options])
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64, requires_grad=True)
    flags, results = make_flags(), []
    for sizes in ([STEPS], [1] * STEPS, [2, 1, 5, 3]):
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


@pytest.mark.parametrize("name", [*FAST_WEIGHTS, *ATTENTION])
def test_positions_start_anew_at_a_reset(tools, name):
    core = make(tools, name, positions="rotary")
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64)
    flags = tools.commits(core, BATCH, STEPS)
    reset = torch.zeros(BATCH, STEPS, dtype=torch.bool)
    reset[:, 4] = True
    y, state = core(x, core.init_state(BATCH), reset, **flags)
    assert state["position"].dtype == torch.int64
    assert state["position"].tolist() == [STEPS - 4] * BATCH
    flags = tools.commits(core, BATCH, STEPS - 4)
    start = core.init_state(BATCH)
    if core.anchored:
        start = tools.initial_like(core, core(x[:, :4], start)[1])
    alone, after = core(x[:, 4:], start, **flags)
    torch.testing.assert_close(y[:, 4:], alone, rtol=1e-10, atol=1e-12)
    tools.assert_same_state(state, after)


SHIFTABLE = [
    name
    for name in [*FAST_WEIGHTS, "softmax_attention"]
    # Networks and gates per key channel are not blind to a rotation common to keys and queries.
    if name not in ("titans", "kda", "memt")
]


@pytest.mark.parametrize("name", SHIFTABLE)
@pytest.mark.parametrize("far", [5, 2**33])
def test_reads_depend_on_distances_only(tools, name, far):
    """A life that starts at a late position, with nothing stored, reads the same."""
    core = make(tools, name, positions="rotary")
    with torch.no_grad():
        for parameter_name, parameter in core.named_parameters():
            if "initial" in parameter_name:
                parameter.zero_()
            if "free_ridge" in parameter_name:  # of one size for all key channels
                parameter.fill_(1.0)
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64)
    early, late = core.init_state(BATCH), core.init_state(BATCH)
    late["position"] = torch.full((BATCH,), far)
    y, _ = core(x, early)
    y_late, after = core(x, late)
    assert after["position"].tolist() == [far + STEPS] * BATCH
    torch.testing.assert_close(y_late, y, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [*FAST_WEIGHTS, *ATTENTION])
def test_networks_start_as_the_identity(tools, name):
    """Without the randomisation: outputs are those of the memory without networks."""
    cores = []
    for options in ({}, {"key_network": 2, "value_network": 3}):
        core = make(tools, name, **options)
        views = getattr(core.views, "views", core.views)
        if options:
            for network in (views.key_network, views.value_network):
                with torch.no_grad():
                    network.up.zero_()
            missing, unexpected = core.load_state_dict(cores[0].state_dict(), strict=False)
            assert not unexpected and all("_network." in key for key in missing)
        cores.append(core)
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64)
    y, y_networks = (core(x, core.init_state(BATCH))[0] for core in cores)
    torch.testing.assert_close(y_networks, y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 1), (1, 3)])
def test_tokens_of_networks_equal_their_definition(sizes):
    writes, queries = sizes
    heads = Heads(8, HEADS, KEY, 3, writes_per_token=writes, queries_per_head=queries)
    views = Views(heads, conv_width=1, key_network=2, value_network=4).double()
    with torch.no_grad():
        for parameter in views.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    features = torch.randn(1, 2, views.num_features, dtype=torch.float64)
    tokens, _ = views(features, {}, None, None)

    def through(network, head: int, x: Tensor) -> Tensor:
        hidden = functional.silu(network.down[head] @ x + network.bias[head])
        return x + network.up[head] @ hidden

    for t in range(2):
        keys, values = features[0, t].split([views.num_key_features, writes * HEADS * 3])
        rows = [through(views.key_network, r % HEADS, x) for r, x in enumerate(keys.split(KEY))]
        rows = [functional.silu(row) for row in rows]
        rows = [row * (row.square().sum() + 1e-6).rsqrt() for row in rows]
        split = queries * HEADS
        torch.testing.assert_close(tokens.query[0, t], torch.stack(rows[:split]) / KEY**0.5)
        torch.testing.assert_close(tokens.key[0, t], torch.stack(rows[split:]))
        rows = [through(views.value_network, r % HEADS, x) for r, x in enumerate(values.split(3))]
        torch.testing.assert_close(tokens.value[0, t], functional.silu(torch.stack(rows)))


@pytest.mark.parametrize("scale", [0.0, 1e-8, 1.0, 1e4])
@pytest.mark.parametrize("name", ["gated_delta_net", "titans", "kda"])
def test_any_scale_of_input_is_finite_in_float32(tools, name, scale):
    core = make(tools, name, torch.float32, key_network=2, value_network=2)
    x = (scale * torch.randn(BATCH, STEPS, WIDTH)).requires_grad_()
    y, _ = core(x, core.init_state(BATCH))
    assert y.isfinite().all()
    for gradient in torch.autograd.grad(y.square().mean(), [x, *core.parameters()]):
        assert gradient.isfinite().all()


@pytest.mark.parametrize(
    ("make_piece", "message"),
    [
        (
            lambda h: Views(h, key_network=-1),
            "key_network must be at least 0, got -1; use 0",
        ),
        (
            lambda h: Views(h, value_network=-2),
            "value_network must be at least 0, got -2; use 0",
        ),
        (
            lambda h: AttentionMemory(8, views=lambda heads: Views(heads, positions="rotary")),
            "got positions in both; use positions=none for the memory or its views",
        ),
    ],
)
def test_bad_arguments_are_refused_in_one_line(make_piece, message):
    with pytest.raises(ValueError) as error:
        make_piece(Heads(8, HEADS, KEY, 3))
    assert message in str(error.value) and "\n" not in str(error.value)
