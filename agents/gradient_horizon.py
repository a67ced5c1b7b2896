"""What truncated gradients miss: the gradient of a slice cut into windows against the whole one.

    cos(g_w, g) = <g_w, g> / (|g_w| |g|),   g_w: state carried, gradient cut every w steps

A write whose first useful read lies beyond its window gets no credit for it. Values are those of a
full pass in both cases; only the paths back through the state differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from tensordict import TensorDict
from torch import Tensor

from .agent import Agent
from .windows import read_in_windows

Loss = Callable[[Tensor, Tensor], Tensor]
"""Outputs of the policy `[B, T, num_outputs]` and values `[B, T]` to a scalar."""


@dataclass(frozen=True)
class Agreement:
    """Gradients cut every `window` steps against whole ones, over all parameters of the agent and
    over those of its memory alone: cosines, and the ratio of their norms. NaN where one is zero.
    """

    window: int
    cosine: float
    memory_cosine: float
    norm_ratio: float


def gradient_agreement(
    agent: Agent,
    observation: TensorDict,
    state: TensorDict,
    reset: Tensor | None,
    loss: Loss,
    windows: Sequence[int],
) -> list[Agreement]:
    """One row per window, of a slice `[B, T]`; changes neither weights nor gradients.

    Raises ValueError for a window below 1.
    """
    if min(windows, default=1) < 1:
        raise ValueError(f"windows: expected at least 1 step each, got {list(windows)}")

    def gradient(window: int | None) -> tuple[Tensor, Tensor]:
        reading = read_in_windows(agent, observation, state, reset, window)
        outputs = agent.policy(reading.features, observation["action_mask"])
        return gradient_of(agent, loss(outputs, agent.value(reading.features)))

    whole, memory = gradient(None)
    rows = []
    for window in windows:
        cut, cut_memory = gradient(window)
        ratio = float(cut.norm() / whole.norm())
        rows.append(Agreement(window, cosine(cut, whole), cosine(cut_memory, memory), ratio))
    return rows


def gradient_of(agent: Agent, loss: Tensor) -> tuple[Tensor, Tensor]:
    """Gradient of a scalar as vectors: over the agent's parameters, and over its memory's."""
    named = [(name, p) for name, p in agent.named_parameters() if p.requires_grad]
    found = torch.autograd.grad(loss, [p for _, p in named], allow_unused=True)
    parts = [
        torch.zeros_like(p).flatten() if g is None else g.flatten()
        for (_, p), g in zip(named, found, strict=True)
    ]
    in_memory = [part for (name, _), part in zip(named, parts, strict=True) if is_memory(name)]
    empty = loss.new_zeros(1)
    return torch.cat(parts), torch.cat(in_memory or [empty])


def is_memory(name: str) -> bool:
    """Whether a parameter of an agent belongs to its memory."""
    return name.startswith("memory.")


def cosine(one: Tensor, other: Tensor) -> float:
    """Cosine of two vectors; NaN where one of them is zero."""
    return float(one @ other / (one.norm() * other.norm()))
