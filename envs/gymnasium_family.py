"""Any registered Gymnasium environment as a task, with the references its user declares."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any

import gymnasium
import numpy as np

from .adapter import Missions, interface_of
from .interface import Interface
from .task import Env, Family, InstanceRule, Reference, Task, Unit


class GymnasiumTask(Task):
    """One registered environment; nothing of it is hidden but what its seed draws."""

    def __init__(
        self,
        env_id: str,
        kwargs: Mapping[str, Any],
        max_episode_steps: int | None,
        unit: Unit,
        instance: InstanceRule,
        reference: Reference | None,
    ) -> None:
        self.name = env_id
        self.unit = unit
        self.instance = instance
        self.reference = reference
        self._kwargs = dict(kwargs)
        self._max_episode_steps = max_episode_steps

    @property
    def env_key(self) -> Hashable:
        """The id with everything that `gymnasium.make` is told."""
        kwargs = json.dumps(self._kwargs, sort_keys=True, default=repr)
        return (self.name, kwargs, self._max_episode_steps)

    def make_env(self) -> Env:
        """`gymnasium.make` without its run-time checker, which costs more than a step."""
        made: Env = gymnasium.make(
            self.name,
            max_episode_steps=self._max_episode_steps,
            disable_env_checker=True,
            **self._kwargs,
        )
        return made


class GymnasiumFamily(Family):
    """One environment by its id (`CartPole-v1`, or `module:Id` to import a module first).

    `max_episode_steps` truncates episodes (None: what the id says). `instance` says whether every
    episode of a segment replays one seed (`fixed`) or draws its own (`resampled`). Without a
    `reference` regret is not measured. Raises ValueError for an unknown id, with the nearest
    registered one, and for spaces that no channel can carry.
    """

    def __init__(
        self,
        id: str,
        kwargs: Mapping[str, Any] | None = None,
        max_episode_steps: int | None = None,
        unit: Unit = "return",
        instance: InstanceRule = "resampled",
        reference: Reference | None = None,
        missions: Missions = "ignored",
    ) -> None:
        if unit not in ("return", "rate"):
            raise ValueError(f"unit: expected 'return' or 'rate', got {unit!r}")
        if instance not in ("fixed", "resampled"):
            raise ValueError(f"instance: expected 'fixed' or 'resampled', got {instance!r}")
        if max_episode_steps is not None and max_episode_steps < 1:
            raise ValueError(f"max_episode_steps: expected at least 1, got {max_episode_steps}")
        self.name = id
        self._task = GymnasiumTask(id, kwargs or {}, max_episode_steps, unit, instance, reference)
        try:
            env = self._task.make_env()
        except (gymnasium.error.Error, ImportError) as error:
            raise ValueError(f"id: {error}") from error
        except Exception as error:
            raise ValueError(
                f"id: {id} cannot be made with kwargs {dict(kwargs or {})} "
                f"({type(error).__name__}: {error})"
            ) from error
        self._interface = interface_of(env, missions)
        env.close()

    @property
    def interface(self) -> Interface:
        """What the environment shows, read from its spaces."""
        return self._interface

    def draw(self, rng: np.random.Generator) -> Task:
        """The environment itself: its instances differ by seed alone."""
        del rng
        return self._task
