"""A slice of life read at once: what went into the memory, what came out, and its state after.

    windows   S_0 -> [x_1 .. x_w] -> sg(S_w) -> [x_{w+1} .. x_2w] -> ...

In windows the state is carried and its gradient is not: at a border it is exactly zero (truncated
back-propagation through time, Williams & Peng 1990). Without them the gradient is that of the whole
slice.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from tensordict import TensorDict
from torch import Tensor

from .agent import Agent


@dataclass(frozen=True)
class Reading:
    """`tokens` and `features` `[B, T, D]` before and after the memory; its `state` `[B]` after."""

    tokens: Tensor
    features: Tensor
    state: TensorDict


def read_slice(
    agent: Agent,
    observation: TensorDict,
    state: TensorDict,
    reset: Tensor | None = None,
    mask: Tensor | None = None,
) -> Reading:
    """Live `[B, T]` steps at once; where `mask` is False a step reads and does not write."""
    tokens = agent.encoder(observation)
    commit = observation["episode_start"] if agent.memory.reads_commits else None
    features, state = agent.memory(tokens, state, reset, mask, commit)
    return Reading(tokens, features, state)


def read_in_windows(
    agent: Agent,
    observation: TensorDict,
    state: TensorDict,
    reset: Tensor | None,
    window: int | None,
) -> Reading:
    """As `read_slice`, with gradients cut every `window` steps (None: nowhere)."""
    num_steps = observation.batch_size[1]
    if window is None or num_steps <= window:
        return read_slice(agent, observation, state, reset)
    parts = []
    for start in range(0, num_steps, window):
        of = slice(start, start + window)
        flags = None if reset is None else reset[:, of]
        parts.append(read_slice(agent, observation[:, of], state, flags))
        state = parts[-1].state.detach()
    return Reading(
        torch.cat([part.tokens for part in parts], 1),
        torch.cat([part.features for part in parts], 1),
        parts[-1].state,
    )
