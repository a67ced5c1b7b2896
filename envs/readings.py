"""What environments return, as plain numbers, and what no network could read."""

from __future__ import annotations

from typing import Any

import numpy as np

from .interface import Interface, Observation

SCALARS = (int, np.number, np.bool_)
LARGEST = float(np.finfo(np.float32).max)


def reward_number(given: Any) -> float:
    """A reward of any numeric type (bool, integer, array or tensor of one element).

    Raises ValueError for what is not one finite float32 number.
    """
    reward = given if type(given) is float else _number(given)
    if not -LARGEST <= reward <= LARGEST:
        raise ValueError(f"expected a finite reward, got {reward}")
    return reward


def _number(given: Any) -> float:
    if isinstance(given, SCALARS):
        return float(given)
    try:
        return float(np.asarray(given, dtype=np.float64).reshape(()))
    except (TypeError, ValueError):
        raise ValueError(f"expected a reward of one number, got {given!r}") from None


def unreadable_rows(interface: Interface, channels: Observation) -> dict[int, str]:
    """Row -> what is wrong with its vectors (not finite) and codes (outside their range)."""
    found: dict[int, str] = {}
    for name, channel in interface.channels.items():
        values = channels[name]
        if channel.kind == "vector":
            fine = np.isfinite(values)
        elif channel.kind == "discrete":
            fine = (values >= 0) & (values < channel.num_values)
        else:
            continue
        if fine.all():
            continue
        for row in np.flatnonzero(~fine.reshape(len(values), -1).all(axis=1)).tolist():
            wrong = values[row][~fine[row]].ravel()[0]
            expected = "finite numbers"
            if channel.kind == "discrete":
                expected = f"codes from 0 to {channel.num_values - 1}"
            found.setdefault(row, f"channel {name!r}: expected {expected}, got {wrong}")
    return found
