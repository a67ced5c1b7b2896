"""A slice of lived experience, batch first, as the meta-trainer reads it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from sojourn.envs import Array, CrowdStep, Observation

from .agent import Decision
from .returns import Credit

OUTCOME = (
    "reward",
    "expected_reward",
    "reward_scale",
    "terminated",
    "truncated",
    "task_end",
    "lifetime_end",
)


@dataclass(frozen=True)
class Trajectory:
    """A slice of every lifetime.

    `steps` `[B, T]` holds `observation` (nested), `action`, `log_prob`, `value`, `next_value`,
    `reward`, `expected_reward`, `reward_scale`, `task`, `reset` and the flags `terminated`,
    `truncated`, `task_end`, `lifetime_end`. `next_value` is the value of what follows a step: of
    the true final observation where credit is cut at a truncated episode; `task` is the task's
    `task_number`; `reward_scale` is NaN where it has no reference; `knowledge` `[B, T, K]` is there
    where a critic asked for it. `state` `[B]` is the memory before the first step, `credit` where
    credit is cut.
    """

    steps: TensorDict
    state: TensorDict
    credit: Credit


class TrajectoryBuilder:
    """Collects steps and stacks them to `[B, T]`."""

    def __init__(self, device: torch.device, credit: Credit) -> None:
        self.device, self.credit = device, credit
        self.observations: list[dict[str, Tensor]] = []
        self.columns: dict[str, list[Tensor]] = {}
        self.final_values: dict[int, Tensor] = {}

    def add_decision(
        self, observation: dict[str, Tensor], reset: Array, decision: Decision
    ) -> None:
        self.observations.append(observation)
        self._append(reset=torch.from_numpy(reset).to(self.device))
        self._append(action=decision.action, log_prob=decision.log_prob, value=decision.value)

    def add_knowledge(self, knowledge: Tensor | None) -> None:
        if knowledge is not None:
            self._append(knowledge=knowledge)

    def add_outcome(self, step: CrowdStep, tasks: list[str], final_value: Tensor | None) -> None:
        if final_value is not None:
            self.final_values[len(self.observations) - 1] = final_value
        self._append(task=torch.tensor([task_number(t) for t in tasks], device=self.device))
        self._append(**to_tensors({n: getattr(step, n) for n in OUTCOME}, self.device))

    def _append(self, **tensors: Tensor) -> None:
        for name, tensor in tensors.items():
            self.columns.setdefault(name, []).append(tensor)

    def trajectory(self, start: TensorDict, value_ahead: Tensor) -> Trajectory:
        shape = (start.batch_size[0], len(self.observations))
        if not self.observations:
            return Trajectory(TensorDict({}, batch_size=shape), start, self.credit)
        steps: dict[str, Any] = {name: _stack(column) for name, column in self.columns.items()}
        names = self.observations[0]
        steps["observation"] = TensorDict(
            {name: _stack([o[name] for o in self.observations]) for name in names}, batch_size=shape
        )
        steps["next_value"] = torch.cat([steps["value"][:, 1:], value_ahead.unsqueeze(1)], dim=1)
        for t, final_value in self.final_values.items():
            followed = steps["next_value"][:, t]
            steps["next_value"][:, t] = torch.where(steps["truncated"][:, t], final_value, followed)
        return Trajectory(TensorDict(steps, batch_size=shape), start, self.credit)


@lru_cache(maxsize=1024)
def task_number(name: str) -> int:
    """A number below 2^63 that a task of this name has in every slice, process and run."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big") >> 1


def _stack(tensors: list[Tensor]) -> Tensor:
    return torch.stack(tensors, dim=1)


def to_tensors(arrays: Observation, device: torch.device) -> dict[str, Tensor]:
    """NumPy channels to tensors on the agent's device (shared memory on a CPU)."""
    return {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}
