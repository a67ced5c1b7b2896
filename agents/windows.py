"""A slice of life read in windows: the state is carried, its gradient is not.

    S_0 -> [x_1 .. x_w] -> sg(S_w) -> [x_{w+1} .. x_2w] -> ...

At a border the gradient is exactly zero (truncated back-propagation through time, Williams & Peng
1990). Without windows it is that of the whole slice.
"""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from .agent import Agent, Reading


def read_in_windows(
    agent: Agent,
    observation: TensorDict,
    state: TensorDict,
    reset: Tensor | None,
    window: int | None,
) -> Reading:
    """As `Agent.read` of `[B, T]` steps, gradients cut every `window` steps (None: nowhere)."""
    num_steps = observation.batch_size[1]
    if window is None or num_steps <= window:
        return agent.read(observation, state, reset)
    parts = []
    for start in range(0, num_steps, window):
        of = slice(start, start + window)
        flags = None if reset is None else reset[:, of]
        parts.append(agent.read(observation[:, of], state, flags))
        state = parts[-1].state.detach()
    return Reading(
        torch.cat([part.tokens for part in parts], 1),
        torch.cat([part.features for part in parts], 1),
        parts[-1].state,
    )
