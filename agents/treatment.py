"""What an intervention does to the memories of a crowd before a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tensordict import TensorDict

from sojourn.envs import Array

from .moment import Moment


@dataclass(frozen=True)
class Treatment:
    """What is done before a step: `state` goes in; bool `[B]` or None for "nowhere" and "all".

    In rows that are `replaced` a reset does not touch the memory (the inputs that speak of the past
    are cleared all the same); rows that are not in `writes` read without writing.
    """

    state: TensorDict
    replaced: Array | None = None
    writes: Array | None = None


class Intervention(Protocol):
    """Called before every step of every row."""

    def treat(self, state: TensorDict, moment: Moment) -> Treatment:
        """`state` `[B]` as the last step left it, before any reset; not to be changed in place."""
