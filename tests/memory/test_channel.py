"""Channel-gated memories against their equations, written token by token and row by row."""

from __future__ import annotations

import pytest
import torch

BATCH, STEPS, WIDTH = 3, 13, 6
CORES = ["gla", "kda", "gdn2", "comba", "rwkv7", "memt"]
SMALL = {"num_heads": 2, "key_width": 4, "value_width": 3, "rule__num_experts": 3}


def token_of_gla(rule, gates, w, q, k, v):
    w = w * gates["retention"].exp() + torch.outer(v, k)
    return w, w @ q


def token_of_kda(rule, gates, w, q, k, v):
    w = w * gates["retention"].exp()
    w = w + gates["write_rate"] * torch.outer(v - w @ k, k)
    return w, w @ q


def token_of_gdn2(rule, gates, w, q, k, v):
    w = w * gates["retention"].exp()
    w = w - torch.outer(w @ (gates["erase_rate"] * k), k) + torch.outer(gates["write_rate"] * v, k)
    return w, w @ q


def token_of_comba(rule, gates, w, q, k, v):
    d, rate = torch.sigmoid(rule["feedback"]), gates["write_rate"]
    w = gates["retention"].exp() * w + rate * torch.outer(v - w @ (d * k), k)
    return w, w @ (q - rule["correction"] * d * k * len(k) ** -0.5)


def token_of_rwkv7(rule, gates, w, q, k, v):
    a = gates["erase_rate"]
    c = k * rule["erase_scale"]
    c = c / (c.square().sum() + 1e-6).sqrt()
    h = k * (1 + rule["write_mixing"] * (a - 1))
    transition = torch.diag(gates["retention"].exp()) - torch.outer(c, a * c)
    w = w @ transition + torch.outer(v, h)
    return w, w @ q + (q * rule["bonus"]) @ h * v


def token_of_memt(rule, gates, w, q, k, v):
    """`w` `[E, V, K]`; the read is that of the weights given by the caller, not of the new ones."""
    written = gates["write_routing"].exp()
    experts = []
    for e in range(len(w)):
        u = (gates["erase_rate"].exp() * written[e]).sqrt() * k
        kept = w[e] * gates["retention"][e].exp()
        kept = kept @ (torch.eye(len(k), dtype=w.dtype) - torch.outer(u, u))
        experts.append(kept + written[e] * torch.outer(gates["write_rate"] * v, u))
    read = sum(p * one @ q for p, one in zip(gates["read_routing"].exp(), w, strict=True))
    return torch.stack(experts), read


TOKEN = {
    "gla": token_of_gla,
    "kda": token_of_kda,
    "gdn2": token_of_gdn2,
    "comba": token_of_comba,
    "rwkv7": token_of_rwkv7,
}


def slow_memory(core, name, x, weights, reset, mask, commit, snapshot):
    """Outputs, final weights and final snapshot of a loop over rows, heads and tokens."""
    for_views, for_rule, for_readout = core.projection(x).split(core.feature_sizes, dim=-1)
    window = core.init_state(BATCH)["conv_window"]
    tokens, _ = core.views(for_views, {"conv_window": window}, reset, mask)
    heads = core.rule.heads.num_heads
    gates = core.rule.gate_values(for_rule)
    if name == "memt":
        gates["retention"] = gates["retention"].unflatten(2, (heads, -1))
        weights, snapshot = (one.unflatten(1, (heads, -1)) for one in (weights, snapshot))
    own = dict(core.rule.named_parameters(recurse=False))
    start = core.solver.initial_weights.view(weights.shape[1:])
    reads = torch.zeros_like(tokens.value)
    finals, snapshots = [], []
    for b in range(BATCH):
        for h in range(heads):
            w, s = weights[b, h], None if snapshot is None else snapshot[b, h]
            for t in range(STEPS):
                if reset[b, t]:
                    w, s = start[h], None if s is None else start[h]
                parts = (
                    {n: p[h] for n, p in own.items()},
                    {n: g[b, t, h] for n, g in gates.items()},
                )
                view = [one[b, t, h] for one in tokens]
                if name == "memt":
                    written, _ = token_of_memt(*parts, w, *view)
                    read = token_of_memt(*parts, s, *view)[1]
                else:
                    written, read = TOKEN[name](*parts, w, *view)
                    if not mask[b, t]:
                        bonus = read - written @ view[0] if name == "rwkv7" else 0.0
                        query = view[0] if name != "comba" else _corrected(*parts, *view[:2])
                        read = w @ query + bonus
                w = written if mask[b, t] else w
                s = w if commit[b, t] and mask[b, t] else s
                reads[b, t, h] = read
            finals.append(w)
            snapshots.append(s)
    final = torch.stack(finals).view(BATCH, -1, *finals[0].shape[-2:])
    y = core.readout(reads, for_readout)
    return y, final, None if snapshot is None else torch.stack(snapshots).view_as(final)


def _corrected(rule, gates, q, k):
    return q - rule["correction"] * torch.sigmoid(rule["feedback"]) * k * len(k) ** -0.5


@pytest.mark.parametrize(("chunk_size", "block_size"), [(1, 1), (4, 2), (7, 3), (64, 4), (64, 16)])
@pytest.mark.parametrize("name", CORES)
def test_cores_equal_their_published_recurrence(tools, name, chunk_size, block_size):
    sizes = {"solver__chunk_size": chunk_size, "solver__block_size": block_size}
    core = tools.build(name, width=WIDTH, **SMALL, **sizes).double()
    tools.randomise(core)
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64, requires_grad=True)
    reset, mask = torch.rand(BATCH, STEPS) < 0.15, torch.rand(BATCH, STEPS) < 0.8
    reset[0, 0] = reset[1, 6:8] = True
    commit = torch.rand(BATCH, STEPS) < 0.3
    # A masked commit that no other hides.
    reset[2], mask[2, 3:5], commit[2] = False, torch.tensor([True, False]), False
    commit[2, 4] = True
    state = core.init_state(BATCH)
    leaves = {
        leaf: torch.randn(state[leaf].shape, dtype=torch.float64, requires_grad=True)
        for leaf in ("weights", "snapshot")
        if leaf in set(state.keys())
    }
    for leaf, value in leaves.items():
        state[leaf] = value
    y, after = core(x, state, reset, mask, commit)
    slow = slow_memory(
        core, name, x, leaves["weights"], reset, mask, commit, leaves.get("snapshot")
    )
    results = [(y, after["weights"], after.get("snapshot")), slow]
    sources = [x, *leaves.values(), *core.parameters()]
    for index, outcome in enumerate(results):
        tensors = [one for one in outcome if one is not None]
        loss = sum(one.sin().sum() for one in tensors)
        results[index] = [*tensors, *torch.autograd.grad(loss, sources)]
    for fast, truth in zip(*results, strict=True):
        torch.testing.assert_close(fast, truth, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", CORES)
def test_chunk_and_block_sizes_never_change_the_memory(tools, name):
    x = torch.randn(2, 37, WIDTH, dtype=torch.float64)
    flags = [torch.rand(2, 37) < share for share in (0.1, 0.9, 0.2)]
    results = []
    for chunk_size, block_size in ((1, 16), (5, 2), (16, 16), (16, 5), (37, 8), (64, 64)):
        torch.manual_seed(0)
        sizes = {"solver__chunk_size": chunk_size, "solver__block_size": block_size}
        core = tools.build(name, width=WIDTH, **SMALL, **sizes).double()
        results.append(core(x, core.init_state(2), *flags))
    for y, state in results[1:]:
        torch.testing.assert_close(y, results[0][0], rtol=1e-10, atol=1e-12)
        tools.assert_same_state(state, results[0][1])
