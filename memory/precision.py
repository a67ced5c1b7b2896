"""What stays in full precision under autocast: states, gates and solves in float32 (or float64)."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def state_dtype(parameter: Tensor) -> torch.dtype:
    """Float64 for a float64 module, float32 for any other."""
    return torch.promote_types(parameter.dtype, torch.float32)


def full_precision(x: Tensor) -> AbstractContextManager[object]:
    """A region without autocast on the device of `x`."""
    device = x.device.type
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        return torch.autocast(device, enabled=False)
    return nullcontext()
