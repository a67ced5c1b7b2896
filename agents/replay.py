"""Replay of old life, with cloning: past slices are learned from again, and not unlearned.

    L = L_ppo + weight [ L_policy + value_coefficient |V - V_trace|^2 ]
        + policy_cloning E_mu[-log pi(a)] + value_cloning |V - V_then|^2

over slices of single lifetimes drawn from a reservoir of all slices lived. L_policy is the policy
gradient with V-trace corrected advantages. The first cloning term is KL(mu || pi) up to a constant,
estimated on the actions that the acting policy mu took: it holds for every kind of action. Task
ends are not needed. A slice is read from the memory state it began with, which old weights wrote
(Kapturowski et al. 2019). Source: CLEAR, Rolnick et al. 2019, arXiv 1811.11682.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from sojourn.memory import state_from_dict, state_to_dict

from .strategy import Learner, Strategy
from .trajectory import Trajectory

VALUE_COEFFICIENT = 0.5


class Replay(Strategy):
    """A reservoir of `capacity` slices of one lifetime; `batch` of them join every minibatch.

    Raises ValueError, naming the key, for impossible numbers and for a memory that grows.
    """

    of_one_process = True

    def __init__(
        self,
        learner: Learner,
        capacity: int = 512,
        batch: int = 8,
        weight: float = 1.0,
        policy_cloning: float = 0.01,
        value_cloning: float = 0.005,
        seed: int = 0,
    ) -> None:
        for name, count in (("capacity", capacity), ("batch", batch)):
            if count < 1:
                raise ValueError(f"strategy.{name}: expected at least 1, got {count}")
        weights = {"policy_cloning": policy_cloning, "value_cloning": value_cloning}
        for name, value in {"weight": weight, **weights}.items():
            if not value >= 0.0:
                raise ValueError(f"strategy.{name}: expected a number from 0 on, got {value}")
        if learner.agent.memory.grows:
            raise ValueError(
                "strategy: replay needs memory states of one size, this memory grows with every "
                "token; use sliding_window in its place"
            )
        self.learner = learner
        self.capacity, self.batch, self.weight = capacity, batch, weight
        self.policy_cloning, self.value_cloning = policy_cloning, value_cloning
        self.generator = torch.Generator().manual_seed(seed)
        self.slices: TensorDict | None = None  # [n]: `steps` [n, T] and the memory `state` [n]
        self.num_seen = 0

    def before(self, trajectory: Trajectory) -> None:
        """Take the slice of every lifetime into the reservoir, or leave it out, by chance."""
        lived = self._as_slices(trajectory)
        if self.slices is not None and _shapes(self.slices) != _shapes(lived):
            self.slices, self.num_seen = None, 0  # slices of another length
        held = 0 if self.slices is None else len(self.slices)
        room = min(self.capacity - held, len(lived))
        if room:
            new = lived[:room].clone()
            self.slices = new if self.slices is None else torch.cat([self.slices, new])
        self.num_seen += room
        for row in range(room, len(lived)):
            self.num_seen += 1
            place = int(torch.randint(self.num_seen, (1,), generator=self.generator))
            if place < self.capacity and self.slices is not None:
                self.slices[place] = lived[row]

    def losses(self, progress: float) -> dict[str, Tensor]:
        """Of freshly drawn slices."""
        if self.slices is None:
            return {}
        agent, returns = self.learner.agent, self.learner.returns
        rows = torch.randint(len(self.slices), (self.batch,), generator=self.generator)
        drawn = self.slices[rows.to(agent.device)]
        steps: TensorDict = drawn["steps"]
        steps.batch_size = steps["reward"].shape
        features = agent.read(steps["observation"], drawn["state"], steps["reset"]).features
        outputs = agent.policy(features, steps["observation", "action_mask"])
        values = self.learner.values(features, steps)
        log_prob = agent.actions.log_prob(outputs, steps["action"])
        advantage, target = returns.off_policy(steps, values.detach(), log_prob.detach(), progress)
        then = returns.scale.normalise(steps["value"])
        learned = VALUE_COEFFICIENT * (values - target).square() - advantage * log_prob
        return {
            "replay": self.weight * learned.mean(),
            "policy_cloning": -self.policy_cloning * log_prob.mean(),
            "value_cloning": self.value_cloning * (values - then).square().mean(),
        }

    def _as_slices(self, trajectory: Trajectory) -> TensorDict:
        """Values leave the scale of the value head, which moves on."""
        steps = trajectory.steps.copy()
        for name in ("value", "next_value"):
            steps[name] = self.learner.returns.scale.denormalise(steps[name])
        rows = steps.batch_size[:1]
        steps.batch_size = rows
        return TensorDict({"steps": steps, "state": trajectory.state}, batch_size=rows).detach()

    def state_dict(self) -> dict[str, Any]:
        return {
            "slices": None if self.slices is None else state_to_dict(self.slices),
            "num_slices": 0 if self.slices is None else len(self.slices),
            "num_seen": self.num_seen,
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        found = saved["slices"]
        device = self.learner.agent.device
        self.slices = (
            None if found is None else state_from_dict(found, saved["num_slices"]).to(device)
        )
        self.num_seen = saved["num_seen"]
        self.generator.set_state(saved["generator"])


def _shapes(slices: TensorDict) -> dict[Any, torch.Size]:
    """Leaf -> its shape without the rows."""
    return {key: slices[key].shape[1:] for key in slices.keys(True, True)}
