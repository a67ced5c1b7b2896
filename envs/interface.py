"""One observation and action contract that every task of a stream obeys.

An observation is a dictionary of arrays, one per channel; every task of a stream fills the same
channels, padded with zeros where it has less to say, and masks the actions it does not have. What
the agent is told beside the channels (its previous action and reward, and where episodes start) is
named in `INPUTS`.

    action = (choice among `num_actions`; a choice among b for b in `branches`; `num_reals` reals)

A task with fewer parts leaves the others masked, so that discrete and continuous tasks mix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""A NumPy array; its shape and unit are said where it is used."""
Observation = dict[str, Array]
"""What all rows see, by input: channels of the stream and `INPUTS`, `[B, ...]` each."""

Kind = Literal["grid", "image", "vector", "discrete", "tokens"]
DTYPES: dict[Kind, type] = {
    "grid": np.uint8,  # MiniGrid cell codes [height, width, 3]: object, colour, state
    "image": np.uint8,  # pixels [height, width, planes]
    "vector": np.float32,  # [size]
    "discrete": np.int64,  # [] or [size], in 0 .. num_values - 1
    "tokens": np.int64,  # [length] in 0 .. num_values - 1; 0 is padding
}

INPUTS = ("action_mask", "previous_action", "previous_reward", "episode_start", "task_start")
"""The inputs that every stream has beside its channels."""
PREVIOUS_PARTS = "previous_parts"
"""One more input where actions have several parts: what followed the first one."""


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

    def is_like(self, other: Channel) -> bool:
        """Whether one channel can hold both."""
        return self.kind == other.kind and len(self.shape) == len(other.shape)

    def union(self, other: Channel) -> Channel:
        """The smallest channel that holds both; raises ValueError when the kinds differ."""
        if not self.is_like(other):
            raise ValueError(f"cannot share one channel between {self} and {other}: kinds differ")
        shape = tuple(max(a, b) for a, b in zip(self.shape, other.shape, strict=True))
        return Channel(self.kind, shape, max(self.num_values, other.num_values))


@dataclass(frozen=True)
class Interface:
    """What an agent needs to know of a stream: the channels it sees, the parts of its actions.

    Where `branches` and `num_reals` are absent an action is one integer, int64 `[B]`; else it is
    float32 `[B, num_parts]`: a whole number for every choice, then reals in [-1, 1], which stand
    for the range of the task. The value `num_actions` of the input `previous_action` means "none
    yet": the first step after a memory reset. `descriptor_width` is how many hidden numbers
    describe a task to privileged critics; no agent sees them.
    """

    channels: Mapping[str, Channel]
    num_actions: int
    branches: tuple[int, ...] = ()
    num_reals: int = 0
    descriptor_width: int = 0

    @property
    def choices(self) -> tuple[int, ...]:
        """The number of options of every choice."""
        return (self.num_actions, *self.branches)

    @property
    def num_parts(self) -> int:
        """Entries of an action."""
        return len(self.choices) + self.num_reals

    @property
    def mask_width(self) -> int:
        """Entries of `action_mask`: the options of all choices, then the reals."""
        return sum(self.choices) + self.num_reals

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of what the agent is told beside the channels."""
        return INPUTS if self.num_parts == 1 else (*INPUTS, PREVIOUS_PARTS)

    def union(self, other: Interface) -> Interface:
        """What tasks of both kinds can share: channels side by side, actions padded.

        A channel that means another kind of thing in `other` stands beside as `name:kind`.
        """
        channels = dict(self.channels)
        for name, channel in other.channels.items():
            name = channel_name(channels, name, channel)
            channels[name] = channels[name].union(channel) if name in channels else channel
        pairs = zip_longest(self.branches, other.branches, fillvalue=1)
        return Interface(
            channels,
            max(self.num_actions, other.num_actions),
            tuple(max(pair) for pair in pairs),
            max(self.num_reals, other.num_reals),
            max(self.descriptor_width, other.descriptor_width),
        )

    def zeros(self, num_rows: int) -> Observation:
        """Blank channel arrays for `num_rows` rows."""
        return {
            name: np.zeros((num_rows, *channel.shape), channel.dtype)
            for name, channel in self.channels.items()
        }


def channel_name(channels: Mapping[str, Channel], name: str, channel: Channel) -> str:
    """Where `channel` goes among others: `name`, or `name:kind` beside one of another kind."""
    taken = channels.get(name, channel)
    return name if taken.is_like(channel) else f"{name}:{channel.kind}{len(channel.shape)}"
