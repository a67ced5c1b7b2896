"""How far a prediction is from the next observation, channel by channel.

    vector                   mean squared error of symlog values
    image                    mean squared error of pixels in [0, 1]
    discrete, tokens, grid   cross-entropy, mean over the places of the channel

Every channel counts alike, whatever its size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from sojourn.envs import Channel, Interface

from .channel_encoders import CELL_CODES, symlog


class ObservationTarget:
    """Reads the outputs `[..., num_outputs]` of a head as a prediction of all channels."""

    def __init__(self, interface: Interface) -> None:
        self.channels = dict(interface.channels)
        self.sizes = [num_outputs(channel) for channel in self.channels.values()]
        self.num_outputs = sum(self.sizes)

    def loss(self, predicted: Tensor, observation: Mapping[str, Tensor]) -> Tensor:
        """Error `[B, T - 1]` of predictions `[B, T - 1, num_outputs]` for the steps 1 .. T - 1 of
        channels `[B, T, ...]`.
        """
        parts = torch.split(predicted, self.sizes, -1)
        errors = [
            channel_error(channel, part, observation[name][:, 1:])
            for (name, channel), part in zip(self.channels.items(), parts, strict=True)
        ]
        return torch.stack(errors).mean(0)


def num_outputs(channel: Channel) -> int:
    """Numbers that predict one channel."""
    places = math.prod(channel.shape)
    if channel.kind == "grid":
        return places // len(CELL_CODES) * sum(CELL_CODES)
    return places * channel.num_values if channel.kind in ("discrete", "tokens") else places


def channel_error(channel: Channel, predicted: Tensor, target: Tensor) -> Tensor:
    """Error `[B, T]` of `predicted` `[B, T, num_outputs]` against a channel `[B, T, ...]`."""
    steps = predicted.shape[:2]
    if channel.kind == "vector":
        return (predicted - symlog(target.to(predicted.dtype))).square().mean(-1)
    if channel.kind == "image":
        pixels = target.flatten(2).to(predicted.dtype) / 255.0
        return (predicted - pixels).square().mean(-1)
    if channel.kind == "grid":
        cells = math.prod(channel.shape) // len(CELL_CODES)
        codes = target.reshape(*steps, cells, len(CELL_CODES)).long().unbind(-1)
        by_cell = predicted.reshape(*steps, cells, sum(CELL_CODES))
        planes = torch.split(by_cell, list(CELL_CODES), -1)
        errors = [
            cross_entropy(plane, code.clamp(max=size - 1))
            for plane, code, size in zip(planes, codes, CELL_CODES, strict=True)
        ]
        return torch.stack(errors).mean(0)
    places = math.prod(channel.shape)
    logits = predicted.reshape(*steps, places, channel.num_values)
    return cross_entropy(logits, target.reshape(*steps, places).long())


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Mean over the places: logits `[B, T, places, values]`, targets `[B, T, places]`."""
    loss = functional.cross_entropy(logits.movedim(-1, 1), target, reduction="none")
    return loss.mean(-1)
