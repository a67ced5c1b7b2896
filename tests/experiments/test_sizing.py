"""Sizes that match another memory's."""

import pytest
from omegaconf import DictConfig

from sojourn.experiments import catalog
from sojourn.experiments.config import compose_config, parse
from sojourn.experiments.errors import UsageError
from sojourn.experiments.sizing import Quantity, match, measure

WIDTH = 32
TARGETS: dict[Quantity, int] = {"parameters": 12_000, "state_bytes": 3_000}


def config(name: str, *words: str) -> DictConfig:
    return compose_config(parse([f"memory={name}", *words]))


# One of every kind; the others take half a second each.
KINDS = ["delta_net", "ttt_mlp", "gru", "none", "hybrid", "sliding_window", "memt"]
OTHERS = [name for name in catalog.options("memory") if name not in KINDS]


@pytest.mark.parametrize(
    "name", [*KINDS, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]
)
def test_parameters_are_matched_by_every_memory(name: str) -> None:
    sized = match(config(name), WIDTH, "parameters", TARGETS["parameters"])
    assert sized.reached, (sized.off, sized.changes)
    assert measure(sized.config, WIDTH) == sized.size
    assert sized.off == pytest.approx(sized.size.parameters / sized.target - 1)


@pytest.mark.parametrize("name", ["delta_net", "memt", "lstm", "sliding_window", "mesa_net"])
def test_state_bytes_are_matched(name: str) -> None:
    sized = match(config(name), WIDTH, "state_bytes", TARGETS["state_bytes"])
    assert sized.reached, (sized.off, sized.changes)
    assert measure(sized.config, WIDTH).state_bytes == sized.size.state_bytes


def test_the_number_of_heads_stays_and_windows_move_for_state_only() -> None:
    sized = match(config("sliding_window"), WIDTH, "state_bytes", TARGETS["state_bytes"])
    assert set(sized.changes) <= {"cache.window", "value_width"}
    assert sized.config.memory.num_heads == 2
    sized = match(config("sliding_window"), WIDTH, "parameters", TARGETS["parameters"])
    assert set(sized.changes) == {"key_width", "value_width"}
    assert sized.config.memory.key_width % 2 == 0, "rotary positions need even keys"


def test_a_memory_matches_itself_unchanged() -> None:
    own = measure(config("delta_net"), WIDTH)
    sized = match(config("delta_net"), WIDTH, "parameters", own.parameters)
    assert sized.off == 0
    assert not sized.changes


def test_a_better_size_is_never_missed() -> None:
    """All levels of the two widths one by one: none is nearer than what bisection finds jointly."""
    target = 3_000
    sized = match(config("linear_attention"), WIDTH, "parameters", target)
    for level in range(1, 40):
        words = [f"memory.key_width={level}", f"memory.value_width={level}"]
        other = measure(config("linear_attention", *words), WIDTH)
        assert abs(other.parameters / target - 1) >= abs(sized.off)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("softmax_attention", "grows with every token"), ("none", "has no state")],
)
def test_what_cannot_be_matched_is_said(name: str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        match(config(name), WIDTH, "state_bytes", 1000)


def test_a_target_out_of_reach_is_reported_not_hidden() -> None:
    sized = match(config("titans"), WIDTH, "state_bytes", 40)
    assert not sized.reached
    assert sized.off > 0.05
