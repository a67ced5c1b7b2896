"""Acting: a crowd of lifetimes lived for a slice of steps, memory carried from slice to slice.

The rollout owns what must survive between slices: the memory state, the next observation, the luck.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from sojourn.envs import Array, Crowd, CrowdStep, EpisodeRecord
from sojourn.memory import state_from_dict, state_to_dict

from .agent import Agent
from .returns import Credit, check_choice
from .trajectory import Trajectory, TrajectoryBuilder, to_tensors

MemoryReset = Literal["episode", "task", "lifetime", "never"]


class Rollout:
    """Plays `agent` in `crowd`. `memory_reset` says which boundary clears the memory.

    When a memory is cleared the inputs that speak of the past are cleared with it. The task
    boundary is hidden from the agent, so `memory_reset="task"` is a privileged control.
    """

    def __init__(
        self,
        agent: Agent,
        crowd: Crowd,
        memory_reset: MemoryReset = "lifetime",
        credit: Credit = "lifetime",
        seed: int = 0,
        greedy: bool = False,
    ) -> None:
        check_choice("memory_reset", memory_reset, MemoryReset)
        check_choice("credit", credit, Credit)
        self.agent, self.crowd = agent, crowd
        self.memory_reset, self.credit, self.greedy = memory_reset, credit, greedy
        self.generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            # A copy: the initial state may be a view of parameters that the optimiser will change.
            self.state = agent.init_state(crowd.num_lifetimes).clone()
        self.observation = crowd.observation
        self.pending_reset: Array = np.ones(crowd.num_lifetimes, dtype=bool)

    @torch.no_grad()
    def collect(self, num_steps: int) -> tuple[Trajectory, list[EpisodeRecord]]:
        """Live `num_steps` steps in every lifetime; also returns the episodes that ended on the
        way.
        """
        start, lived = self.state, TrajectoryBuilder(self.agent.device, self.credit)
        episodes: list[EpisodeRecord] = []
        for _ in range(num_steps):
            observation, reset = self._next_input()
            decision = self.agent.act(observation, self.state, reset, self._uniform())
            tasks = self.crowd.task_names
            step = self.crowd.step(decision.action.cpu().numpy())
            self.state = decision.state
            lived.add_decision(observation, self.pending_reset, decision)
            lived.add_outcome(step, tasks, self._final_value(step))
            episodes += step.episodes
            self.observation, self.pending_reset = step.observation, self._resets_after(step)
        return lived.trajectory(start, self._value_ahead()), episodes

    def _uniform(self) -> Tensor | None:
        if self.greedy:
            return None
        uniform = torch.rand(self.crowd.num_lifetimes, generator=self.generator)
        return uniform.to(self.agent.device)

    def _next_input(self) -> tuple[dict[str, Tensor], Tensor | None]:
        observation = self.observation
        if not self.pending_reset.any():
            return to_tensors(observation, self.agent.device), None
        rows, none_yet = self.pending_reset, self.crowd.interface.num_actions
        observation = observation | {
            "previous_action": np.where(rows, none_yet, observation["previous_action"]),
            "previous_reward": np.where(rows, np.float32(0), observation["previous_reward"]),
        }
        reset = torch.from_numpy(rows).to(self.agent.device)
        return to_tensors(observation, self.agent.device), reset

    def _resets_after(self, step: CrowdStep) -> Array:
        ends: dict[MemoryReset, Array] = {
            "episode": step.terminated | step.truncated,
            "task": step.task_end | step.lifetime_end,
            "lifetime": step.lifetime_end,
            "never": np.zeros_like(step.lifetime_end),
        }
        return ends[self.memory_reset]

    def _value_ahead(self) -> Tensor:
        """Value `[B]` of the observation after the slice; the memory does not keep the glance."""
        observation, reset = self._next_input()
        return self.agent.act(observation, self.state, reset).value

    def _final_value(self, step: CrowdStep) -> Tensor | None:
        """Value `[B]` of the true final observations, where credit is cut at truncated episodes."""
        if self.credit != "episode" or step.final_observation is None:
            return None
        observation = to_tensors(step.final_observation, self.agent.device)
        return self.agent.act(observation, self.state).value

    def state_dict(self) -> dict[str, Any]:
        """Everything a later process needs to go on from here bit for bit."""
        return {
            "memory": state_to_dict(self.state),
            "pending_reset": self.pending_reset,
            "generator": self.generator.get_state(),
            "crowd": self.crowd.state_dict(),
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take over a saved life; raises KeyError when its memory is of another make."""
        state = state_from_dict(saved["memory"], self.crowd.num_lifetimes).to(self.agent.device)
        found, expected = (sorted(one.flatten_keys(".").keys()) for one in (state, self.state))
        if found != expected:
            raise KeyError(f"memory state: expected {expected}, got {found}")
        self.state = state
        self.crowd.load_state_dict(saved["crowd"])
        self.observation = self.crowd.observation
        self.pending_reset = np.asarray(saved["pending_reset"], dtype=bool)
        self.generator.set_state(saved["generator"])
