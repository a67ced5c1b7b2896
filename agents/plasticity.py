"""Whether an agent can still learn: idle units, lost directions, growing weights, vanishing steps.

    dormant share    units with z_i = E|h_i| / mean_j E|h_j| <= tau, over the tokens of a slice
    feature rank     exp of the entropy of the singular values of the features [B T, D]
    weight norm      |phi|
    update ratio     |phi' - phi| / |phi| of one outer update

Sources: Sokar et al. 2023, arXiv 2302.12902 (dormant units, tau = .025 strict, .1 loose); Roy &
Vetterli 2007 (effective rank); Lyle et al. 2023, arXiv 2303.01486 (plasticity and weight norms).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from sojourn.memory import effective_rank

from .agent import Agent
from .channel_encoders import GridEncoder, ImageEncoder, VectorEncoder
from .trajectory import Trajectory

STRICT, LOOSE = 0.025, 0.1
ACTIVATIONS = (nn.SiLU, nn.ReLU, nn.GELU, nn.Tanh)
RECTIFIED = (GridEncoder, ImageEncoder, VectorEncoder)  # end in an activation of their own


def dormant_share(activity: Tensor, threshold: float = STRICT) -> float:
    """Share of units whose mean |activity| `[..., units]` is at most `threshold` of their average.

    1 where all are silent; NaN without a unit or a token, and where one is not finite.
    """
    size = activity.detach().flatten(0, -2).abs().mean(0)
    dormant = (size <= threshold * size.mean()).to(size.dtype).mean()
    return float(torch.where(size.isfinite().all(), dormant, torch.nan))


def parameter_vector(module: nn.Module) -> Tensor:
    """All parameters as one vector, a copy."""
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])


def update_ratio(before: Tensor, after: Tensor) -> float:
    """|after - before| / |before| of two parameter vectors; NaN where `before` is zero."""
    return float((after - before).norm() / before.norm())


@contextmanager
def watched_units(module: nn.Module) -> Iterator[dict[str, Tensor]]:
    """What the activations inside `module` give while it runs, `[..., units]` by their path.

    Seen are the encoders of grids, images and vectors and the networks between the memories; a
    plane of an image counts as one unit. Fast networks are a memory's state, and no module.
    """
    found: dict[str, Tensor] = {}

    def watch(path: str) -> Any:
        def hook(_: nn.Module, __: tuple[Any, ...], output: Tensor) -> None:
            planes = isinstance(module.get_submodule(path), nn.ReLU) and output.ndim == 4
            found[path] = output.detach().movedim(1, -1) if planes else output.detach()

        return hook

    kinds = (*ACTIVATIONS, *RECTIFIED)
    units = [(path, one) for path, one in module.named_modules() if isinstance(one, kinds)]
    hooks = [unit.register_forward_hook(watch(path)) for path, unit in units]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


@torch.no_grad()
def plasticity(agent: Agent, trajectory: Trajectory) -> dict[str, float]:
    """Measures of an agent on a slice, by name; changes nothing.

    `dormant` and `dormant_loose` over all units together, `feature_rank` of what the heads read,
    `token_rank` of what the memory reads, `weight_norm`, `memory_weight_norm`. A slice without
    steps has the norms only.
    """
    norms = {
        "weight_norm": float(parameter_vector(agent).norm()),
        "memory_weight_norm": float(parameter_vector(agent.memory).norm()),
    }
    steps = trajectory.steps
    if steps.batch_size[1] == 0:
        return norms
    with watched_units(agent) as units:
        read = agent.read(steps["observation"], trajectory.state, steps["reset"])
    return norms | {
        "dormant": _share(units, STRICT),
        "dormant_loose": _share(units, LOOSE),
        "feature_rank": float(effective_rank(read.features.flatten(0, 1))),
        "token_rank": float(effective_rank(read.tokens.flatten(0, 1))),
    }


def _share(units: dict[str, Tensor], threshold: float) -> float:
    """The share over all layers, each unit counting once; NaN where nothing was seen.

    A unit is held against the average of its own layer.
    """
    counts = [activity.shape[-1] for activity in units.values()]
    shares = [dormant_share(activity, threshold) for activity in units.values()]
    weighted = [count * share for count, share in zip(counts, shares, strict=True)]
    return sum(weighted) / sum(counts) if counts else float("nan")
