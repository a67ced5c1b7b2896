"""One channel of an observation to features, by its kind."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from sojourn.envs import Channel

CELL_CODES = (16, 8, 8)  # room for MiniGrid's object types, colours and states
WORD_WIDTH = 16
IMAGE_PLANES = 32
SMALLEST_IMAGE = 8
MOST_ONE_HOT = 256  # wider codes have learned rows


def symlog(x: Tensor) -> Tensor:
    """sign(x) log(1 + |x|): keeps rewards of any scale readable (Hafner et al. 2023, DreamerV3)."""
    return torch.sign(x) * torch.log1p(torch.abs(x))


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


class ImageEncoder(nn.Module):
    """Pixels uint8 `[..., H, W, C]` to features `[..., width]`: 3x3 convolutions that halve the
    image until it is at most 8 x 8.
    """

    def __init__(self, channel: Channel, width: int) -> None:
        super().__init__()
        height, breadth, planes = channel.shape
        layers: list[nn.Module] = []
        while max(height, breadth) > SMALLEST_IMAGE or not layers:
            layers += [nn.Conv2d(planes, IMAGE_PLANES, 3, stride=2, padding=1), nn.ReLU()]
            planes, height, breadth = IMAGE_PLANES, (height + 1) // 2, (breadth + 1) // 2
        self.convolve = nn.Sequential(*layers)
        self.project = nn.Linear(planes * height * breadth, width)
        self.width = width

    def forward(self, image: Tensor) -> Tensor:
        places = image.shape[:-3]
        pixels = image.flatten(0, -4).movedim(-1, -3).to(self.project.weight.dtype) / 255.0
        seen = self.convolve(pixels).flatten(1)
        return torch.relu(self.project(seen)).view(*places, self.width)


class VectorEncoder(nn.Module):
    """A real vector `[..., size]` of any scale to features `[..., width]`."""

    def __init__(self, channel: Channel, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(channel.shape[0], width)
        self.width = width

    def forward(self, vector: Tensor) -> Tensor:
        return torch.relu(self.project(symlog(vector.to(self.project.weight.dtype))))


class DiscreteEncoder(nn.Module):
    """An index `[...]`, or several `[..., size]`, to one-hot vectors side by side."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self.num_values, self.several = channel.num_values, bool(channel.shape)
        self.width = channel.num_values * math.prod(channel.shape)

    def forward(self, index: Tensor) -> Tensor:
        one_hot = functional.one_hot(index, self.num_values)
        return one_hot.flatten(-2) if self.several else one_hot


class CodesEncoder(nn.Module):
    """Indices of many values to features `[..., width]`: the sum of a learned row per place and
    value.
    """

    starts: Tensor

    def __init__(self, channel: Channel, width: int) -> None:
        super().__init__()
        size = math.prod(channel.shape)
        starts = torch.arange(size) * channel.num_values
        self.register_buffer("starts", starts.view(channel.shape), persistent=False)
        self.rows = nn.Embedding(size * channel.num_values, width)
        self.several = bool(channel.shape)
        self.width = width

    def forward(self, index: Tensor) -> Tensor:
        rows: Tensor = self.rows(index + self.starts)
        return rows.sum(-2) if self.several else rows


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


ChannelEncoder = (
    GridEncoder | ImageEncoder | VectorEncoder | DiscreteEncoder | CodesEncoder | TokensEncoder
)


def channel_encoder(channel: Channel, width: int) -> ChannelEncoder:
    """The encoder of a channel's kind."""
    match channel.kind:
        case "grid":
            return GridEncoder(channel, width)
        case "image":
            return ImageEncoder(channel, width)
        case "vector":
            return VectorEncoder(channel, width)
        case "discrete":
            if channel.num_values * math.prod(channel.shape) > MOST_ONE_HOT:
                return CodesEncoder(channel, width)
            return DiscreteEncoder(channel)
        case "tokens":
            return TokensEncoder(channel, width)
