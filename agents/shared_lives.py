"""The lives of all ranks as those of one process, and a rank's share of them.

Rank r of R lives lifetimes r B/R ... (r + 1) B/R - 1 of a run of B, so that all of them one after
the other are the rows of one process: a run saved by any number of processes goes on in any other
number that divides B.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .ranks import from_all_ranks, num_ranks, rank

ROWS_OF_CROWD = ("counters", "actions", "observation")


def whole(life: Mapping[str, Any]) -> dict[str, Any]:
    """What `Rollout.state_dict` would hold if one process lived the lives of all ranks."""
    lives = from_all_ranks(dict(life))
    crowds = [one["crowd"] for one in lives]
    rows = {name: joined([crowd[name] for crowd in crowds]) for name in ROWS_OF_CROWD}
    num_faults = sum(crowd["num_faults"] for crowd in crowds)
    return {
        "memory": joined([one["memory"] for one in lives]),
        "pending_reset": joined([one["pending_reset"] for one in lives]),
        "generator": life["generator"],
        "crowd": crowds[0] | rows | {"num_faults": num_faults},
    }


def own(life: Mapping[str, Any]) -> dict[str, Any]:
    """The share of this rank in the lives of a whole run; what broke so far is told by rank 0."""
    if num_ranks() == 1:
        return dict(life)
    crowd = dict(life["crowd"])
    crowd |= {name: share(crowd[name]) for name in ROWS_OF_CROWD}
    crowd["num_faults"] *= rank() == 0
    return {
        "memory": share(life["memory"]),
        "pending_reset": share(life["pending_reset"]),
        "generator": life["generator"],
        "crowd": crowd,
    }


def joined(parts: Sequence[Any]) -> Any:
    """Tensors, arrays and lists one after the other, row by row; mappings by key."""
    first = parts[0]
    if isinstance(first, Mapping):
        return {name: joined([part[name] for part in parts]) for name in first}
    if isinstance(first, Tensor):
        return first if len(parts) == 1 else torch.cat(list(parts))
    if isinstance(first, np.ndarray):
        return first if len(parts) == 1 else np.concatenate(parts)
    return [row for part in parts for row in part]


def share(rows: Any) -> Any:
    """The rows of this rank; of mappings by key."""
    if isinstance(rows, Mapping):
        return {name: share(value) for name, value in rows.items()}
    size = len(rows) // num_ranks()
    return rows[rank() * size : (rank() + 1) * size]
