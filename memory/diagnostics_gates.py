"""Measures of the gates of a pass: how long writes last, how strong they are, what is stuck.

    half-life        ln 2 / -log a  tokens
    write strength   sum |edit|_F / sum |v| |k|,  which is b for edits b v k^T
    saturation       share of gates s in (0, 1) with |2 s - 1| > 0.98

Source of the threshold: Gu et al. 2020, arXiv 1910.09890, on saturated gates; its value is ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .cell_mixing import CellStep
from .channel_gates import LARGEST_BOUNDED_LOG, BoundedRetention, ChannelRate, ChannelRetention
from .channel_memory import ChannelGatedMemory
from .channel_rule import Edits
from .fast_weight import FastWeightMemory
from .gates import RetentionGate, WriteRate
from .storage import LogRate
from .value_channels import ValueChannelRule
from .views import Tokens

QUANTILES = (0.1, 0.5, 0.9)
SATURATED = 0.98

HEAD_FIRST = (ValueChannelRule, CellStep)
"""Rules whose gates of one head, for its channels or layers, lie next to each other."""
GatedMemory = FastWeightMemory | ChannelGatedMemory
"""Memories whose rule makes gates."""


def half_life(log_retention: Tensor) -> Tensor:
    """Tokens after which half of a write is left, for log retentions <= 0; infinite at 0."""
    return math.log(2) / log_retention.abs()


def half_life_quantiles(log_retention: Tensor) -> dict[str, Tensor]:
    """`half_life_10`, `_50` and `_90` `[H]` of log retentions `[n, H]`; NaN without any.

    Quantiles are taken of the retention: infinite half-lives do not spoil the others.
    """
    if len(log_retention) == 0:
        log_retention = log_retention.new_full((1, *log_retention.shape[1:]), torch.nan)
    levels = torch.tensor(QUANTILES, dtype=log_retention.dtype, device=log_retention.device)
    found = torch.quantile(log_retention, levels, dim=0)
    return {
        f"half_life_{100 * level:.0f}": half_life(row)
        for level, row in zip(QUANTILES, found, strict=True)
    }


def opening(gate: nn.Module, output: Tensor) -> Tensor | None:
    """Where in its range, 0 to 1, a learned gate stands; None for any other module."""
    match gate:
        case WriteRate():
            return output / gate.largest
        case ChannelRate():
            return output
        case BoundedRetention():
            return -output / LARGEST_BOUNDED_LOG
        case RetentionGate() | ChannelRetention() | LogRate():
            return output.exp()
    return None


def gate_measures(
    core: GatedMemory, tokens: Tokens, made: Any, openings: Mapping[str, Tensor], valid: Tensor
) -> dict[str, Tensor]:
    """Measures `[H]` of the gates `made` by the core's rule for `tokens` where `valid` `[B, T]`.

    `half_life_*` where the rule makes retentions; `write_strength`; and `<gate>_saturated` for
    every learned gate of `openings` `[B, T, ...]`. A retention counts as stuck when its half-life
    is above 69 tokens.
    """
    lengths = _head_last(core, (tokens.value.norm(dim=-1) * tokens.key.norm(dim=-1))[valid])
    log_retention: Tensor | None
    if isinstance(made, Edits):
        log_retention, written = _of_edits(tokens, made)
        written = _head_last(core, written[valid])
    else:
        log_retention = getattr(made, "log_retention", None)  # some solvers make it themselves
        rates = _head_last(core, made.write_rate[valid])
        # A pair may have a rate for every channel or layer.
        per_pair = len(rates) // max(1, len(lengths))
        written = lengths * torch.unflatten(rates, 0, (len(lengths), per_pair)).mean(1)
    measures: dict[str, Tensor] = {}
    if log_retention is not None:
        measures = half_life_quantiles(_head_last(core, log_retention[valid]))
    measures["write_strength"] = written.sum(0) / lengths.sum(0)
    for name, place in openings.items():
        stuck = ((2.0 * place - 1.0).abs() > SATURATED).to(place.dtype)
        measures[f"{name}_saturated"] = _head_last(core, stuck[valid]).mean(0)
    return measures


def _of_edits(tokens: Tokens, edits: Edits) -> tuple[Tensor, Tensor]:
    """Log retentions `[B, T, M, K]` and the length of what is written `[B, T, H]` by edits."""
    steps, num_heads = tokens.key.shape[1:3]
    squared = edits.value.square().sum(-1) * edits.write.square().sum(-1)
    of_edits = torch.unflatten(squared, 1, (steps, -1)).sum(2)
    # The edits of a token and the memories of a head lie next to each other.
    written = torch.unflatten(of_edits, 2, (num_heads, -1)).sum(3).sqrt()
    return torch.unflatten(edits.log_retention, 1, (steps, -1)).sum(2), written


def _head_last(core: GatedMemory, gate: Tensor) -> Tensor:
    """Values `[n, memories or writes, ...]` of gates as `[m, H]`, all of a head in one column."""
    num_heads = core.views.token_heads.num_heads
    if isinstance(core, FastWeightMemory) and not isinstance(core.rule, HEAD_FIRST):
        # Write w of head h is number w * num_heads + h.
        of_heads: Tensor = torch.unflatten(gate, 1, (-1, num_heads)).movedim(2, -1)
    else:
        of_heads = torch.unflatten(gate, 1, (num_heads, -1)).movedim(1, -1)
    return of_heads.flatten(0, -2)
