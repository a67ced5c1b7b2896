"""An environment that gets into trouble, in a worker process or in this one."""

from __future__ import annotations

import os
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

PARENT = os.getpid()
"""A family makes its environment once where it is declared: no trouble there."""


class Troubled(gymnasium.Env[Any, Any]):
    """Lives ten steps and gets into trouble at the third, or when it is made or reset."""

    def __init__(self, how: str = "none") -> None:
        self.observation_space = spaces.Box(-1, 1, (2,))
        self.action_space = spaces.Discrete(2)
        self.how = how
        self._get_into("make")

    def _get_into(self, where: str) -> None:
        trouble, _, place = self.how.partition(" in ")
        if place != where or (where == "make" and os.getpid() == PARENT):
            return
        if trouble == "raise":
            raise ValueError("boom")
        if trouble == "die":
            os._exit(3)
        if trouble == "hang":
            time.sleep(60)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._get_into("reset")
        self.count = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self.count += 1
        if self.count == 3:
            self._get_into("step")
        shown = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return shown, float(shown[0]), False, self.count == 10, {}
