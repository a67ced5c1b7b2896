"""Even positions: successive places are orthogonal; a delta rule with keys so turned is a ring."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sojourn.memory import ExactScalar, Gates, Heads, SquaredError, Tokens, Views
from sojourn.memory.rotary import rotate
from sojourn.memory.segments import travelled

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


@pytest.mark.parametrize("with_reset", [False, True])
def test_places_travelled_are_the_sums_since_the_reset(with_reset):
    moves, carried = torch.randn(3, 9).double(), torch.randn(3).double()
    reset = torch.rand(3, 9) < 0.3
    reset[0, 0] = reset[1, 8] = True
    before, end = travelled(carried, moves, reset if with_reset else None)
    for row in range(3):
        place = carried[row]
        for t in range(9):
            place = torch.zeros_like(place) if with_reset and reset[row, t] else place
            torch.testing.assert_close(before[row, t], place)
            place = place + moves[row, t]
        torch.testing.assert_close(end[row], place)


def test_a_steered_tape_is_wound_back_to_the_keys_it_has_passed():
    heads = Heads(width=8, num_heads=2, key_width=KEY, value_width=3)
    views = Views(heads, conv_width=1, positions="steered").double()
    features = torch.randn(views.num_features).double().expand(1, 9, -1).clone()
    way = torch.tensor([1, 1, 1, 1, -1, -1, -1, -1, 1])
    features[..., -1] = 40.0 * way  # tanh of it is 1 or -1
    mask = torch.ones(1, 9, dtype=torch.bool)
    mask[0, 2] = False
    tokens, after = views(features, views.init_state(1), None, mask)
    places = [0, 1, 2, 2, 3, 2, 1, 0, -1]
    for t, place in enumerate(places):
        twin = places.index(place)
        torch.testing.assert_close(tokens.key[:, t], tokens.key[:, twin])
        torch.testing.assert_close(tokens.query[:, t], tokens.query[:, twin])
    assert (tokens.key[0, 0] - tokens.key[0, 1]).abs().max() > 0.1
    torch.testing.assert_close(after["place"], torch.zeros(1, 1).double())


def test_a_steered_place_that_is_no_number_is_cleared_by_a_reset():
    heads = Heads(width=8, num_heads=1, key_width=KEY, value_width=3)
    views = Views(heads, conv_width=1, positions="steered").double()
    features = torch.randn(1, 4, views.num_features).double()
    reset = torch.tensor([[False, False, True, False]])
    spoilt = features.clone()
    spoilt[:, 1, -1] = torch.nan
    broken = {"place": torch.tensor([[torch.nan]]).double()}
    tokens, after = views(spoilt, broken, reset, None)
    whole, after_whole = views(features, views.init_state(1), reset, None)
    torch.testing.assert_close(tokens.key[:, 2:], whole.key[:, 2:])
    torch.testing.assert_close(after["place"], after_whole["place"])


def test_steered_places_in_float32_are_those_of_single_tokens():
    heads = Heads(width=8, num_heads=1, key_width=KEY, value_width=3)
    views = Views(heads, conv_width=1, positions="steered")
    features, steps = torch.randn(2, 400, views.num_features), []
    whole, _ = views(features, views.init_state(2), None, None)
    state = views.init_state(2)
    for t in range(400):
        tokens, state = views(features[:, t : t + 1], state, None, None)
        steps.append(tokens.key)
    torch.testing.assert_close(torch.cat(steps, 1), whole.key, rtol=0, atol=1e-6)
