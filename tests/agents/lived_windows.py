"""Windows of a life, written by hand."""

import math
from typing import Any

from sojourn.agents import LivedWindow
from sojourn.envs import EpisodeRecord


def record(total: float, task: str = "a", steps: int = 10, best: float = 1.0) -> EpisodeRecord:
    """A finished episode whose floor is zero."""
    fields: dict[str, Any] = {
        "lifetime": 0,
        "segment": 0,
        "task": task,
        "task_index": 0,
        "unit": "return",
        "episode": 0,
        "start_step": 0,
        "num_steps": steps,
        "total_return": total,
        "expected_return": math.nan,
        "optimal_return": best,
        "floor_return": 0.0,
        "status": "terminated",
    }
    return EpisodeRecord(**fields)


def window(*totals: float) -> LivedWindow:
    return LivedWindow({}, 10, [record(total) for total in totals])
