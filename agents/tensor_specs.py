"""The interface of a stream as TorchRL specs, and its actions as tensors.

one choice                      action                    int64   [B]
reals alone                     action                    float32 [B, num_reals]
several parts                   (action, choices)         int64   [B, num_choices]
                                (action, reals), if any   float32 [B, num_reals]
"""

from __future__ import annotations

import numpy as np
import torch
from tensordict import TensorDictBase
from torchrl.data import (
    Binary,
    Bounded,
    Categorical,
    Composite,
    MultiCategorical,
    TensorSpec,
    Unbounded,
)

from sojourn.envs import PREVIOUS_PARTS, Array, Channel, Interface


def observation_spec(interface: Interface, batch: int) -> Composite:
    """The specs of what `batch` rows see: the channels, and the inputs beside them."""
    parts: dict[str, TensorSpec] = {
        name: _channel_spec(channel, batch) for name, channel in interface.channels.items()
    }
    width = interface.mask_width
    parts["action_mask"] = Binary(width, shape=(batch, width), dtype=torch.bool)
    parts["previous_action"] = Categorical(interface.num_actions + 1, shape=(batch,))
    parts["previous_reward"] = Unbounded(shape=(batch,))
    for flag in ("episode_start", "task_start"):
        parts[flag] = Categorical(2, shape=(batch,), dtype=torch.bool)
    if interface.num_parts > 1:
        parts[PREVIOUS_PARTS] = Unbounded(shape=(batch, interface.num_parts - 1))
    return Composite(parts, shape=(batch,))


def _channel_spec(channel: Channel, batch: int) -> TensorSpec:
    shape = (batch, *channel.shape)
    if channel.kind in ("grid", "image"):
        return Bounded(0, 255, shape=shape, dtype=torch.uint8)
    if channel.kind == "vector":
        return Unbounded(shape=shape)
    return Categorical(channel.num_values, shape=shape)


class ActionTensors:
    """Actions of a crowd to and from the tensors at `action`."""

    def __init__(self, interface: Interface) -> None:
        self._choices, self._num_reals = interface.choices, interface.num_reals
        self._single = interface.num_parts == 1
        self._reals_alone = not self._single and max(interface.choices) == 1

    def spec(self, batch: int) -> Composite:
        """The specs of `batch` rows; masks are not part of them."""
        reals = Bounded(-1.0, 1.0, shape=(batch, self._num_reals), dtype=torch.float32)
        if self._single:
            action = Categorical(self._choices[0], shape=(batch,))
        elif self._reals_alone:
            action = reals
        else:
            sizes = list(self._choices)
            choices = MultiCategorical(sizes, shape=(batch, len(sizes)))
            parts = {"choices": choices} | ({"reals": reals} if self._num_reals else {})
            action = Composite(parts, shape=(batch,))
        return Composite(action=action, shape=(batch,))

    def read(self, tensordict: TensorDictBase) -> Array:
        """The actions as a crowd takes them."""
        action = tensordict["action"]
        if self._single:
            return np.asarray(action.cpu().numpy())
        if self._reals_alone:
            nothing = action.new_zeros(len(action), len(self._choices))
            parts = [nothing, action]
        else:
            parts = [action["choices"].float()] + ([action["reals"]] if self._num_reals else [])
        return np.asarray(torch.cat(parts, -1).cpu().numpy())

    def write(self, tensordict: TensorDictBase, actions: Array) -> None:
        """Put the actions of a crowd into `tensordict`."""
        whole = torch.from_numpy(actions)
        if self._single:
            tensordict["action"] = whole
            return
        choices, reals = torch.split(whole, [len(self._choices), self._num_reals], -1)
        if self._reals_alone:
            tensordict["action"] = reals
            return
        tensordict["action", "choices"] = choices.long()
        if self._num_reals:
            tensordict["action", "reals"] = reals
