"""The agent: an encoder, a memory that learns online, and two heads.

x_t = encode(o_t, a_{t-1}, r_{t-1});  y_t, S_t = memory(x_t, S_{t-1});  policy and value read y_t.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from tensordict import TensorDict
from torch import Tensor, nn

from sojourn.envs import Interface
from sojourn.memory import Measures, MemoryCore, diagnose

from .actions import actions_of
from .encoder import Encoder
from .heads import PolicyHead, ValueHead


@dataclass(frozen=True)
class Decision:
    """One step of acting: `[B]` tensors and the memory state after the step; actions as the
    stream's interface says. `features` `[B, D]` are what was read off the memory.
    """

    action: Tensor
    log_prob: Tensor
    value: Tensor
    state: TensorDict
    features: Tensor


@dataclass(frozen=True)
class Reading:
    """A slice read at once: `tokens` and `features` `[B, T, D]` before and after the memory; its
    `state` `[B]` after the last step.
    """

    tokens: Tensor
    features: Tensor
    state: TensorDict


class Agent(nn.Module):
    """A policy whose memory is the state that goes in and comes out; the module itself remembers
    nothing.
    """

    def __init__(self, interface: Interface, memory: MemoryCore) -> None:
        super().__init__()
        self.interface = interface
        self.encoder = Encoder(interface, memory.width)
        self.memory = memory
        self.actions = actions_of(interface)
        self.policy = PolicyHead(memory.width, self.actions)
        self.value = ValueHead(memory.width)

    @property
    def device(self) -> torch.device:
        return self.encoder.mix.weight.device

    def init_state(self, batch: int) -> TensorDict:
        """The learned initial memory of `batch` lifetimes."""
        return self.memory.init_state(batch)

    def act(
        self,
        observation: Mapping[str, Tensor],
        state: TensorDict,
        reset: Tensor | None = None,
        uniform: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Decision:
        """Live one step: channels `[B, ...]`, `reset` `[B]` clears memories before the step.

        `uniform` `[B, *actions.luck_shape]` in [0, 1) samples the actions; without it the most
        likely ones are taken. Where `mask` `[B]` is False the step reads and does not write.
        """
        x, commit = self.encoder(observation), self._commit(observation)
        features, state = self.memory.step(x, state, reset, mask, commit)
        outputs, actions = self.policy(features, observation["action_mask"]), self.actions
        action = actions.mode(outputs) if uniform is None else actions.sample(outputs, uniform)
        log_prob, value = actions.log_prob(outputs, action), self.value(features)
        return Decision(action, log_prob, value, state, features)

    def unroll(
        self,
        observation: Mapping[str, Tensor],
        state: TensorDict,
        reset: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, TensorDict]:
        """Live `[B, T]` steps at once: masked outputs of the policy `[B, T, num_outputs]` (logits
        where an action is one choice), values `[B, T]`, state after.
        """
        read = self.read(observation, state, reset)
        outputs = self.policy(read.features, observation["action_mask"])
        return outputs, self.value(read.features), read.state

    def read(
        self,
        observation: Mapping[str, Tensor],
        state: TensorDict,
        reset: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Reading:
        """Live `[B, T]` steps at once up to the heads; where `mask` is False a step does not
        write.
        """
        x, commit = self.encoder(observation), self._commit(observation)
        features, state = self.memory(x, state, reset, mask, commit)
        return Reading(x, features, state)

    @torch.no_grad()
    def diagnose(
        self,
        observation: Mapping[str, Tensor],
        state: TensorDict,
        reset: Tensor | None = None,
    ) -> Measures:
        """Measures of the memory, by layer and head, over `[B, T]` steps; changes nothing."""
        x, commit = self.encoder(observation), self._commit(observation)
        return diagnose(self.memory, x, state, reset, commit=commit)

    def _commit(self, observation: Mapping[str, Tensor]) -> Tensor | None:
        """Memories read from a snapshot take it where an episode starts: its token tells how the
        last one ended.
        """
        return observation["episode_start"] if self.memory.reads_commits else None
