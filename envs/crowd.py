"""A crowd: lifetimes of one stream, stepped together.

Row r of B lives lifetime r, then r + B, r + 2B ... An episode that ends is followed in the same
step by the first observation of the next one, so no row is ever dead and every step is real.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .crowd_state import restore_rows
from .episodes import CrowdStep, EpisodeRecord, Status, episode_record
from .interface import Array, Interface, Observation
from .regret import reference_gap
from .rows import ActionLog, RowCounters
from .stream import Stream
from .task import Segment

NEVER = np.iinfo(np.int64).max


class Crowd:
    """`num_lifetimes` lifetimes of a stream, from number `first_lifetime` on.

    The agent sees the channels of the stream and the inputs `action_mask` bool `[B, A]`,
    `previous_action` int64 `[B]` (A: none yet), `previous_reward` float32 `[B]`, `episode_start`
    and `task_start` bool `[B]`. The previous action and reward are blank at the start of a lifetime
    only: they cross the ends of episodes and tasks. `task_start` stays False on a stream that hides
    its switches.
    """

    def __init__(self, stream: Stream, num_lifetimes: int, first_lifetime: int = 0) -> None:
        if num_lifetimes < 1:
            raise ValueError(f"num_lifetimes: expected at least 1, got {num_lifetimes}")
        if first_lifetime < 0:
            raise ValueError(f"first_lifetime: expected at least 0, got {first_lifetime}")
        self.stream = stream
        self.num_lifetimes = num_lifetimes
        self._simulator = stream.simulator(num_lifetimes)
        self._counters = RowCounters.blank(num_lifetimes)
        self._actions = ActionLog(num_lifetimes)
        self._segments: list[Segment] = []
        self._step_limit = np.full(num_lifetimes, NEVER)
        self._reward_scale = np.ones(num_lifetimes, np.float32)
        self._optimal = np.full(num_lifetimes, np.nan)
        self._floor = np.full(num_lifetimes, np.nan)
        for row in range(num_lifetimes):
            self._segments.append(stream.segment(first_lifetime + row, 0))
            self._begin_lifetime(row, first_lifetime + row)
        self.observation = self._observe()

    @property
    def interface(self) -> Interface:
        """The channels and actions of the stream."""
        return self.stream.interface

    @property
    def segments(self) -> list[Segment]:
        """The segment that every row is in."""
        return list(self._segments)

    @property
    def task_names(self) -> list[str]:
        """The name of the task that every row plays."""
        return [segment.task.name for segment in self._segments]

    def step(self, actions: Array) -> CrowdStep:
        """Play one action per row (integers `[B]`).

        Raises ValueError for a wrong shape and for actions that the task of a row does not have.
        """
        actions = self._checked(actions)
        outcome = self._simulator.step(actions)
        counters = self._counters
        counters.count_step(actions, outcome.reward, outcome.expected_reward)
        self._actions.append(actions)
        truncated = outcome.truncated
        ended = outcome.terminated | truncated
        cut = (counters.segment_step >= self._step_limit) & ~ended
        truncated = truncated | cut
        task_end = np.zeros(self.num_lifetimes, bool)
        lifetime_end = np.zeros(self.num_lifetimes, bool)
        reward_scale = self._reward_scale.copy()
        final: Observation | None = None
        episodes: list[EpisodeRecord] = []
        closing = np.flatnonzero(ended | cut).tolist()
        if closing:
            final = self._observe()
        for row in closing:
            status: Status = "truncated"
            if cut[row] or outcome.terminated[row]:
                status = "cut" if cut[row] else "terminated"
            episodes.append(self._record(row, status))
            task_end[row], lifetime_end[row] = self._move_on(row)
        self.observation = self._observe()
        return CrowdStep(
            observation=self.observation,
            reward=outcome.reward,
            expected_reward=outcome.expected_reward,
            terminated=outcome.terminated,
            truncated=truncated,
            task_end=task_end,
            lifetime_end=lifetime_end,
            reward_scale=reward_scale,
            final_observation=final,
            episodes=episodes,
        )

    def running_episodes(self) -> list[EpisodeRecord]:
        """The episodes that have begun and not ended, as far as they were lived."""
        lived = np.flatnonzero(self._counters.episode_step).tolist()
        return [self._record(row, "running") for row in lived]

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to live on from here, in integers, arrays and lists of arrays."""
        return {
            "seed": self.stream.seed,
            "counters": self._counters.state_dict(),
            "actions": [self._actions.of(row) for row in range(self.num_lifetimes)],
            "observation": {name: array.copy() for name, array in self.observation.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take every row back to where it was by replaying its running episode.

        An episode that does not come back as it was starts again, with a warning. Raises ValueError
        when the state is of another stream seed or another number of lifetimes.
        """
        found = (state["seed"], len(state["actions"]))
        if found != (self.stream.seed, self.num_lifetimes):
            raise ValueError(
                f"crowd state: expected seed {self.stream.seed} and {self.num_lifetimes} lifetimes,"
                f" got seed {found[0]} and {found[1]} lifetimes"
            )
        counters = self._counters
        counters.load_state_dict(state["counters"])
        for row in range(self.num_lifetimes):
            self._begin_segment(row)
            self._seed_episode(row)
            self._actions.put(row, state["actions"][row])
        lost = restore_rows(
            self._simulator, counters, state["actions"], state["observation"], self.task_names
        )
        for row in lost:
            self._begin_episode(row)
        self.observation = self._observe()

    def close(self) -> None:
        """Close the environments."""
        self._simulator.close()

    def _observe(self) -> Observation:
        shown = self._simulator.observation()
        counters = self._counters
        shown["previous_action"] = counters.previous_action.copy()
        shown["previous_reward"] = counters.previous_reward.copy()
        shown["episode_start"] = counters.episode_start.copy()
        shown["task_start"] = counters.task_start.copy()
        return shown

    def _checked(self, actions: Array) -> Array:
        actions = np.asarray(actions, np.int64)
        if actions.shape != (self.num_lifetimes,):
            raise ValueError(f"actions: expected [{self.num_lifetimes}], got {actions.shape}")
        mask = self.observation["action_mask"]
        legal = (actions >= 0) & (actions < mask.shape[1])
        legal &= np.take_along_axis(mask, np.where(legal, actions, 0)[:, None], 1)[:, 0]
        if not legal.all():
            row = int(np.flatnonzero(~legal)[0])
            name, num_actions = self._segments[row].task.name, int(mask[row].sum())
            raise ValueError(
                f"actions: row {row} plays {name!r}, which has {num_actions} actions; "
                f"got {actions[row]}"
            )
        return actions

    def _record(self, row: int, status: Status) -> EpisodeRecord:
        optimal, floor = float(self._optimal[row]), float(self._floor[row])
        return episode_record(self._counters, row, self._segments[row], optimal, floor, status)

    def _begin_lifetime(self, row: int, lifetime: int) -> None:
        counters = self._counters
        counters.lifetime[row] = lifetime
        counters.segment[row] = counters.lifetime_step[row] = 0
        counters.previous_action[row] = self.interface.num_actions
        counters.previous_reward[row] = 0.0
        self._enter_segment(row)

    def _enter_segment(self, row: int) -> None:
        """Begin the segment the cursor points to, at its first step."""
        counters = self._counters
        counters.segment_step[row] = counters.episode[row] = 0
        counters.task_start[row] = self.stream.announce == "announced"
        self._begin_segment(row)
        self._begin_episode(row)

    def _begin_segment(self, row: int) -> None:
        """Put the segment the cursor points to into the simulator."""
        counters = self._counters
        segment = self.stream.segment(int(counters.lifetime[row]), int(counters.segment[row]))
        self._segments[row] = segment
        self._simulator.begin_segment(row, segment)
        in_steps = segment.length.unit == "steps"
        self._step_limit[row] = segment.length.amount if in_steps else NEVER
        gap = reference_gap(segment.task.reference)
        self._reward_scale[row] = 1.0 if np.isnan(gap) else 1.0 / gap

    def _begin_episode(self, row: int) -> None:
        self._counters.begin_episode(row)
        self._actions.restart(row)
        self._seed_episode(row)

    def _seed_episode(self, row: int) -> None:
        """Start the episode the cursor points to and ask how well it could go."""
        seed = self._segments[row].episode_seed(int(self._counters.episode[row]))
        self._simulator.begin_episode(row, seed)
        self._optimal[row] = self._simulator.optimal_return(row)
        self._floor[row] = self._simulator.floor_return(row)

    def _move_on(self, row: int) -> tuple[bool, bool]:
        """Begin what follows an ended episode; says whether the task and the lifetime ended."""
        counters = self._counters
        length = self._segments[row].length
        counters.episode[row] += 1
        lived = counters.episode[row] if length.unit == "episodes" else counters.segment_step[row]
        if lived < length.amount:
            self._begin_episode(row)
            return False, False
        counters.segment[row] += 1
        if counters.segment[row] == self.stream.lifetime_segments:
            self._begin_lifetime(row, int(counters.lifetime[row]) + self.num_lifetimes)
            return True, True
        self._enter_segment(row)
        return True, False
