"""An environment whose transitions are known: it shows how often it was stepped."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Counter(gymnasium.Env[Any, Any]):
    """Shows its own count; ends after `length` steps."""

    def __init__(self, length: int, start: int = 0) -> None:
        self.observation_space = spaces.Box(0, np.inf, (1,), np.float32)
        self.action_space = spaces.Discrete(2, start=start)
        self.length = length

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        assert action in self.action_space
        self.count += 1
        ended = self.count == self.length
        return np.array([self.count], np.float32), float(self.count), ended, False, {}
