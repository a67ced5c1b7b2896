"""Any Gymnasium environment as a task, with the references its user declares."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from .adapter import Missions, interface_of
from .choices import check_choice
from .draws import check_draws, drawn, extremes
from .interface import Interface
from .making import Changes, Source, frozen, make_env, set_attributes, source_name, wrapped
from .task import Env, Family, InstanceRule, Reference, Task, Unit


class GymnasiumTask(Task):
    """One environment with its arguments; hidden are its attributes and what its seed draws."""

    def __init__(
        self,
        source: Source,
        kwargs: Mapping[str, Any],
        max_episode_steps: int | None,
        changes: Changes,
    ) -> None:
        self.name = source_name(source)
        self._source = source
        self._kwargs = dict(kwargs)
        self._max_episode_steps = max_episode_steps
        self._changes = changes

    @property
    def env_key(self) -> Hashable:
        """Everything that makes the environment, and which attributes a task sets."""
        changes = self._changes
        made = (self._kwargs, list(changes.wrappers), sorted(changes.attributes))
        return (self._source, self._max_episode_steps, frozen(made))

    def make_env(self) -> Env:
        """A new environment inside its wrappers."""
        made = make_env(self._source, self._kwargs, self._max_episode_steps)
        return wrapped(made, self._changes.wrappers)

    def configure(self, env: Env) -> None:
        """Set the attributes of this task."""
        set_attributes(env, self._changes.attributes)


class GymnasiumFamily(Family):
    """One environment by its id or factory (see `making`), tasks differing in what is drawn.

    `kwargs` go to the environment, `max_episode_steps` truncates episodes (None: what the id says),
    `changes` wraps it and sets its attributes. `instance` says whether every episode of a segment
    replays one seed (`fixed`) or draws its own (`resampled`). Without a `reference` regret is not
    measured. Raises ValueError for an unknown id, with the nearest registered one, and for spaces
    that no channel or action can carry.
    """

    def __init__(
        self,
        id: Source,
        kwargs: Mapping[str, Any] | None = None,
        max_episode_steps: int | None = None,
        unit: Unit = "return",
        instance: InstanceRule = "resampled",
        reference: Reference | None = None,
        missions: Missions = "ignored",
        changes: Changes | None = None,
    ) -> None:
        check_choice("unit", unit, Unit)
        check_choice("instance", instance, InstanceRule)
        if max_episode_steps is not None and max_episode_steps < 1:
            raise ValueError(f"max_episode_steps: expected at least 1, got {max_episode_steps}")
        self.name = source_name(id)
        self._source, self._kwargs = id, dict(kwargs or {})
        self._max_episode_steps = max_episode_steps
        self._changes = changes or Changes()
        self._unit, self._instance, self._reference = unit, instance, reference
        check_draws(self._kwargs, "kwargs")
        check_draws(self._changes.attributes, "attributes")
        self._interface = reduce(Interface.union, self._interfaces(missions))

    @property
    def interface(self) -> Interface:
        """What the environment shows, read from its spaces over all that can be drawn."""
        return self._interface

    def draw(self, rng: np.random.Generator) -> Task:
        """The environment with its parameters drawn."""
        kwargs = drawn(self._kwargs, rng)
        return self._task(kwargs, drawn(self._changes.attributes, rng))

    def _task(self, kwargs: Mapping[str, Any], attributes: Mapping[str, Any]) -> Task:
        changes = Changes(self._changes.wrappers, attributes)
        task = GymnasiumTask(self._source, kwargs, self._max_episode_steps, changes)
        task.unit, task.instance, task.reference = self._unit, self._instance, self._reference
        return task

    def _interfaces(self, missions: Missions) -> list[Interface]:
        """The interfaces at the ends of all draws; makes every environment once to see it work."""
        found = []
        attributes = next(extremes(self._changes.attributes))
        for kwargs in extremes(self._kwargs):
            task = self._task(kwargs, attributes)
            env = task.make_env()
            try:
                task.configure(env)
                found.append(interface_of(env, missions))
            finally:
                env.close()
        return found
