"""What an experimenter does to memories in a life: freeze, exchange, part, restore, hand on.

    carried      S_t = write(S_{t-1}, x_t)                      nothing is done
    frozen       y_t = read(S, x_t), S_t = S                    it reads and never writes
    exchanged    S <- the memory of another life as old         does the content matter?
    separated    S <- its own memory as it last left this task       as if there were no other
    restored     S <- a snapshot, wherever a reset would be     what does this memory know?
    inherited    S_0 <- the memory of an older life             what is an old memory worth?

An intervention sees the true boundaries, which the agent does not: it is a control, never a way to
act. Resets at boundaries are the `memory_reset` of the rollout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from tensordict import TensorDict

from sojourn.envs import Array, Stream

from .moment import Moment
from .snapshots import Snapshots
from .treatment import Treatment


class Frozen:
    """Memories read and never write once a lifetime has lived `start` steps or segments.

    As long as some rows of a crowd are frozen and others are not, those others may differ from a
    life without intervention in the last digit: a core computes masked steps along another path.
    """

    def __init__(self, start: int = 0, clock: Literal["steps", "segments"] = "steps") -> None:
        if clock not in ("steps", "segments"):
            raise ValueError(f"clock: expected 'steps' or 'segments', got {clock!r}")
        self.start, self.clock = start, clock

    def treat(self, state: TensorDict, moment: Moment) -> Treatment:
        """The state as it is, closed to writing from the start on."""
        lived = moment.lifetime_step if self.clock == "steps" else moment.segment
        writes = lived < self.start
        return Treatment(state, writes=None if writes.all() else writes)


class Exchanged:
    """At every task boundary a life goes on with the memory that another life had at the same age.

    The donor of a life is the next one (the first follows the last) that `snapshots` know at that
    age, else the oldest memory of the next one. The inputs that speak of the past stay its own.
    Raises ValueError where there are fewer than two lifetimes.
    """

    def __init__(self, snapshots: Snapshots, lifetimes: Sequence[int]) -> None:
        self.snapshots, self.lifetimes = snapshots, list(lifetimes)
        if len(self.lifetimes) < 2:
            raise ValueError(f"lifetimes: expected at least 2 to exchange, got {len(lifetimes)}")
        self._place = {lifetime: place for place, lifetime in enumerate(self.lifetimes)}

    def treat(self, state: TensorDict, moment: Moment) -> Treatment:
        """The donors' memories in the rows that stand at a boundary within their life."""
        rows = moment.starts_task & ~moment.starts_lifetime
        rows &= np.isin(moment.lifetime, self.lifetimes)
        if not rows.any():
            return Treatment(state)
        places = zip(moment.lifetime[rows].tolist(), moment.segment[rows].tolist(), strict=True)
        keys = [self._donor(lifetime, age) for lifetime, age in places]
        return Treatment(put_rows(state, rows, self.snapshots.stack(keys)), rows)

    def _donor(self, lifetime: int, age: int) -> tuple[int, int]:
        place, count = self._place[lifetime], len(self.lifetimes)
        others = [self.lifetimes[(place + i) % count] for i in range(1, count)]
        same_age = ((other, age) for other in others if (other, age) in self.snapshots)
        return next(same_age, (others[0], self.snapshots.oldest(others[0])))


class Separated:
    """Every task of a life has a memory of its own: the single-task twin, all tasks at once.

    For one crowd of `stream`, from the start of its lives, whose rollout resets at tasks: a task
    that is met for the first time begins with that reset, one that comes back with the memory that
    this life had when it last left it. The inputs that speak of the past are blank either way.
    Keeps `state_bytes` for every task of the running lives.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._kept: dict[tuple[int, int], TensorDict] = {}
        self._last: Moment | None = None

    def treat(self, state: TensorDict, moment: Moment) -> Treatment:
        """The memories of the tasks that begin, where they were met before."""
        last, self._last = self._last, moment
        started = np.flatnonzero(moment.starts_task)
        if last is None or not len(started):
            return Treatment(state)
        for row in started.tolist():
            self._kept[self._key(last, row)] = state[row : row + 1].clone()
            if moment.lifetime[row] != last.lifetime[row]:
                over = int(last.lifetime[row])
                self._kept = {key: kept for key, kept in self._kept.items() if key[0] != over}
        known = {row: self._kept.get(self._key(moment, row)) for row in started.tolist()}
        found = [kept for kept in known.values() if kept is not None]
        rows = np.zeros(len(moment.segment), bool)
        rows[[row for row, kept in known.items() if kept is not None]] = True
        return (
            Treatment(put_rows(state, rows, torch.cat(found)), rows) if found else Treatment(state)
        )

    def _key(self, moment: Moment, row: int) -> tuple[int, int]:
        """(lifetime, task) of a row."""
        lifetime, segment = int(moment.lifetime[row]), int(moment.segment[row])
        return lifetime, self.stream.segment(lifetime, segment).task_index


class Restored:
    """Lifetime n starts every episode with row n - `first` of `memories`, if any, and no reset.

    For a rollout that resets at episodes; with `writes` False the memories are never written.
    """

    def __init__(self, memories: TensorDict, first: int = 0, writes: bool = True) -> None:
        self.memories, self.first, self.writes = memories, first, writes

    def treat(self, state: TensorDict, moment: Moment) -> Treatment:
        """The memories in the rows whose episode starts; lives that have none go on."""
        number = moment.lifetime - self.first
        rows = moment.starts_episode & (number >= 0) & (number < len(self.memories))
        writes = None if self.writes else np.zeros(len(rows), bool)
        if not rows.any():
            return Treatment(state, writes=writes)
        chosen = self.memories[torch.from_numpy(number[rows])]
        return Treatment(put_rows(state, rows, chosen), rows, writes)


class Inherited:
    """Lifetime n begins with row n mod B of `memories` `[B]`, the end of another life.

    The inputs that speak of the past are blank, as at the start of any life.
    """

    def __init__(self, memories: TensorDict) -> None:
        self.memories = memories

    def treat(self, state: TensorDict, moment: Moment) -> Treatment:
        """The memories in the rows whose life starts."""
        rows = moment.starts_lifetime
        if not rows.any():
            return Treatment(state)
        heirs = moment.lifetime[rows] % len(self.memories)
        return Treatment(put_rows(state, rows, self.memories[torch.from_numpy(heirs)]), rows)


def put_rows(state: TensorDict, rows: Array, values: TensorDict) -> TensorDict:
    """`state` `[B]` with `values` `[n]` in the n rows where `rows` `[B]` is set; makes copies."""
    changed = state.clone()
    changed[torch.from_numpy(rows)] = values
    return changed
