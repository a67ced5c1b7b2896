"""Kernel and top-k attention against lists of pairs, token by token, and against their limits."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import normalize

from sojourn.memory import Heads, KernelRidge, NadarayaWatson, Softmax, TopK
from sojourn.memory.cache import Entries
from sojourn.memory.kernel import SMALLEST_BANDWIDTH
from sojourn.memory.rotary import rotate

BATCH, STEPS, WINDOW = 3, 17, 5
KEY, VALUE = 4, 3
NAMES = ["nadaraya_watson", "kernel_ridge", "topk_attention"]


def gaussian(a, b, bandwidth):
    """kappa of vectors `[n, K]` and `[m, K]`, as it is defined."""
    return torch.exp(-((a[:, None] - b[None]) ** 2).sum(-1) / (2 * bandwidth**2))


def slow_read(estimator, head, query, keys, values):
    """One head's read `[V]` of one query `[K]` from lists of pairs, as the estimator is defined."""
    if isinstance(estimator, TopK):
        scores = torch.stack([query @ key for key in keys]) * KEY**-0.5
        best = sorted(range(len(keys)), key=lambda j: -scores[j].item())[: estimator.count]
        return scores[best].softmax(0) @ torch.stack(values)[best]
    keys, values = torch.stack(keys), torch.stack(values)
    bandwidth = estimator.kernel.bandwidths()[head]
    at_query = gaussian(query[None], keys, bandwidth)[0]
    if isinstance(estimator, NadarayaWatson):
        return at_query @ values / at_query.sum()
    ridge = estimator.ridges()[head] * torch.eye(len(keys), dtype=keys.dtype)
    return at_query @ torch.linalg.solve(gaussian(keys, keys, bandwidth) + ridge, values)


def slow_memory(core, x, reset, mask):
    features = torch.split(core.projection(x), core.feature_sizes, dim=-1)
    state = dict(core.init_state(BATCH).items())
    tokens, _ = core.views(features[0], state, reset, mask)
    rows = []
    for b in range(BATCH):
        keys, values, position = [], [], 0
        for t in range(STEPS):
            if reset[b, t]:
                keys, values, position = [], [], 0
            query, key = tokens.query[b, t], tokens.key[b, t]
            if core.positions == "rotary":
                at = torch.tensor([[position]])
                query, key = (rotate(one[None, None], at)[0, 0] for one in (query, key))
            if mask[b, t]:
                keys = [*keys, key][-WINDOW:]
                values = [*values, tokens.value[b, t]][-WINDOW:]
                position += 1
            for h in range(core.cache.heads.num_heads):
                pairs = [key[h] for key in keys], [value[h] for value in values]
                read = torch.zeros_like(tokens.value[b, t, h])
                if keys:
                    read = slow_read(core.estimator, h, query[h] * KEY**0.5, *pairs)
                rows.append(read)
    reads = torch.stack(rows).view(BATCH, STEPS, -1, VALUE)
    return core.readout(reads, features[1])


@pytest.mark.parametrize("name", NAMES)
def test_memory_equals_the_estimate_from_lists(tools, name):
    sizes = {"key_width": KEY, "value_width": VALUE, "cache__window": WINDOW, "estimator__count": 2}
    core = tools.build(name, width=8, **sizes).double()
    tools.randomise(core)
    x = torch.randn(BATCH, STEPS, 8, dtype=torch.float64, requires_grad=True)
    reset, mask = torch.rand(BATCH, STEPS) < 0.1, torch.rand(BATCH, STEPS) < 0.7
    sources = [x, *core.parameters()]
    results = []
    for y in (core(x, core.init_state(BATCH), reset, mask)[0], slow_memory(core, x, reset, mask)):
        results.append((y, *torch.autograd.grad(y.sin().sum(), sources)))
    for fast, slow in zip(*results, strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-10)


def make_heads() -> Heads:
    return Heads(width=8, num_heads=2, key_width=KEY, value_width=VALUE)


def make_entries(size: int, dtype=torch.float64) -> tuple[torch.Tensor, Entries]:
    """Scaled queries and entries with keys of length 1, a different number visible to each."""
    query = normalize(torch.randn(BATCH, size, 2, KEY, dtype=dtype), dim=-1) * KEY**-0.5
    keys = normalize(torch.randn(BATCH, size, 2, KEY, dtype=dtype), dim=-1)
    visible = torch.ones(size, size, dtype=torch.bool).tril().expand(BATCH, -1, -1)
    values = torch.randn(BATCH, size, 2, VALUE, dtype=dtype)
    return query, Entries(keys, values, visible, size)


def set_bandwidth(estimator, bandwidth: float) -> None:
    value = torch.tensor(bandwidth - SMALLEST_BANDWIDTH).double().expm1().log()
    estimator.kernel.free_bandwidth.data.fill_(value)


def test_nadaraya_watson_of_unit_keys_is_softmax_attention():
    query, entries = make_entries(9)
    estimator = NadarayaWatson(make_heads()).double()
    set_bandwidth(estimator, KEY**0.25)
    torch.testing.assert_close(estimator(query, entries), Softmax(make_heads())(query, entries))


def test_a_narrow_kernel_reads_the_nearest_neighbour():
    heads = make_heads()
    estimator = NadarayaWatson(heads).double()
    set_bandwidth(estimator, SMALLEST_BANDWIDTH + 1e-9)
    keys = torch.eye(KEY, dtype=torch.float64).view(1, KEY, 1, KEY).expand(BATCH, -1, 2, -1)
    values = torch.randn(BATCH, KEY, 2, VALUE, dtype=torch.float64)
    nearest = torch.tensor([2, 0, 3])
    query = normalize(keys[:, nearest] + 0.2 * torch.rand(BATCH, 3, 2, KEY), dim=-1) * KEY**-0.5
    entries = Entries(keys, values, torch.ones(BATCH, 3, KEY, dtype=torch.bool), KEY)
    torch.testing.assert_close(estimator(query, entries), values[:, nearest])
    best = TopK(heads, count=1).double()
    torch.testing.assert_close(best(query, entries), values[:, nearest])


def test_kernel_ridge_interpolates_what_it_sees():
    query, entries = make_entries(6)
    estimator = KernelRidge(make_heads()).double()
    estimator.free_ridge.data.fill_(-50.0)
    seen = entries.keys * KEY**-0.5
    reads = estimator(seen, entries._replace(visible=torch.ones_like(entries.visible)))
    assert (reads - entries.values).abs().max() < 0.05
    estimator.free_ridge.data.fill_(1e4)
    assert estimator(query, entries).abs().max() < 1e-2


def test_top_k_of_everything_is_softmax():
    query, entries = make_entries(9)
    everything = TopK(make_heads(), count=8)(
        query[:, :8], entries._replace(visible=entries.visible[:, :8])
    )
    softmax = Softmax(make_heads())(query[:, :8], entries._replace(visible=entries.visible[:, :8]))
    torch.testing.assert_close(everything, softmax)


def test_top_k_keeps_ties():
    query, entries = make_entries(6)
    entries = entries._replace(keys=entries.keys[:, :1].expand(-1, 6, -1, -1))
    reads = TopK(make_heads(), count=2)(query, entries)
    torch.testing.assert_close(reads, Softmax(make_heads())(query, entries))


@pytest.mark.parametrize("kind", [Softmax, TopK, NadarayaWatson, KernelRidge])
@pytest.mark.parametrize("zeroed", ["nothing", "queries", "keys", "values", "identical keys"])
def test_degenerate_tokens_are_finite_in_float32(kind, zeroed):
    query, entries = make_entries(40, torch.float32)
    keys, values = entries.keys, entries.values
    if zeroed == "queries":
        query = query * 0
    elif zeroed == "keys":
        keys = keys * 0
    elif zeroed == "values":
        values = values * 0
    elif zeroed == "identical keys":
        keys = keys[:, :1].expand_as(keys)
    sources = [view.clone().requires_grad_() for view in (query, keys, values)]
    estimator = kind(make_heads())
    for parameter in estimator.parameters():
        parameter.data.fill_(-20.0)
    sources += list(estimator.parameters())
    reads = estimator(sources[0], Entries(sources[1], sources[2], entries.visible, entries.most))
    assert reads.isfinite().all()
    for gradient in torch.autograd.grad(reads.square().sum(), sources):
        assert gradient.isfinite().all()
    if zeroed == "identical keys" and kind is KernelRidge:
        at_keys = estimator(keys * KEY**-0.5, entries._replace(keys=keys, values=values))
        means = values.cumsum(1) / torch.arange(1, 41).view(1, -1, 1, 1)
        torch.testing.assert_close(at_keys, means, rtol=0.02, atol=0.02)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda heads: TopK(heads, count=0), "count must be at least 1"),
        (lambda heads: NadarayaWatson(heads, bandwidth=0.0), "bandwidth must be at least"),
        (lambda heads: KernelRidge(heads, ridge=0.0), "ridge must be at least"),
    ],
)
def test_bad_sizes_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make(make_heads())
