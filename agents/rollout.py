"""Acting: a crowd of lifetimes lived for a slice of steps, memory carried from slice to slice.

The rollout owns what must survive between slices: the memory state, the next observation, the luck.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
from tensordict import TensorDict
from torch import Tensor

from sojourn.envs import PREVIOUS_PARTS, Array, Crowd, CrowdStep, EpisodeRecord, check_choice
from sojourn.memory import state_from_dict, state_to_dict

from .actions import Actions
from .agent import Decision
from .luck import SharedLuck
from .moment import Moment
from .ranks import num_ranks, rank
from .returns import Credit
from .shared_lives import own, whole
from .trajectory import Trajectory, TrajectoryBuilder, to_tensors
from .treatment import Intervention, Treatment
from .valuer import Critic, Valuer

MemoryReset = Literal["episode", "task", "lifetime", "never"]
"""The boundary at which the memory begins anew."""


class Actor(Protocol):
    """What can live in a crowd: an `Agent`, or a policy that is compared with one."""

    actions: Actions

    @property
    def device(self) -> torch.device: ...

    def init_state(self, batch: int) -> TensorDict: ...

    def act(
        self,
        observation: Mapping[str, Tensor],
        state: TensorDict,
        reset: Tensor | None = None,
        uniform: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Decision: ...


class Ending(NamedTuple):
    """An episode that ended, and whether its segment ended with it."""

    record: EpisodeRecord
    ends_segment: bool


class Rollout:
    """Plays `agent` in `crowd`. `memory_reset` says which boundary clears the memory.

    Actions draw from `luck` where it is given, else from a generator made from `seed`.
    When a memory is cleared the inputs that speak of the past are cleared with it. The task
    boundary is hidden from the agent, so `memory_reset="task"` is a privileged control.
    """

    def __init__(
        self,
        agent: Actor,
        crowd: Crowd,
        memory_reset: MemoryReset = "lifetime",
        credit: Credit = "lifetime",
        seed: int = 0,
        greedy: bool = False,
        luck: SharedLuck | None = None,
    ) -> None:
        check_choice("memory_reset", memory_reset, MemoryReset)
        check_choice("credit", credit, Credit)
        self.agent, self.crowd = agent, crowd
        self.memory_reset, self.credit, self.greedy = memory_reset, credit, greedy
        self.luck = luck
        self.generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            # A copy: the initial state may be a view of parameters that the optimiser will change.
            self.state = agent.init_state(crowd.num_lifetimes).clone()
        self.observation = crowd.observation
        self.pending_reset: Array = np.ones(crowd.num_lifetimes, dtype=bool)

    @torch.no_grad()
    def collect(
        self, num_steps: int, critic: Critic | None = None
    ) -> tuple[Trajectory, list[EpisodeRecord]]:
        """Live `num_steps` steps in every lifetime; also returns the episodes that ended on the
        way.

        With a `critic` the slice holds its values in place of the agent's, and the `knowledge` they
        rest on; what is lived is the same.
        """
        start, lived = self.state, TrajectoryBuilder(self.agent.device, self.credit)
        episodes: list[EpisodeRecord] = []
        for _ in range(num_steps):
            observation, reset = self._next_input()
            decision = self.agent.act(observation, self.state, reset, self._uniform())
            valuer = Valuer(critic, self.crowd, self.agent.device)
            tasks = self.crowd.task_names
            step = self.crowd.step(decision.action.cpu().numpy())
            self.state = decision.state
            lived.add_decision(observation, self.pending_reset, valuer.valued(decision))
            lived.add_knowledge(valuer.knowledge)
            lived.add_outcome(step, tasks, self._final_value(step, valuer))
            episodes += step.episodes
            self.observation, self.pending_reset = step.observation, self._resets_after(step)
        ahead = self._value_ahead(Valuer(critic, self.crowd, self.agent.device))
        return lived.trajectory(start, ahead), episodes

    @torch.no_grad()
    def live(
        self,
        num_steps: int,
        luck: SharedLuck | None = None,
        intervention: Intervention | None = None,
    ) -> list[Ending]:
        """Live `num_steps` steps in every lifetime and keep nothing but the episodes that ended.

        With `luck` the actions draw from there and not from where the rollout draws; the
        `intervention` is called before every step. Without them the life is that of `collect`.
        """
        endings: list[Ending] = []
        for _ in range(num_steps):
            observation, reset = self._next_input()
            state, mask = self.state, None
            if luck is None and intervention is None:
                uniform = self._uniform()
            else:
                moment = Moment.of(self.crowd)
                uniform = self._uniform() if luck is None else self._shared(luck, moment)
                if intervention is not None:
                    treatment = intervention.treat(self.state, moment)
                    state = treatment.state
                    reset, mask = self._spared(reset, treatment), self._flags(treatment.writes)
            decision = self.agent.act(observation, state, reset, uniform, mask)
            step = self.crowd.step(decision.action.cpu().numpy())
            self.state = decision.state
            closed = np.flatnonzero(step.terminated | step.truncated)
            ends = step.task_end[closed].tolist()
            endings += [Ending(*pair) for pair in zip(step.episodes, ends, strict=True)]
            self.observation, self.pending_reset = step.observation, self._resets_after(step)
        return endings

    def _shared(self, luck: SharedLuck, moment: Moment) -> Tensor | None:
        if self.greedy:
            return None
        return luck.draw(moment, self.agent.actions.luck_shape).to(self.agent.device)

    def _spared(self, reset: Tensor | None, treatment: Treatment) -> Tensor | None:
        """The resets that are left where memories were replaced."""
        replaced = self._flags(treatment.replaced)
        return reset if reset is None or replaced is None else reset & ~replaced

    def _flags(self, rows: Array | None) -> Tensor | None:
        return None if rows is None else torch.from_numpy(rows).to(self.agent.device)

    def _uniform(self) -> Tensor | None:
        if self.greedy:
            return None
        if self.luck is not None:
            return self._shared(self.luck, Moment.of(self.crowd))
        # All ranks draw for all lifetimes of the run and keep what falls to their own.
        rows, shape = self.crowd.num_lifetimes, self.agent.actions.luck_shape
        uniform = torch.rand((num_ranks() * rows, *shape), generator=self.generator)
        return uniform[rank() * rows : (rank() + 1) * rows].to(self.agent.device)

    def _next_input(self) -> tuple[dict[str, Tensor], Tensor | None]:
        observation = self.observation
        if not self.pending_reset.any():
            return to_tensors(observation, self.agent.device), None
        rows, none_yet = self.pending_reset, self.crowd.interface.num_actions
        observation = observation | {
            "previous_action": np.where(rows, none_yet, observation["previous_action"]),
            "previous_reward": np.where(rows, np.float32(0), observation["previous_reward"]),
        }
        if PREVIOUS_PARTS in observation:
            blank = np.where(rows[:, None], np.float32(0), observation[PREVIOUS_PARTS])
            observation[PREVIOUS_PARTS] = blank
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

    def _value_ahead(self, valuer: Valuer) -> Tensor:
        """Value `[B]` of the observation after the slice; the memory does not keep the glance."""
        observation, reset = self._next_input()
        return valuer.valued(self.agent.act(observation, self.state, reset)).value

    def _final_value(self, step: CrowdStep, valuer: Valuer) -> Tensor | None:
        """Value `[B]` of the true final observations, where credit is cut at truncated episodes."""
        if self.credit != "episode" or step.final_observation is None:
            return None
        observation = to_tensors(step.final_observation, self.agent.device)
        return valuer.valued(self.agent.act(observation, self.state)).value

    def state_dict(self) -> dict[str, Any]:
        """Everything a later process needs to go on from here bit for bit, of all ranks."""
        return whole(
            {
                "memory": state_to_dict(self.state),
                "pending_reset": self.pending_reset,
                "generator": self.generator.get_state(),
                "crowd": self.crowd.state_dict(),
            }
        )

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take over a saved life, or this rank's share of it; raises KeyError when its memory is of
        another make.
        """
        saved = own(saved)
        state = state_from_dict(saved["memory"], self.crowd.num_lifetimes).to(self.agent.device)
        found, expected = (sorted(one.flatten_keys(".").keys()) for one in (state, self.state))
        if found != expected:
            raise KeyError(f"memory state: expected {expected}, got {found}")
        self.state = state
        self.crowd.load_state_dict(saved["crowd"])
        self.observation = self.crowd.observation
        self.pending_reset = np.asarray(saved["pending_reset"], dtype=bool)
        self.generator.set_state(saved["generator"])
