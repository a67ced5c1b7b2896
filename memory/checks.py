"""One-line errors for bad arguments: what was expected, what was given, the nearest choice."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

import torch
from tensordict import TensorDictBase
from torch import Tensor


def check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Raise ValueError unless `value` is one of `choices`, naming the nearest of them."""
    valid = list(choices)
    if value not in valid:
        nearest = get_close_matches(str(value), valid, n=1, cutoff=0.0)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        raise ValueError(f"{name} must be one of {', '.join(valid)}, got {value!r}{hint}")


def check_at_least(name: str, value: float, smallest: float) -> None:
    """Raise ValueError unless `value >= smallest` (NaN is refused)."""
    if not value >= smallest:
        raise ValueError(f"{name} must be at least {smallest}, got {value}; use {smallest}")


def check_precision(dtype: torch.dtype) -> None:
    """Raise ValueError for a type of parameters that states and solves cannot be trusted with."""
    if dtype in (torch.bfloat16, torch.float16):
        raise ValueError(
            f"a memory has parameters of float32 or float64, not {dtype}; call it under "
            f"torch.autocast(device_type, {dtype}) instead"
        )


def check_tokens(x: Tensor, width: int) -> None:
    """Raise ValueError unless `x` is `[B, T, width]`."""
    if x.ndim != 3 or x.shape[2] != width:
        raise ValueError(f"x must have shape [B, T, {width}], got {list(x.shape)}")


def check_rows(state: TensorDictBase, x: Tensor) -> None:
    """Raise ValueError unless `state` has as many rows as `x` `[B, T, D]`."""
    if state.batch_size[:1] != x.shape[:1]:
        raise ValueError(
            f"state must have the batch size [{x.shape[0]}] of x, got {list(state.batch_size)}; "
            f"init_state({x.shape[0]}) makes one"
        )


def check_flags(name: str, flags: Tensor | None, x: Tensor) -> None:
    """Raise ValueError unless `flags` is None or bool of the batch and time of `x` `[B, T, D]`."""
    if flags is None:
        return
    if flags.dtype != torch.bool or flags.shape != x.shape[:2]:
        raise ValueError(
            f"{name} must be a bool tensor of shape {list(x.shape[:2])}, "
            f"got {flags.dtype} {list(flags.shape)}"
        )
