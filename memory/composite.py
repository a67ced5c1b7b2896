"""What memories made of memories have in common: a nested state, one name per member."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from tensordict import TensorDict
from torch import Tensor

from .core import MemoryCore


class Composite(MemoryCore):
    """A memory whose state holds the states of its `members` under their names."""

    @abstractmethod
    def members(self) -> dict[str, MemoryCore]:
        """The members by name, in the order in which they run."""

    def adopt(self, members: Iterable[MemoryCore]) -> None:
        """Take over what any of the members does: grow, be anchored, read from snapshots."""
        members = list(members)
        self.grows = any(member.grows for member in members)
        self.anchored = any(member.anchored for member in members)
        self.reads_commits = any(member.reads_commits for member in members)

    def init_state(self, batch: int) -> TensorDict:
        """The initial states of all members."""
        states = {name: member.init_state(batch) for name, member in self.members().items()}
        return TensorDict(states, batch_size=[batch])

    def reset_rows(self, state: TensorDict, rows: Tensor) -> TensorDict:
        states = {
            name: member.reset_rows(state.get(name), rows)
            for name, member in self.members().items()
        }
        return TensorDict(states, batch_size=state.batch_size)


def check_member_width(name: str, member: MemoryCore, width: int, container: str) -> None:
    """Raise ValueError unless the member called `name` has the container's `width`."""
    if member.width != width:
        raise ValueError(
            f"{name} of a {container} must have its width {width}, got {member.width}; use {width}"
        )
