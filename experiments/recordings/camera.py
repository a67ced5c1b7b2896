"""Watching the environments that a stream makes, without changing what they do.

Tasks are wrapped one by one: seeds, instances and references are those of the stream itself.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import Any

import gymnasium
import numpy as np

from sojourn.envs import Array, Schedule, Stream, Task

from ..errors import RunError

Env = gymnasium.Env[Any, Any]
MODE = "rgb_array"
# What draws with pygame starts all of it, windows and sound.
SCREENLESS = {"SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy"}


def need_no_screen() -> None:
    """Let nothing that environments draw with look for a screen or a loudspeaker.

    What the user has set stays. To be called before the first picture.
    """
    for name, value in SCREENLESS.items():
        os.environ.setdefault(name, value)


class Camera:
    """Sees the environment that was configured last: the one that a single row plays.

    `last` is the picture of the final observation of the episode that just ended; None before.
    """

    def __init__(self) -> None:
        self.env: Env | None = None
        self.last: Array | None = None

    def watch(self, env: Env) -> None:
        """Look at this environment from now on."""
        self.env = env

    def picture(self) -> Array | None:
        """uint8 `[height, width, 3]` of the present; None where the environment has no pictures.

        Raises RunError where it promises some and gives none.
        """
        if self.env is None:
            return None
        bare = self.env.unwrapped
        if MODE not in (bare.metadata or {}).get("render_modes", ()):
            return None
        try:
            drawn = np.asarray(bare.render())
        except Exception as error:
            raise RunError(
                f"{bare.spec.id if bare.spec else bare}: its picture failed "
                f"({type(error).__name__}: {error})"
            ) from error
        if drawn.ndim != 3 or drawn.shape[2] != 3:
            raise RunError(f"{bare}: expected a picture [height, width, 3], got {drawn.shape}")
        return drawn.astype(np.uint8)


class Watched(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose final observations a camera sees before it is reset."""

    def __init__(self, env: Env, camera: Camera) -> None:
        super().__init__(env)
        self._camera = camera

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """The step of the environment; its picture is kept where the episode ends."""
        outcome = self.env.step(action)
        if outcome[2] or outcome[3]:
            self._camera.last = self._camera.picture()
        return outcome


class WatchedTask(Task):
    """Another task, its environment in front of a camera."""

    def __init__(self, task: Task, camera: Camera) -> None:
        self.task, self.camera = task, camera
        self.name, self.length, self.unit = task.name, task.length, task.unit
        self.instance, self.reference = task.instance, task.reference

    @property
    def env_key(self) -> Hashable:
        """That of the task."""
        return self.task.env_key

    def make_env(self) -> Env:
        """The task's environment, set to draw pictures instead of opening windows."""
        env = self.task.make_env()
        env.unwrapped.render_mode = MODE
        return Watched(env, self.camera)

    def configure(self, env: Env) -> None:
        """As the task does."""
        self.camera.watch(env)
        self.task.configure(_inner(env))

    def optimal_return(self, env: Env) -> float:
        """What the task says."""
        return self.task.optimal_return(_inner(env))

    def floor_return(self, env: Env) -> float:
        """What the task says."""
        return self.task.floor_return(_inner(env))

    def informed_return(self, env: Env, episode: int) -> float:
        """What the task says."""
        return self.task.informed_return(_inner(env), episode)


class _WatchedSchedule(Schedule):
    """The order of another schedule."""

    def __init__(self, schedule: Schedule, camera: Camera) -> None:
        super().__init__(schedule.families, None)
        self._schedule, self._camera = schedule, camera

    def assign(self, seed: int, lifetime: int, index: int) -> Any:
        """The task of the other schedule, in front of the camera."""
        found = self._schedule.assign(seed, lifetime, index)
        return found._replace(task=WatchedTask(found.task, self._camera))


def watched(stream: Stream, camera: Camera) -> Stream:
    """The same stream, played by step environments that the camera sees."""
    return Stream(
        _WatchedSchedule(stream.schedule, camera),
        stream.length,
        stream.seed,
        stream.lifetime_segments,
        stream.announce,
        backend="gymnasium",
        on_error=stream.on_error,
    )


def _inner(env: Env) -> Env:
    return env.env if isinstance(env, Watched) else env
