"""One lifetime as a series of shots: the picture, and what is said about it.

    regret so far = finished episodes x their normalised regret, as tables have it

0 for the reference, 1 an episode for random play. Episodes without a reference or cut short by
their segment add nothing and are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sojourn.agents import Agent, MemoryReset, Moment, Rollout, SharedLuck, state_numbers
from sojourn.envs import Array, Crowd, EpisodeRecord, Stream

from ..episodes import Episodes
from ..errors import RunError
from .camera import Camera, watched


@dataclass(frozen=True)
class Shot:
    """What is seen before a step, or at the end of an episode (`ends`).

    `picture` uint8 `[height, width, 3]`; None where there is none, and `counts` `[num_actions]`
    tells how often every action was taken in this task so far. `regret` is the regret so far after
    every finished episode that has one.
    """

    picture: Array | None
    counts: Array
    task: str
    segment: int
    episode: int
    step: int
    total_return: float
    regret: tuple[float, ...]
    memory_norm: float
    ends: bool = False


@dataclass(frozen=True)
class Plan:
    """How a life is lived: the luck is shared by all agents that are filmed."""

    stream: Stream
    lifetime: int
    steps: int
    memory_reset: MemoryReset
    luck: SharedLuck
    greedy: bool = False


def film(agent: Agent, plan: Plan) -> Iterator[Shot]:
    """Live `plan.steps` steps of one lifetime from the learned initial memory.

    Yields a shot before every step and one more where an episode ends with a picture. Raises
    RunError where neither pictures nor bars can be drawn.
    """
    camera = Camera()
    crowd = Crowd(watched(plan.stream, camera), 1, first_lifetime=plan.lifetime)
    if camera.picture() is None and crowd.interface.num_actions < 2:
        raise RunError(
            f"{crowd.task_names[0]}: has no pictures (no render mode rgb_array), and bars need "
            "actions that can be counted"
        )
    life = _Life(Rollout(agent, crowd, plan.memory_reset, greedy=plan.greedy))
    try:
        for _ in range(plan.steps):
            yield life.now(camera.picture())
            camera.last = None
            ended = life.step(plan.luck)
            if ended is not None and camera.last is not None:
                yield life.end(camera.last, ended)
            life.enter()
    finally:
        crowd.close()


class _Life:
    """A lifetime on its way: the rollout, and what was counted of it."""

    def __init__(self, rollout: Rollout) -> None:
        self.rollout = rollout
        self._records: list[EpisodeRecord] = []
        self._regret: tuple[float, ...] = ()
        self.enter()

    def enter(self) -> None:
        """Begin to count anew where a task begins."""
        moment = Moment.of(self.rollout.crowd)
        if int(moment.segment_step[0]) == 0:
            self._counts = np.zeros(max(1, self.rollout.crowd.interface.num_actions), np.int64)

    def step(self, luck: SharedLuck) -> EpisodeRecord | None:
        """Live one step; returns the episode that ended with it."""
        endings = self.rollout.live(1, luck)
        action = int(self.rollout.observation["previous_action"][0])
        if action < len(self._counts):  # beyond them: none yet, at the start of a lifetime
            self._counts[action] += 1
        if not endings:
            return None
        self._records.append(endings[0].record)
        regret = Episodes.from_records(self._records, 0).regret()
        if regret.count > len(self._regret):
            self._regret = (*self._regret, regret.normalised * regret.count)
        return endings[0].record

    def now(self, picture: Array | None) -> Shot:
        """The moment before the next step."""
        crowd, moment = self.rollout.crowd, Moment.of(self.rollout.crowd)
        running = crowd.running_episodes()
        return Shot(
            picture,
            self._counts.copy(),
            crowd.task_names[0],
            int(moment.segment[0]),
            int(moment.episode[0]),
            int(moment.episode_step[0]),
            running[0].total_return if running else 0.0,
            self._regret,
            self._norm(),
        )

    def end(self, picture: Array, record: EpisodeRecord) -> Shot:
        """The last picture of an episode, which the crowd has left already."""
        return Shot(
            picture,
            self._counts.copy(),
            record.task,
            record.segment,
            record.episode,
            record.num_steps,
            record.total_return,
            self._regret,
            self._norm(),
            ends=True,
        )

    def _norm(self) -> float:
        """Frobenius norm of everything real that the memory holds."""
        return float(state_numbers(self.rollout.state).norm())
