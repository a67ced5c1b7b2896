"""Masked policies: masked actions have probability zero and add nothing to entropy or luck."""

import math

import pytest
import torch

from sojourn.agents.actions import mask_logits, masked_categorical, sample_inverse_cdf

MASKS = [
    [True] * 7,
    [True, True, True] + [False] * 4,
    [False] * 6 + [True],
    [False, True] * 3 + [False],
]


@pytest.mark.parametrize("mask", MASKS)
def test_entropy_counts_valid_actions_only(mask: list[bool]) -> None:
    action_mask = torch.tensor(mask)
    logits = mask_logits(torch.zeros(7, requires_grad=True), action_mask)
    entropy = masked_categorical(logits).entropy()
    assert entropy.item() == pytest.approx(math.log(sum(mask)), abs=1e-6)


def test_gradients_through_a_mask_are_finite_and_leave_masked_actions_alone() -> None:
    raw = torch.randn(5, 7, requires_grad=True)
    mask = torch.tensor(MASKS[1])
    dist = masked_categorical(mask_logits(raw, mask))
    (dist.entropy().sum() + dist.log_prob(torch.zeros(5, dtype=torch.long)).sum()).backward()
    assert raw.grad is not None
    assert torch.isfinite(raw.grad).all()
    assert (raw.grad[:, ~mask] == 0).all()
    assert (raw.grad[:, mask] != 0).any()


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("luck", [0.0, 0.25, 0.5, 1.0 - 2**-24])
def test_sampling_never_takes_a_masked_action(mask: list[bool], luck: float) -> None:
    action_mask = torch.tensor(mask)
    logits = mask_logits(torch.randn(1000, 7) * 20, action_mask)
    actions = sample_inverse_cdf(logits, torch.full((1000,), luck))
    assert action_mask[actions].all()


def test_sampling_follows_the_distribution() -> None:
    logits = torch.log(torch.tensor([0.1, 0.6, 0.3]))
    uniform = (torch.arange(10_000) + 0.5) / 10_000
    actions = sample_inverse_cdf(logits.expand(10_000, 3), uniform)
    shares = torch.bincount(actions, minlength=3) / 10_000
    torch.testing.assert_close(shares, torch.tensor([0.1, 0.6, 0.3]), atol=2e-4, rtol=0)


def test_equal_luck_and_equal_policies_act_alike_and_more_luck_never_lowers_the_action() -> None:
    logits = torch.randn(1, 5).expand(100, 5)
    actions = sample_inverse_cdf(logits, torch.linspace(0, 0.999, 100))
    assert (actions.diff() >= 0).all()
    assert torch.equal(actions, sample_inverse_cdf(logits, torch.linspace(0, 0.999, 100)))
