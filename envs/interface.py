"""One observation and action contract that every task of a stream obeys.

An observation is a dictionary of arrays, one per channel; every task of a stream fills the same
channels, padded with zeros where it has less to say, and masks the actions it does not have. What
the agent is told beside the channels (its previous action and reward, and where episodes start) is
named in `INPUTS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Observation = dict[str, Array]

Kind = Literal["grid", "vector", "discrete", "tokens"]
DTYPES: dict[Kind, type] = {
    "grid": np.uint8,  # MiniGrid cell codes [height, width, 3]: object, colour, state
    "vector": np.float32,  # [size]
    "discrete": np.int64,  # [] in 0 .. num_values - 1
    "tokens": np.int64,  # [length] in 0 .. num_values - 1; 0 is padding
}

INPUTS = ("action_mask", "previous_action", "previous_reward", "episode_start", "task_start")


@dataclass(frozen=True)
class Channel:
    """One named array of an observation: its kind, its shape without the batch, its codes."""

    kind: Kind
    shape: tuple[int, ...] = ()
    num_values: int = 0

    @property
    def dtype(self) -> type:
        """Element type of the arrays of this channel."""
        return DTYPES[self.kind]

    def union(self, other: Channel) -> Channel:
        """The smallest channel that holds both; raises ValueError when the kinds differ."""
        if self.kind != other.kind or len(self.shape) != len(other.shape):
            raise ValueError(f"cannot share one channel between {self} and {other}: kinds differ")
        shape = tuple(max(a, b) for a, b in zip(self.shape, other.shape, strict=True))
        return Channel(self.kind, shape, max(self.num_values, other.num_values))


@dataclass(frozen=True)
class Interface:
    """What an agent needs to know of a stream: the channels it sees, how many actions it has.

    The value `num_actions` of the input `previous_action` means "none yet": the first step after a
    memory reset.
    """

    channels: Mapping[str, Channel]
    num_actions: int

    def union(self, other: Interface) -> Interface:
        """What tasks of both kinds can share: channels side by side, actions padded."""
        channels = dict(self.channels)
        for name, channel in other.channels.items():
            channels[name] = channels[name].union(channel) if name in channels else channel
        return Interface(channels, max(self.num_actions, other.num_actions))

    def zeros(self, num_rows: int) -> Observation:
        """Blank channel arrays for `num_rows` rows."""
        return {
            name: np.zeros((num_rows, *channel.shape), channel.dtype)
            for name, channel in self.channels.items()
        }
