"""Actions as distributions over the outputs of the policy head: one choice, or several parts.

    choice: p = softmax(logits, masked)
    real:   a = tanh(x), x ~ N(mean, std^2), log p(a) = log N(x) - log(1 - a^2)

The log probability of an action is the sum over the parts that its task has. Source of the squashed
Gaussian: Haarnoja et al. 2018, arXiv 1812.05905, appendix C.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution

from sojourn.envs import Interface

LOG_STD_RANGE = (-4.0, 0.5)
FIRST_STD = 0.6
LARGEST_REAL = 1.0 - 2.0**-20  # beyond it atanh cannot tell float32 numbers apart
NUM_NODES = 16  # of the quadrature of the entropy
NORMAL_ENTROPY = 0.5 * math.log(2.0 * math.pi * math.e)


class Actions(Protocol):
    """How the outputs of the policy head `[..., num_outputs]` speak of the actions of a stream."""

    num_outputs: int
    luck_shape: tuple[int, ...]  # uniforms that one action takes

    def mask(self, outputs: Tensor, action_mask: Tensor) -> Tensor:
        """Outputs that say nothing of what `action_mask` `[..., mask_width]` rules out."""

    def distribution(self, outputs: Tensor) -> Distribution:
        """The policy; entropy counts possible actions only."""

    def log_prob(self, outputs: Tensor, action: Tensor) -> Tensor:
        """Log probability `[...]` of actions."""

    def mode(self, outputs: Tensor) -> Tensor:
        """The most likely actions (of a real: the middle one)."""

    def sample(self, outputs: Tensor, uniform: Tensor) -> Tensor:
        """Actions that follow from uniforms `[..., *luck_shape]` in [0, 1): equal luck and equal
        policies act alike.
        """


def actions_of(interface: Interface) -> Actions:
    """What the policy of a stream speaks of."""
    if interface.num_parts == 1:
        return OneChoice(interface.num_actions)
    return SeveralParts(interface.choices, interface.num_reals)


def mask_logits(logits: Tensor, action_mask: Tensor) -> Tensor:
    """Logits `[..., A]` with the actions a task lacks set so low that their probability is exactly
    zero.
    """
    return torch.where(action_mask, logits, torch.finfo(logits.dtype).min)


def masked_categorical(logits: Tensor) -> Categorical:
    """The policy as a distribution; entropy and KL count valid actions only (their p is zero)."""
    return Categorical(logits=logits, validate_args=False)


def sample_inverse_cdf(logits: Tensor, uniform: Tensor) -> Tensor:
    """Actions `[...]` from logits `[..., A]` and uniforms `[...]` in [0, 1): the first possible
    action j with cdf_j > u.

    Two agents that share their uniforms share their luck (common random numbers), which multinomial
    sampling cannot promise.
    """
    probability = torch.softmax(logits, dim=-1)
    cdf = probability.cumsum(dim=-1)
    # Parallel sums need not be monotone in the last digit, so an impossible action is ruled out by
    # its probability and not by its plateau of the cdf.
    possible = probability > 0
    reached = possible & (cdf > uniform.unsqueeze(-1) * cdf[..., -1:])
    last_possible = logits.shape[-1] - 1 - possible.flip(-1).int().argmax(dim=-1)
    return torch.where(reached.any(dim=-1), reached.int().argmax(dim=-1), last_possible)


class OneChoice:
    """A choice among `num_actions`: actions int64 `[...]`, outputs are logits."""

    luck_shape: tuple[int, ...] = ()

    def __init__(self, num_actions: int) -> None:
        self.num_outputs = num_actions

    def mask(self, outputs: Tensor, action_mask: Tensor) -> Tensor:
        return mask_logits(outputs, action_mask)

    def distribution(self, outputs: Tensor) -> Categorical:
        return masked_categorical(outputs)

    def log_prob(self, outputs: Tensor, action: Tensor) -> Tensor:
        return torch.log_softmax(outputs, dim=-1).gather(-1, action.unsqueeze(-1)).squeeze(-1)

    def mode(self, outputs: Tensor) -> Tensor:
        return outputs.argmax(-1)

    def sample(self, outputs: Tensor, uniform: Tensor) -> Tensor:
        return sample_inverse_cdf(outputs, uniform)


class SeveralParts:
    """Choices and reals: actions float32 `[..., num_parts]`, reals in (-1, 1).

    Outputs are the logits of every choice, the means and the log standard deviations of the reals;
    a log standard deviation of -inf marks a real that the task does not have: it is 0.
    """

    def __init__(self, choices: tuple[int, ...], num_reals: int) -> None:
        self.choices, self.num_reals = choices, num_reals
        self.num_outputs = sum(choices) + 2 * num_reals
        self.luck_shape: tuple[int, ...] = (len(choices) + num_reals,)

    def split(self, outputs: Tensor) -> tuple[list[Tensor], Tensor, Tensor]:
        """Logits of every choice, means and log standard deviations."""
        sizes = [*self.choices, self.num_reals, self.num_reals]
        *logits, mean, log_std = torch.split(outputs, sizes, -1)
        return logits, mean, log_std

    def mask(self, outputs: Tensor, action_mask: Tensor) -> Tensor:
        num_options = sum(self.choices)
        options, reals = torch.split(action_mask, [num_options, self.num_reals], -1)
        logits, mean, raw = torch.split(outputs, [num_options, self.num_reals, self.num_reals], -1)
        log_std = torch.where(reals, bounded_log_std(raw), -math.inf)
        return torch.cat([mask_logits(logits, options), mean, log_std], -1)

    def distribution(self, outputs: Tensor) -> Parts:
        return Parts(*self.split(outputs))

    def log_prob(self, outputs: Tensor, action: Tensor) -> Tensor:
        return self.distribution(outputs).log_prob(action)

    def mode(self, outputs: Tensor) -> Tensor:
        logits, mean, log_std = self.split(outputs)
        chosen = [part.argmax(-1) for part in logits]
        return _joined(chosen, torch.where(torch.isfinite(log_std), squash(mean), 0.0))

    def sample(self, outputs: Tensor, uniform: Tensor) -> Tensor:
        logits, mean, log_std = self.split(outputs)
        luck = uniform[..., : len(logits)].unbind(-1)
        chosen = [sample_inverse_cdf(part, u) for part, u in zip(logits, luck, strict=True)]
        # The middle of the float32 grid's cell: a uniform of 0 would be infinitely unlucky.
        middle = uniform[..., len(logits) :].double() + 2.0**-25
        normal = torch.special.ndtri(middle).to(mean.dtype)
        reals = squash(mean + log_std.exp() * normal)
        return _joined(chosen, torch.where(torch.isfinite(log_std), reals, 0.0))


class Parts(Distribution):
    """Independent choices and squashed Gaussians."""

    arg_constraints: dict[str, object] = {}  # type: ignore[assignment]  # noqa: RUF012

    def __init__(self, logits: list[Tensor], mean: Tensor, log_std: Tensor) -> None:
        super().__init__(mean.shape[:-1], validate_args=False)
        self.choices = [masked_categorical(part) for part in logits]
        self.mean_before, self.has = mean, torch.isfinite(log_std)
        self.log_std = torch.where(self.has, log_std, 0.0)

    def log_prob(self, value: Tensor) -> Tensor:
        """Sum over the parts, `[...]`."""
        chosen = value[..., : len(self.choices)].long().unbind(-1)
        choices = zip(self.choices, chosen, strict=True)
        parts = [c.log_prob(part) for c, part in choices]  # type: ignore[no-untyped-call]
        real = value[..., len(self.choices) :].clamp(-LARGEST_REAL, LARGEST_REAL)
        before = torch.atanh(real)
        z = (before - self.mean_before) * (-self.log_std).exp()
        gaussian = -0.5 * z.square() - self.log_std - 0.5 * math.log(2.0 * math.pi)
        density = torch.where(self.has, gaussian - torch.log1p(-real.square()), 0.0)
        return torch.stack([density.sum(-1), *parts]).sum(0)

    def entropy(self) -> Tensor:
        """Sum over the parts, `[...]`; of a real log 2 at most, by Gauss-Hermite quadrature."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(NUM_NODES)
        z = self.log_std.new_tensor(nodes)
        share = self.log_std.new_tensor(weights / weights.sum())
        x = self.mean_before.unsqueeze(-1) + self.log_std.exp().unsqueeze(-1) * z
        # log(1 - tanh(x)^2) without cancellation
        stretch = 2.0 * (math.log(2.0) - x - torch.nn.functional.softplus(-2.0 * x))
        real = NORMAL_ENTROPY + self.log_std + (stretch * share).sum(-1)
        parts = [c.entropy() for c in self.choices]  # type: ignore[no-untyped-call]
        return torch.stack([torch.where(self.has, real, 0.0).sum(-1), *parts]).sum(0)


def bounded_log_std(raw: Tensor) -> Tensor:
    """A log standard deviation within its range, FIRST_STD at 0."""
    lowest, highest = LOG_STD_RANGE
    share = (math.log(FIRST_STD) - lowest) / (highest - lowest)
    bias = math.log(share / (1.0 - share))
    return lowest + (highest - lowest) * torch.sigmoid(raw + bias)


def squash(x: Tensor) -> Tensor:
    """tanh, kept where atanh can undo it."""
    return torch.tanh(x).clamp(-LARGEST_REAL, LARGEST_REAL)


def _joined(chosen: list[Tensor], reals: Tensor) -> Tensor:
    return torch.cat([torch.stack(chosen, -1).to(reals.dtype), reals], -1)
