"""The Triton kernels of flash-linear-attention that run rules of ours, and what each is given.

    a W + b v k^T                       one retention per head           chunk_simple_gla
    a W (I - b k k^T) + b v k^T         the delta rule, after the decay  chunk_gated_delta_rule
    a W + (v - W e) k^T                 and before it                    chunk_comba
    W Diag(a) + v k^T                   one retention per key channel    chunk_gla
    W Diag(a) (I - (b*k) k^T) + v k^T   the delta rule on them           chunk_gdn2

Their state is the transpose of ours, their queries are scaled by an argument; ours come scaled.

Source: flash-linear-attention 0.6.0 (Yang & Zhang 2024), imported when a kernel is first run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from .channel_rule import Edits
    from .rule import Gates
    from .views import Tokens


@dataclass(frozen=True)
class Kernel:
    """A function of `module` called `name`, and its `arguments` by name from our views."""

    module: str
    name: str
    arguments: Callable[..., dict[str, Tensor]]

    def load(self) -> Callable[..., tuple[Tensor, Tensor]]:
        """The function; raises ImportError without the package."""
        found: Callable[..., Any] = getattr(import_module(self.module), self.name)
        return found

    def __call__(self, weights: Tensor, *views: Any) -> tuple[Tensor, Tensor]:
        """Reads `[B, T, M, V]` and the weights `[B, M, V, K]` after all tokens of `views`."""
        reads, state = self.load()(
            **self.arguments(*views),
            scale=1.0,
            initial_state=weights.mT.contiguous(),
            output_final_state=True,
        )
        return reads, state.mT


def _hebbian(tokens: Tokens, gates: Gates) -> dict[str, Tensor]:
    query, key, value = tokens
    value = gates.write_rate.unsqueeze(-1) * value
    return {"q": query, "k": key, "v": value, "g": gates.log_retention}


def _delta(tokens: Tokens, gates: Gates) -> dict[str, Tensor]:
    query, key, value = tokens
    rates = {"g": gates.log_retention, "beta": gates.write_rate}
    return {"q": query, "k": key, "v": value, **rates}


def _delta_before_decay(tokens: Tokens, gates: Gates) -> dict[str, Tensor]:
    return {**_delta(tokens, gates), "p": tokens.key}


def _channel_hebbian(edits: Edits) -> dict[str, Tensor]:
    return {"q": edits.query, "k": edits.write, "v": edits.value, "g": _per_channel(edits)}


def _channel_delta(edits: Edits) -> dict[str, Tensor]:
    if edits.erase_rate is None:
        raise ValueError("edits must have an erase_rate for this kernel; use backend=torch")
    # Edits come with the value rate applied.
    rates = {"b": edits.erase_rate.expand_as(edits.write), "w": torch.ones_like(edits.value)}
    return {**_channel_hebbian(edits), **rates}


def _feedback_delta(edits: Edits) -> dict[str, Tensor]:
    if edits.erase is None or edits.log_retention.shape[-1] != 1:
        raise ValueError(
            "edits must erase and have one retention per head for this kernel; use backend=torch"
        )
    gates = {"g": edits.log_retention.squeeze(-1), "beta": torch.ones_like(edits.value[..., 0])}
    return {"q": edits.query, "k": edits.write, "v": edits.value, "p": edits.erase, **gates}


def _per_channel(edits: Edits) -> Tensor:
    return edits.log_retention.expand_as(edits.write)


HEBBIAN = Kernel("fla.ops.simple_gla", "chunk_simple_gla", _hebbian)
DELTA = Kernel("fla.ops.gated_delta_rule", "chunk_gated_delta_rule", _delta)
DELTA_BEFORE_DECAY = Kernel("fla.ops.comba", "chunk_comba", _delta_before_decay)
CHANNEL_HEBBIAN = Kernel("fla.ops.gla", "chunk_gla", _channel_hebbian)
CHANNEL_DELTA = Kernel("fla.ops.gdn2", "chunk_gdn2", _channel_delta)
FEEDBACK_DELTA = Kernel("fla.ops.comba", "chunk_comba", _feedback_delta)

SCALAR_KERNELS = {"none": HEBBIAN, "decayed": DELTA, "previous": DELTA_BEFORE_DECAY}
"""By `Objective.predicts_with`; channel rules name their own."""
