"""Update rules without training, against the values measured with independent prototypes."""

import pytest
import torch
from torch import Tensor

from sojourn.experiments.build import build_memory
from sojourn.experiments.config import compose_config, parse
from sojourn.experiments.probes.named_rules import named_rules
from sojourn.experiments.probes.rules import measure_rule, random_pairs, reader_of

# Rule -> table -> scores of the prototypes; None where equal weights make the answer a coin toss.
MEASURED: dict[str, dict[str, list[float | None]]] = {
    "Hebb": {
        "recall": [1.0, 0.99, 0.84, 0.61],
        "age": [0.64, 0.64, 0.61, 0.61],
        "overwriting": [1.0, 0.43, 0.27, 0.10],
        "correlated": [1.0, 0.79, 0.31],
    },
    "delta": {
        "recall": [0.98, 0.80, 0.45, 0.30],
        "age": [0.01, 0.05, 0.26, 0.86],
        "overwriting": [0.99, 0.96, 0.97, 0.95],
        "correlated": [0.98, 0.80, 0.18],
        "unseen": [0.98, 0.52],
    },
    "gated delta .98": {
        "recall": [0.96, 0.70, 0.38, 0.25],
        "age": [0.01, 0.02, 0.15, 0.82],
        "overwriting": [0.97, 0.94, 0.96, 0.94],
        "correlated": [0.96, 0.71, 0.14],
        "unseen": [0.78, 0.48],
    },
    "ridge": {
        "recall": [1.0, 1.0, 0.99, 0.82],
        "age": [0.81, 0.81, 0.80, 0.80],
        "overwriting": [1.0, None, 0.30, 0.12],
        "correlated": [1.0, 1.0, 1.0],
        "unseen": [1.0, 0.68],
    },
    "network": {
        "recall": [0.98, 0.97, 0.74, 0.52],
        "age": [0.16, 0.32, 0.67, 0.96],
        "overwriting": [1.0, 0.99, 0.98, 0.97],
        "correlated": [1.0, 0.86, 0.29],
        "unseen": [0.90, 0.61],
    },
    "softmax": {
        "recall": [1.0, 1.0, 1.0, 1.0],
        "age": [1.0, 1.0, 1.0, 1.0],
        "overwriting": [1.0, 0.49, 0.30, 0.12],
        "correlated": [1.0, 1.0, 1.0],
        "unseen": [0.44, 0.31],
    },
    "softmax, last 32": {
        "recall": [1.0, 1.0, 0.50, 0.33],
        "age": [0.0, 0.0, 0.33, 1.0],
        "overwriting": [1.0, 0.49, 0.46, 0.57],
        "correlated": [1.0, 1.0, 1.0],
        "unseen": [0.26, 0.15],
    },
}
SPREAD = 0.12  # both sides are means of 16 rows, and the network starts from other weights


@pytest.mark.parametrize("rule", MEASURED)
def test_textbook_rules_score_as_measured(rule: str) -> None:
    tables = measure_rule(named_rules()[rule])
    for name, expected in MEASURED[rule].items():
        found = list(tables[name].values())
        for score, wanted in zip(found, expected, strict=True):
            assert wanted is None or score == pytest.approx(wanted, abs=SPREAD), (name, found)


def delta_by_hand(keys: Tensor, values: Tensor, queries: Tensor) -> Tensor:
    weights = torch.zeros(keys.shape[0], values.shape[-1], keys.shape[-1])
    for key, value in zip(keys.unbind(1), values.unbind(1), strict=True):
        error = value - (weights @ key.unsqueeze(-1)).squeeze(-1)
        weights = weights + error.unsqueeze(-1) * key.unsqueeze(-2)
    return queries @ weights.mT


def test_the_solver_is_the_rule_written_out() -> None:
    keys, values = random_pairs(40)
    queries = random_pairs(10).keys
    reads = named_rules()["delta"](keys, values, queries)
    torch.testing.assert_close(reads, delta_by_hand(keys, values, queries), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "memory",
    ["delta_net", "delta_product", "kda", "memt", "ttt_mlp", "titans_linear", "mesa_net", "atlas"],
)
def test_memories_of_fast_weights_recall_a_single_pair(memory: str) -> None:
    words = [f"memory={memory}", "memory.num_heads=1"]
    words += ["memory.key_width=32", "memory.value_width=32"]
    read = reader_of(build_memory(compose_config(parse(words)), 32))
    assert read is not None
    keys, values = random_pairs(1)
    with torch.no_grad():
        empty = read(torch.zeros_like(keys), torch.zeros_like(values), keys)
        moved = read(keys, values, keys) - empty
    cosine = torch.nn.functional.cosine_similarity(moved, values, dim=-1)
    assert float(cosine.mean()) > 0.5


@pytest.mark.parametrize("memory", ["linear_attention", "kda"])
@pytest.mark.parametrize("feature_map", ["dpfp2", "taylor"])
def test_a_feature_map_makes_the_keys_of_a_rule_longer(memory: str, feature_map: str) -> None:
    words = [f"memory={memory}", "memory.num_heads=1", f"memory.views.feature_map={feature_map}"]
    words += ["memory.key_width=32", "memory.value_width=32"]
    read = reader_of(build_memory(compose_config(parse(words)), 32))
    assert read is not None
    keys, values = random_pairs(4)
    with torch.no_grad():
        reads = read(keys, values, keys)
    assert float(torch.nn.functional.cosine_similarity(reads, values, dim=-1).mean()) > 0.5


def test_a_memory_without_fast_weights_has_no_rule() -> None:
    assert reader_of(build_memory(compose_config(parse(["memory=gru"])), 8)) is None
