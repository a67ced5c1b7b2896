"""Observations and the agent's own past to one token per step.

Every channel of the stream's interface has an encoder of its own kind; their features, the previous
action and reward and the start flags make one input token, as in RL2 (Duan et al. 2016, arXiv
1611.02779).
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from sojourn.envs import PREVIOUS_PARTS, Interface

from .channel_encoders import channel_encoder, symlog


class Encoder(nn.Module):
    """An observation of the stream to one input token `[..., width]`."""

    def __init__(self, interface: Interface, width: int) -> None:
        super().__init__()
        self.num_actions = interface.num_actions
        self.channel_names = list(interface.channels)
        encoders = [channel_encoder(channel, width) for channel in interface.channels.values()]
        widths = [int(encoder.width) for encoder in encoders]
        # Numbered: a module may not be called "values" or "a.b", a channel may.
        names = [f"{i}_{n.replace('.', '_')}" for i, n in enumerate(self.channel_names)]
        self.channels = nn.ModuleDict(dict(zip(names, encoders, strict=True)))
        self.branches = interface.branches
        self.has_parts = interface.num_parts > 1
        # previous action (choices one-hot, reals), previous reward, episode start, task start
        num_features = sum(widths) + interface.mask_width + 3
        self.mix = nn.Linear(num_features, width)

    def forward(self, observation: Mapping[str, Tensor]) -> Tensor:
        dtype = self.mix.weight.dtype
        channels = zip(self.channel_names, self.channels.values(), strict=True)
        features = [encode(observation[name]).to(dtype) for name, encode in channels]
        previous = functional.one_hot(observation["previous_action"], self.num_actions + 1)
        features.append(previous[..., : self.num_actions].to(dtype))
        if self.has_parts:
            features += self._parts(observation[PREVIOUS_PARTS].to(dtype))
        features.append(symlog(observation["previous_reward"]).unsqueeze(-1).to(dtype))
        features.append(observation["episode_start"].unsqueeze(-1).to(dtype))
        features.append(observation["task_start"].unsqueeze(-1).to(dtype))
        return torch.tanh(self.mix(torch.cat(features, dim=-1)))

    def _parts(self, previous: Tensor) -> list[Tensor]:
        """What followed the first part of the previous action: choices one-hot, reals."""
        chosen = previous[..., : len(self.branches)].long().unbind(-1)
        parts = zip(chosen, self.branches, strict=True)
        one_hot = [functional.one_hot(part, size).to(previous.dtype) for part, size in parts]
        return [*one_hot, previous[..., len(self.branches) :]]
