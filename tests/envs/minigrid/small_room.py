"""A room of three cells by three whose actions have hidden meanings."""

from __future__ import annotations

from typing import Any

import numpy as np

from sojourn.envs.minigrid import MinigridFamily, MinigridTask

ROOM = "MiniGrid-Empty-Random-5x5-v0"


def hidden_rules(**options: Any) -> MinigridFamily:
    return MinigridFamily(ROOM, {"max_steps": 40}, "permuted", 3, **options)


def task_of(family: MinigridFamily, seed: int = 0) -> MinigridTask:
    return family.draw(np.random.default_rng(seed))
