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

from sojourn.envs import Channel, Interface

CELL_CODES = (16, 8, 8)  # room for MiniGrid's object types, colours and states
WORD_WIDTH = 16


class GridEncoder(nn.Module):
    """Cell codes uint8 `[..., H, W, 3]` to features `[..., width]`: a learned row per place and
    code.

    The sum of embeddings is written as a one-hot product, several times faster on a CPU. Codes
    beyond the table share its last row, so that no observation can index outside it.
    """

    offsets: Tensor
    limits: Tensor

    def __init__(self, channel: Channel, width: int) -> None:
        super().__init__()
        height, breadth, planes = channel.shape
        if planes != len(CELL_CODES):
            raise ValueError(f"grid channel: expected 3 codes per cell, got shape {channel.shape}")
        codes_per_cell = sum(CELL_CODES)
        places = torch.arange(height * breadth).view(height, breadth, 1) * codes_per_cell
        plane_starts = torch.tensor([0, CELL_CODES[0], CELL_CODES[0] + CELL_CODES[1]])
        self.register_buffer("offsets", places + plane_starts, persistent=False)
        self.register_buffer("limits", torch.tensor(CELL_CODES) - 1, persistent=False)
        self.num_codes = height * breadth * codes_per_cell
        self.project = nn.Linear(self.num_codes, width)
        self.width = width

    def forward(self, grid: Tensor) -> Tensor:
        codes = (torch.minimum(grid.long(), self.limits) + self.offsets).flatten(-3)
        shape = (*codes.shape[:-1], self.num_codes)
        one_hot = torch.zeros(shape, device=grid.device, dtype=self.project.weight.dtype)
        return torch.relu(self.project(one_hot.scatter_(-1, codes, 1.0)))


class VectorEncoder(nn.Module):
    """A real vector `[..., size]` to features `[..., width]`."""

    def __init__(self, channel: Channel, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(channel.shape[0], width)
        self.width = width

    def forward(self, vector: Tensor) -> Tensor:
        return torch.relu(self.project(vector.to(self.project.weight.dtype)))


class DiscreteEncoder(nn.Module):
    """An index `[...]` to a one-hot vector."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self.width = channel.num_values

    def forward(self, index: Tensor) -> Tensor:
        return functional.one_hot(index, self.width)


class TokensEncoder(nn.Module):
    """Words `[..., L]` to features `[..., width]`; the order of the words matters, padding (0) is
    silent.
    """

    def __init__(self, channel: Channel, width: int) -> None:
        super().__init__()
        self.words = nn.Embedding(channel.num_values, WORD_WIDTH, padding_idx=0)
        self.project = nn.Linear(channel.shape[0] * WORD_WIDTH, width)
        self.width = width

    def forward(self, tokens: Tensor) -> Tensor:
        return torch.relu(self.project(self.words(tokens).flatten(-2)))


ChannelEncoder = GridEncoder | VectorEncoder | DiscreteEncoder | TokensEncoder


def channel_encoder(channel: Channel, width: int) -> ChannelEncoder:
    """The encoder of a channel's kind."""
    match channel.kind:
        case "grid":
            return GridEncoder(channel, width)
        case "vector":
            return VectorEncoder(channel, width)
        case "discrete":
            return DiscreteEncoder(channel)
        case "tokens":
            return TokensEncoder(channel, width)


def symlog(x: Tensor) -> Tensor:
    """sign(x) log(1 + |x|): keeps rewards of any scale readable (Hafner et al. 2023, DreamerV3)."""
    return torch.sign(x) * torch.log1p(torch.abs(x))


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
        # previous action one-hot, previous reward, episode start, task start
        num_features = sum(widths) + interface.num_actions + 3
        self.mix = nn.Linear(num_features, width)

    def forward(self, observation: Mapping[str, Tensor]) -> Tensor:
        dtype = self.mix.weight.dtype
        channels = zip(self.channel_names, self.channels.values(), strict=True)
        features = [encode(observation[name]).to(dtype) for name, encode in channels]
        previous = functional.one_hot(observation["previous_action"], self.num_actions + 1)
        features.append(previous[..., : self.num_actions].to(dtype))
        features.append(symlog(observation["previous_reward"]).unsqueeze(-1).to(dtype))
        features.append(observation["episode_start"].unsqueeze(-1).to(dtype))
        features.append(observation["task_start"].unsqueeze(-1).to(dtype))
        return torch.tanh(self.mix(torch.cat(features, dim=-1)))
