"""Even positions: successive places are orthogonal; a delta rule with keys so turned is a ring."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sojourn.memory import ExactScalar, Gates, Heads, SquaredError, Tokens
from sojourn.memory.rotary import rotate

KEY, STEPS = 8, 30


def places(first: int, num: int, angles: str = "even") -> Tensor:
    """A key of unit norm, all pairs equally long, at `num` places from `first` on: `[num, K]`."""
    key = torch.cat([torch.ones(KEY // 2), torch.zeros(KEY // 2)]).double() / (KEY // 2) ** 0.5
    at = torch.arange(first, first + num).unsqueeze(0)
    return rotate(key.expand(1, num, 1, KEY), at, angles)[0, :, 0]


@pytest.mark.parametrize("first", [0, 5, 10**9])
def test_successive_places_are_orthogonal_and_come_back_with_the_other_sign(first):
    at = places(first, KEY)
    torch.testing.assert_close(at @ at.T, torch.eye(KEY).double(), rtol=0, atol=1e-5)
    torch.testing.assert_close(places(first + KEY, KEY), -at, rtol=0, atol=1e-5)


def test_places_of_the_published_angles_overlap():
    at = places(0, KEY, "rotary")
    assert (at @ at.T - torch.eye(KEY)).abs().max() > 0.8


@pytest.mark.parametrize("lag", [0, 1, KEY - 1])
def test_a_delta_rule_is_a_ring_of_as_many_tokens_as_keys_are_wide(lag):
    heads = Heads(width=8, num_heads=1, key_width=KEY, value_width=3)
    solver = ExactScalar(heads, SquaredError(heads), chunk_size=4).double()
    values = torch.randn(1, STEPS, 1, 3).double()
    keys, queries = (places(first, STEPS).view(1, STEPS, 1, KEY) for first in (lag, 0))
    ones = torch.ones(1, STEPS, 1).double()
    state = {name: torch.zeros_like(leaf) for name, leaf in solver.init_state(1).items()}
    tokens, gates = Tokens(queries, keys, values), Gates(0 * ones, ones)
    reads, _ = solver(tokens, gates, state, None, None)
    torch.testing.assert_close(reads[:, lag:], values[:, : STEPS - lag])
    assert (reads[:, :lag].abs() < 1e-12).all()
