"""Transfer of memory, estimated in pairs: the same task lived with a memory and without it.

    U = E_B[Regret_B(S_0) - Regret_B(S_A)]      > 0: having lived through A helps in B

S_A is the memory after task A of a slice, S_0 the learned initial one; B is the task that follows A
in that lifetime. Both branches live B from blank inputs with the same episode seeds and the same
uniforms (inverse-CDF sampling), so that only the memory tells them apart.

As a training signal the advantage of the steps of A grows by

    weight (gamma lambda)^(t_B - t) (U_b - mean of the other lifetimes' U)

with t_B the last step of A: what GAE would make of a reward at the end of A, kept within A. No
gradient passes through either branch. The fresh branch is a baseline that A's actions cannot move:
U by itself would reward a worse fresh agent. Source: common random numbers, Glasserman & Yao 1992.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from tensordict import TensorDict
from torch import Tensor

from sojourn.envs import Array, Crowd, EpisodeRecord, Stream, replay
from sojourn.memory import eager

from .agent import Agent
from .life_regret import grouped_regret
from .luck import SharedLuck
from .rollout import Actor, Rollout
from .student import student_interval
from .trajectory import Trajectory

NAMES = ("utility", "low", "high", "num_lifetimes", "extra_steps")


@dataclass(frozen=True)
class Boundaries:
    """Task ends of a slice that something follows, the last one of every lifetime that has one.

    `row`, `step`: int `[n]`, where in the slice A ends. `start`: its first step in the slice.
    `follows`: (lifetime, segment) of B.
    """

    row: Array
    step: Array
    start: Array
    follows: list[tuple[int, int]]


class Transfer:
    """Measures U at every `every`-th update, living B for at most `num_steps` steps.

    With `weight` 0 it is only logged. Its lives come on top of the run's budget of steps and are
    logged as `extra_steps`. Raises ValueError for impossible numbers.
    """

    def __init__(
        self, weight: float = 0.0, every: int = 10, num_steps: int = 64, seed: int = 0
    ) -> None:
        for name, count in (("every", every), ("num_steps", num_steps)):
            if count < 1:
                raise ValueError(f"transfer.{name}: expected at least 1, got {count}")
        if weight < 0.0 or not math.isfinite(weight):
            raise ValueError(f"transfer.weight: expected a number of at least 0, got {weight}")
        self.weight, self.every, self.num_steps, self.seed = weight, every, num_steps, seed
        self.updates = 0

    def check(self, agent: Agent, rollout: Rollout) -> None:
        """Raise ValueError for lives in which no memory reaches the next task as it was."""
        if rollout.memory_reset in ("episode", "task"):
            raise ValueError(
                f"transfer: memory_reset={rollout.memory_reset} forgets A before B begins; "
                "use lifetime or never"
            )
        if agent.memory.grows:
            raise ValueError(
                "transfer: a memory that grows with every token has no fresh twin of its size; use "
                "sliding_window in its place"
            )
        if rollout.crowd.stream.lifetime_segments == 1:
            raise ValueError(
                "transfer: a lifetime of one segment has no task that follows another; give "
                "stream.lifetime_segments=null, or a number above 1"
            )

    def measure(
        self,
        agent: Agent,
        rollout: Rollout,
        trajectory: Trajectory,
        episodes: Sequence[EpisodeRecord],
        decay: float,
    ) -> tuple[Tensor | None, dict[str, float]]:
        """The bonus `[B, T]` of a slice, None without a weight, and metrics; NaN: not measured.

        `episodes` are those that ended in the slice, in the order they were lived; `decay` is the
        product of discount and trace.
        """
        self.check(agent, rollout)
        self.updates += 1
        unknown = dict.fromkeys((f"transfer/{name}" for name in NAMES), math.nan)
        if (self.updates - 1) % self.every:
            return None, unknown
        found = boundaries(trajectory, episodes)
        if not len(found.row):
            return None, unknown
        gained, lived = self._utility(agent, rollout, trajectory, found)
        known = np.isfinite(gained)
        mean, low, high = student_interval(gained[known])
        values = (mean, low, high, float(known.sum()), float(lived))
        told = {f"transfer/{name}": value for name, value in zip(NAMES, values, strict=True)}
        if self.weight == 0.0 or not known.any():
            return None, told
        shape = trajectory.steps.batch_size
        bonus = credit(shape, found, self.weight * others_removed(gained), decay)
        return bonus.to(trajectory.steps["reward"]), told

    @torch.no_grad()
    def _utility(
        self, agent: Agent, rollout: Rollout, trajectory: Trajectory, found: Boundaries
    ) -> tuple[Array, int]:
        rows = torch.from_numpy(found.row).to(agent.device)
        last = torch.from_numpy(found.step).to(agent.device)
        steps = trajectory.steps[rows]
        lived = torch.arange(steps.batch_size[1], device=agent.device) <= last.unsqueeze(1)
        carried = agent.read(
            steps["observation"], trajectory.state[rows], steps["reset"], lived
        ).state
        luck = self.seed + self.updates
        stream = rollout.crowd.stream
        with eager(agent.memory):  # every slice has another number of boundaries
            return utility(agent, carried, stream, found.follows, self.num_steps, luck)

    def state_dict(self) -> dict[str, int]:
        return {"updates": self.updates}

    def load_state_dict(self, saved: dict[str, int]) -> None:
        self.updates = saved["updates"]


def boundaries(trajectory: Trajectory, episodes: Sequence[EpisodeRecord]) -> Boundaries:
    """Where tasks end in a slice and which task follows, from its flags and its episodes."""
    flags = {
        name: trajectory.steps[name].cpu().numpy()
        for name in ("terminated", "truncated", "task_end", "lifetime_end")
    }
    # Time first: the order in which a crowd hands its episodes over.
    step, row = np.nonzero((flags["terminated"] | flags["truncated"]).T)
    record_at = dict(zip(zip(row.tolist(), step.tolist(), strict=True), episodes, strict=True))
    rows, steps, starts, follows = [], [], [], []
    for b, ends in enumerate(flags["task_end"]):
        all_ends = np.flatnonzero(ends)
        followed = np.flatnonzero(ends & ~flags["lifetime_end"][b])
        if not len(followed):
            continue
        last = int(followed[-1])
        record = record_at[b, last]
        rows.append(b)
        steps.append(last)
        starts.append(int(max(all_ends[all_ends < last], default=-1)) + 1)
        follows.append((record.lifetime, record.segment + 1))
    return Boundaries(np.array(rows, int), np.array(steps, int), np.array(starts, int), follows)


@torch.no_grad()
def utility(
    actor: Actor,
    carried: TensorDict,
    stream: Stream,
    follows: Sequence[tuple[int, int]],
    num_steps: int,
    seed: int,
) -> tuple[Array, int]:
    """U `[n]`: regret of fresh memories minus that of `carried` `[n]` ones; and the steps lived.

    Memory i lives segment `follows[i]` (lifetime, segment) for at most `num_steps` steps, and so
    does a fresh one, with the luck of `seed`. Regret is that of the episodes that ended in both
    branches; NaN where there is none of known regret.
    """
    num = len(follows)
    crowd = Crowd(replay(stream, follows), 2 * num)
    branches = Rollout(actor, crowd)
    branches.state = torch.cat([carried, actor.init_state(num)]).clone()
    branches.pending_reset = np.zeros(2 * num, bool)
    luck, lived, waiting = SharedLuck(seed, period=num), 0, 2 * num
    records: list[EpisodeRecord] = []
    while waiting and lived < num_steps:
        endings = [e for e in branches.live(1, luck) if e.record.lifetime < 2 * num]
        records += [ending.record for ending in endings]
        waiting -= sum(ending.ends_segment for ending in endings)
        lived += 1
    records += [record for record in crowd.running_episodes() if record.lifetime < 2 * num]
    crowd.close()
    records = in_both_branches(records, num)
    branch = np.array([record.lifetime for record in records], np.int64)
    regret = grouped_regret(records, branch, 2 * num)
    return np.asarray(regret[num:] - regret[:num]), 2 * num * lived


def in_both_branches(records: Sequence[EpisodeRecord], num: int) -> list[EpisodeRecord]:
    """The episodes that ended in both branches of a pair: lifetimes b and b + `num`.

    The branch that is faster lives further into B, where it knows B better, and against those later
    episodes the other has nothing to set. Tasks that are measured by rate keep all their steps.
    """
    ended = [r for r in records if r.status not in ("cut", "running")]
    first, second = (
        {(r.lifetime % num, r.episode) for r in ended if r.lifetime // num == branch}
        for branch in (0, 1)
    )
    both = first & second
    return [
        record
        for record in records
        if record.unit == "rate" or (record.lifetime % num, record.episode) in both
    ]


def others_removed(gained: Array) -> Array:
    """U `[n]` minus the mean of the others': an unbiased baseline. Unknown ones become 0."""
    known = np.isfinite(gained)
    count = int(known.sum())
    if count < 2:
        return np.where(known, gained, 0.0)
    mean = gained[known].mean()
    return np.where(known, (gained - mean) * count / (count - 1), 0.0)


def credit(shape: Sequence[int], found: Boundaries, gain: Array, decay: float) -> Tensor:
    """`gain` `[n]` spread back over the steps of every A, `[B, T]`; float64."""
    bonus = np.zeros(tuple(shape))
    for row, last, start, value in zip(found.row, found.step, found.start, gain, strict=True):
        bonus[row, start : last + 1] = value * decay ** np.arange(last - start, -1, -1)
    return torch.from_numpy(bonus)
