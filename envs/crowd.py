"""A crowd: lifetimes of one stream, stepped together.

Row r of B lives lifetime r, then r + B, r + 2B ... An episode that ends is followed in the same
step by the first observation of the next one, so no row is ever dead and every step is real.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .actions import checked_actions
from .crowd_state import check_numbers, check_state, restore_rows
from .episodes import UNKNOWN, CrowdStep, EpisodeRecord, Status, episode_record, instance_returns
from .faults import EnvironmentFault, FaultLog
from .interface import Array, Interface, Observation
from .knowledge import knowledge
from .regret import reference_gap, valid_reference
from .rows import ActionLog, RowCounters
from .stream import Stream
from .task import Reference, Segment

NEVER = np.iinfo(np.int64).max


class Crowd:
    """`num_lifetimes` lifetimes of a stream, from number `first_lifetime` on; a row whose life ends
    goes on with the one `stride` further (default: `num_lifetimes`).

    The agent sees the channels of the stream and the inputs `action_mask` bool `[B, A]`,
    `previous_action` int64 `[B]` (A: none yet), `previous_reward` float32 `[B]`, `episode_start`
    and `task_start` bool `[B]`; where actions have several parts, those after the first as
    `previous_parts` float32 `[B, num_parts - 1]`. The previous action and reward are blank at the
    start of a lifetime only: they cross the ends of episodes and tasks. `task_start` stays False on
    a stream that hides its switches.
    """

    def __init__(
        self, stream: Stream, num_lifetimes: int, first_lifetime: int = 0, stride: int | None = None
    ) -> None:
        self._stride = num_lifetimes if stride is None else stride
        check_numbers(num_lifetimes, first_lifetime, self._stride)
        self.stream = stream
        self.num_lifetimes = num_lifetimes
        self._simulator = stream.simulator(num_lifetimes)
        self._counters = RowCounters.blank(num_lifetimes, stream.interface)
        self._actions = ActionLog(num_lifetimes, stream.interface)
        self._faults = FaultLog(stream.on_error, num_lifetimes)
        self._announced = stream.announce == "announced"
        self._segments: list[Segment] = []
        self._step_limit = np.full(num_lifetimes, NEVER)
        self._reward_scale = np.ones(num_lifetimes, np.float32)
        self._references: list[Reference | None] = [None] * num_lifetimes
        self._returns = [UNKNOWN] * num_lifetimes
        for row in range(num_lifetimes):
            self._segments.append(stream.segment(first_lifetime + row, 0))
            self._counters.enter_lifetime(row, first_lifetime + row, self._announced)
            self._begin(row, new_segment=True)
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
    def num_faults(self) -> int:
        """How many episodes broke because their environment did, and were borne."""
        return self._faults.total

    @property
    def task_names(self) -> list[str]:
        """The name of the task that every row plays."""
        return [segment.task.name for segment in self._segments]

    def knowledge(self) -> Array:
        """What is known of every row's task, `[B, knowledge_width]`; agents are never told."""
        rows = (self._segments, self._references, self._returns)
        return knowledge(self.interface, *rows, self._counters)

    def step(self, actions: Array) -> CrowdStep:
        """Play one action per row (integers `[B]`, or float32 `[B, num_parts]`).

        Raises ValueError for a wrong shape and for actions that the task of a row does not have,
        `EnvironmentFault` where an environment breaks and the stream does not bear it.
        """
        mask = self.observation["action_mask"]
        actions = checked_actions(self.interface, actions, mask, self._segments)
        outcome = self._simulator.step(actions)
        counters = self._counters
        counters.count_step(actions, outcome.reward, outcome.expected_reward)
        self._actions.append(actions)
        ended = outcome.terminated | outcome.truncated
        failed = np.zeros(self.num_lifetimes, bool)
        failed[list(outcome.faults)] = True
        cut = (counters.segment_step >= self._step_limit) & ~(ended | failed)
        truncated = outcome.truncated | cut | failed
        task_end = np.zeros(self.num_lifetimes, bool)
        lifetime_end = np.zeros(self.num_lifetimes, bool)
        reward_scale = self._reward_scale.copy()
        final: Observation | None = None
        episodes: list[EpisodeRecord] = []
        closing = np.flatnonzero(ended | truncated).tolist()
        if closing:
            final = self._observe()
        for row in closing:
            status: Status = "truncated"
            if cut[row] or failed[row]:
                status = "cut" if cut[row] else "failed"
            elif outcome.terminated[row]:
                status = "terminated"
            episodes.append(self._record(row, status))
            task_end[row], lifetime_end[row] = self._move_on(row, outcome.faults.get(row))
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
            "num_faults": self.num_faults,
            "counters": self._counters.state_dict(),
            "actions": [self._actions.of(row) for row in range(self.num_lifetimes)],
            "observation": {name: array.copy() for name, array in self.observation.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take every row back to where it was by replaying its running episode.

        An episode that does not come back as it was starts again, with a warning. Raises ValueError
        when the state is of another stream seed or another number of lifetimes.
        """
        check_state(state, self.stream.seed, self.num_lifetimes)
        counters = self._counters
        self._faults.total = int(state["num_faults"])
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
        return self._simulator.observation() | self._counters.inputs()

    def _record(self, row: int, status: Status) -> EpisodeRecord:
        known = (self._segments[row], self._references[row], self._returns[row])
        return episode_record(self._counters, row, *known, status)

    def _begin_segment(self, row: int) -> None:
        """Put the segment the cursor points to into the simulator."""
        counters = self._counters
        segment = self.stream.segment(int(counters.lifetime[row]), int(counters.segment[row]))
        self._segments[row] = segment
        self._simulator.begin_segment(row, segment)
        in_steps = segment.length.unit == "steps"
        self._step_limit[row] = segment.length.amount if in_steps else NEVER
        self._references[row] = reference = valid_reference(segment.task.reference)
        self._reward_scale[row] = 1.0 / reference_gap(reference)

    def _begin_episode(self, row: int) -> None:
        self._counters.begin_episode(row)
        self._actions.restart(row)
        self._seed_episode(row)

    def _seed_episode(self, row: int) -> None:
        """Start the episode the cursor points to and ask how well it could go."""
        segment, episode = self._segments[row], int(self._counters.episode[row])
        self._simulator.begin_episode(row, segment.episode_seed(episode))
        reference = self._references[row]
        self._returns[row] = instance_returns(self._simulator, row, episode, reference)

    def _move_on(self, row: int, fault: EnvironmentFault | None) -> tuple[bool, bool]:
        """Begin what follows an ended episode; says whether the task and the lifetime ended."""
        if fault is None:
            self._faults.clear(row)
        else:
            self._faults.note(row, fault)
        task_end, lifetime_end = self._advance(row, failed=fault is not None)
        further = self._begin(row, new_segment=task_end)
        return task_end or further[0], lifetime_end or further[1]

    def _advance(self, row: int, failed: bool) -> tuple[bool, bool]:
        """Point the cursor to the next episode; says whether the task and the lifetime ended."""
        counters = self._counters
        length = self._segments[row].length
        counters.episode[row] += 1
        lived = counters.episode[row] if length.unit == "episodes" else counters.segment_step[row]
        replaced = failed and self.stream.on_error == "replace_task"
        if lived < length.amount and not replaced:
            return False, False
        segment = int(counters.segment[row]) + 1
        lifetime = int(counters.lifetime[row])
        if segment == self.stream.num_segments(lifetime):
            lifetime += self._stride
            counters.enter_lifetime(row, lifetime, self._announced)
            return True, True
        counters.enter_segment(row, segment, self._announced)
        return True, False

    def _begin(self, row: int, new_segment: bool) -> tuple[bool, bool]:
        """Begin the episode the cursor points to, or the first one after it that can be begun.

        Says whether the search went past the end of the task and of the lifetime.
        """
        task_end = lifetime_end = False
        while True:
            try:
                if new_segment:
                    self._begin_segment(row)
                self._begin_episode(row)
                return task_end, lifetime_end
            except EnvironmentFault as fault:
                self._faults.note(row, fault)
                new_segment = True
                ended = self._advance(row, failed=True)
                task_end, lifetime_end = task_end or ended[0], lifetime_end or ended[1]
