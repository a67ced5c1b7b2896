"""Settings that change how fast numbers come, not which function they are of.

The chunk size of an exact memory is one: rows of a study made with another one answer the same
question, up to rounding. Anchored memories keep theirs, since it is part of their model.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from hydra.errors import HydraException
from hydra.utils import get_class

from sojourn.memory import ChannelSolver, Solver

SPEED_ONLY = "chunk_size"


def without_speed_only(settings: Any) -> Any:
    """A copy of nested mappings and lists without the chunk sizes of exact solvers."""
    if isinstance(settings, Mapping):
        exact = _is_exact(str(settings.get("_target_", "")))
        kept = {k: v for k, v in settings.items() if not (exact and k == SPEED_ONLY)}
        return {k: without_speed_only(v) for k, v in kept.items()}
    if isinstance(settings, list):
        return [without_speed_only(value) for value in settings]
    return settings


@cache
def _is_exact(target: str) -> bool:
    """Whether the class is a solver whose chunk size has no meaning; False for one not there."""
    try:
        found = get_class(target) if target else object
    except (HydraException, ImportError, ValueError):
        return False
    if issubclass(found, Solver):
        return not found.anchored
    return issubclass(found, ChannelSolver)
