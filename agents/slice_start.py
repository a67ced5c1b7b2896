"""The memory at the start of a slice, once the weights that wrote it have changed.

    keep     S = what the old weights wrote
    replay   S = memory of the new weights after the last slice's tokens, from that slice's start
    reset    S = S_0, and the inputs that speak of the past are blank

After an update the next slice starts from a memory of other weights than those that will read it.
Replaying is exact where the life began within the last slice; an older life keeps what it wrote
before that slice. Source: stored states and burn-in, Kapturowski et al. 2019 (R2D2).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from tensordict import TensorDict
from torch import Tensor

from .agent import Agent
from .rollout import Rollout
from .trajectory import Trajectory

SliceStart = Literal["keep", "replay", "reset"]
"""The memory that a slice starts from when the weights have changed since."""


@torch.no_grad()
def renew(
    choice: SliceStart, agent: Agent, rollout: Rollout, trajectory: Trajectory, measured: bool
) -> float:
    """Give `rollout`, which has just lived `trajectory`, the memory its next slice starts from.

    Returns how far the memory was from the replayed one, `staleness`; NaN where no replay was made:
    `replay` needs one at every update, the others only where it is `measured`.
    """
    distance = float("nan")
    if choice == "replay" or measured:
        steps = trajectory.steps
        replayed = agent.read(steps["observation"], trajectory.state, steps["reset"]).state
        distance = float(staleness(rollout.state, replayed).mean())
        if choice == "replay":
            rollout.state = replayed.clone()
    if choice == "reset":
        rollout.pending_reset = np.ones_like(rollout.pending_reset)
    return distance


def staleness(kept: TensorDict, replayed: TensorDict) -> Tensor:
    """|S - S'| / |S'| `[B]` over all real numbers of two states; 0 where both are zero."""
    kept_numbers, replayed_numbers = state_numbers(kept), state_numbers(replayed)
    distance = (kept_numbers - replayed_numbers).norm(dim=1)
    size = replayed_numbers.norm(dim=1)
    return torch.where(distance > 0, distance / size, 0.0)


def state_numbers(state: TensorDict) -> Tensor:
    """Everything real that a memory holds, `[B, n]`."""
    leaves = [leaf.flatten(1) for leaf in state.values(True, True) if leaf.is_floating_point()]
    rows = state.batch_size[0]
    return torch.cat(leaves, dim=1) if leaves else torch.zeros(rows, 1)
