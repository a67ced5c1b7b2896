"""One step of the optimiser: gradients of all ranks, clipped, refused where not finite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from .ranks import mean_over_ranks


def outer_step(
    loss: Tensor, optimizer: torch.optim.Optimizer, max_norm: float, agent: nn.Module
) -> Tensor:
    """Descend `loss`; returns the norm of the gradient before it is clipped to `max_norm`.

    Raises FloatingPointError, naming the first such parameter of `agent`, on a gradient that is not
    finite; nothing is changed then.
    """
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    learned: list[Tensor] = optimizer.param_groups[0]["params"]
    mean_over_ranks([parameter.grad for parameter in learned if parameter.grad is not None])
    norm = nn.utils.clip_grad_norm_(learned, max_norm)
    if not torch.isfinite(norm):
        place = next(_not_finite(agent), "the gradient norm")
        raise FloatingPointError(f"non-finite gradient in {place}; the update was not applied")
    optimizer.step()
    return norm


def _not_finite(agent: nn.Module) -> Iterator[str]:
    return (
        name
        for name, parameter in agent.named_parameters()
        if parameter.grad is not None and not torch.isfinite(parameter.grad).all()
    )


def without_heads(
    saved: dict[str, Any], optimizer: torch.optim.Optimizer, agent: nn.Module
) -> dict[str, Any]:
    """A saved state of the optimiser of the agent's parameters, which come first, for an optimiser
    that also has those of other heads: none for the rest.
    """
    own = len(list(agent.parameters()))
    moments = {number: state for number, state in saved["state"].items() if number < own}
    group = optimizer.state_dict()["param_groups"][0]
    return {
        "state": moments,
        "param_groups": [saved["param_groups"][0] | {"params": group["params"]}],
    }
