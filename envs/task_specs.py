"""Tasks as a user writes them: an id, or an id with everything about it that shall be different.

    CartPole-v1
    {id: CartPole-v1, attributes: {gravity: {uniform: [8, 12]}}, length: 5, reference: {...}}

and a stream of such tasks in one call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from typing import Any, Literal

import gymnasium
import numpy as np

from .choices import check_choice
from .faults import OnError
from .gymnasium_family import GymnasiumFamily
from .interface import Interface
from .lengths import RandomCount, RandomLength
from .making import MINIGRID, Changes, source_name
from .plugins import plugins
from .reference_files import reference_of
from .schedule import Independent, NeverRepeating, Recurring, Schedule
from .simulator import Simulator
from .stream import Announcement, Backend, Stream
from .task import Family, Length, Task
from .workers import Workers

Order = Literal["never_repeating", "recurring", "independent"]
ORDERS: dict[Order, Callable[[Sequence[Family], Sequence[float] | None], Schedule]] = {
    "never_repeating": NeverRepeating,
    "recurring": lambda families, weights: Recurring(families, weights=weights),
    "independent": lambda families, weights: Independent(families, weights=weights),
}
PLAYED_BY_MINIGRID = {"id", "kwargs", "instance", "missions", "name", "length", "weight"}
"""With any other key a MiniGrid id is played as any environment is, without the planner."""

EARNING = ("kwargs", "attributes", "wrappers", "max_episode_steps", "unit")


@dataclass(frozen=True)
class TaskSpec:
    """One entry of a list of tasks.

    `id` is a registered id, `module:Id`, `module:function` or the name of a plug-in. `kwargs`,
    `attributes` and `wrappers` are explained at `making.Changes`; `length` is a number of episodes
    or `{amount: 500, unit: steps}`; `reference` holds `floor` and `ceiling` (and their errors), or
    is a file of `sojourn reference`; `weight` is how often the task is drawn, relative to the
    others.
    """

    id: Any
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    wrappers: Sequence[Any] = ()
    max_episode_steps: int | None = None
    unit: Any = "return"
    instance: Any = None
    missions: Any = None
    reference: Mapping[str, Any] | str | None = None
    length: Any = None
    weight: float | None = None
    name: str | None = None


TASK_KEYS = tuple(key.name for key in fields(TaskSpec))
"""The keys of a task given as a mapping."""


def task_stream(
    tasks: Sequence[Any] | str,
    seed: int,
    order: Order = "never_repeating",
    length: Length | RandomLength | None = None,
    lifetime_segments: int | RandomCount | None = None,
    announce: Announcement = "hidden",
    backend: Backend = "auto",
    on_error: OnError = "raise",
    workers: int | Workers = 0,
) -> Stream:
    """A stream of the listed tasks: ids, mappings of `TaskSpec`, factories or families.

    `order` is `never_repeating` (in turn, a new instance in every segment), `recurring` (in turn,
    the same instances again) or `independent` (at random). A segment lasts five episodes unless
    `length` or the task says otherwise. Raises ValueError, with the number of the task, for one
    that cannot be played.
    """
    if isinstance(tasks, str):
        tasks = [tasks]
    if not isinstance(tasks, Sequence) or not tasks:
        raise ValueError(f"tasks: expected a list such as [CartPole-v1], got {tasks!r}")
    check_choice("order", order, Order)
    families, weights = [], []
    for number, task in enumerate(tasks):
        try:
            spec = spec_of(task)
            families.append(family_of(spec))
        except (TypeError, ValueError) as error:
            raise ValueError(f"tasks.{number}: {error}") from error
        weights.append(spec.weight)
    shares = None
    if any(weight is not None for weight in weights):
        shares = [1.0 if weight is None else weight for weight in weights]
    schedule = ORDERS[order](families, shares)
    return Stream(
        schedule, length or Length(5), seed, lifetime_segments, announce, backend, on_error, workers
    )


def spec_of(task: Any) -> TaskSpec:
    """The spec of what a user wrote; raises ValueError for an unknown key, naming the nearest."""
    if isinstance(task, TaskSpec):
        return task
    if not isinstance(task, Mapping):
        return TaskSpec(task)
    given = {str(key): _plain(value) for key, value in task.items()}
    for key in given:
        if key not in TASK_KEYS:
            near = get_close_matches(key, TASK_KEYS, n=1, cutoff=0.0)[0]
            raise ValueError(f"no such key {key!r}; nearest is {near!r}")
    if "id" not in given:
        raise ValueError(f"expected the key 'id', got {sorted(given)}")
    for key in ("kwargs", "attributes"):
        if not isinstance(given.get(key, {}), Mapping):
            raise ValueError(f"{key}: expected {{name: value}}, got {given[key]!r}")
    return TaskSpec(**given)


def reference_task(spec: TaskSpec) -> dict[str, Any]:
    """What a reference belongs to: the id and all that changes how much can be earned."""
    changed = _changed(spec)
    return {
        "id": source_name(spec.id),
        **{key: getattr(spec, key) for key in EARNING if key in changed},
    }


def family_of(spec: TaskSpec) -> Family:
    """The family of a spec; raises ValueError for one that cannot be played."""
    family = _family(spec)
    if spec.length is None and spec.name is None:
        return family
    return Relabelled(family, _length(spec.length), spec.name)


class Relabelled(Family):
    """A family whose tasks have a length of segment and a name of their own."""

    def __init__(self, family: Family, length: Length | None, name: str | None) -> None:
        self.name = name or family.name
        self._family, self._length, self._name = family, length, name

    @property
    def interface(self) -> Interface:
        """That of the family."""
        return self._family.interface

    def draw(self, rng: np.random.Generator) -> Task:
        """A task of the family, relabelled."""
        task = copy(self._family.draw(rng))
        task.name = self._name or task.name
        task.length = self._length or task.length
        return task

    def simulator_type(self) -> type[Simulator] | None:
        """That of the family."""
        return self._family.simulator_type()


def _family(spec: TaskSpec) -> Family:
    if isinstance(spec.id, Family):
        return spec.id
    if isinstance(spec.id, str) and spec.id in (installed := plugins()):
        made = installed[spec.id].load()
        if not (isinstance(made, type) and issubclass(made, gymnasium.Env)):
            family = made(**spec.kwargs)
            if isinstance(family, Family):
                return family
        return _gymnasium_family(spec, made)
    if not (isinstance(spec.id, str) or callable(spec.id)):
        raise ValueError(f"expected an id, a factory or a mapping with 'id', got {spec.id!r}")
    if isinstance(spec.id, str) and spec.id.startswith(MINIGRID):
        from .minigrid import MinigridFamily  # imported where asked for: it takes a second

        if _changed(spec) <= PLAYED_BY_MINIGRID and not _draws(spec):
            choices = {"instance": spec.instance, "missions": spec.missions}
            chosen = {name: value for name, value in choices.items() if value is not None}
            return MinigridFamily(spec.id, spec.kwargs, **chosen)
    return _gymnasium_family(spec, spec.id)


def _gymnasium_family(spec: TaskSpec, source: Any) -> GymnasiumFamily:
    reference = reference_of(spec.reference, reference_task(spec))
    return GymnasiumFamily(
        source,
        spec.kwargs,
        spec.max_episode_steps,
        spec.unit,
        spec.instance or "resampled",
        reference,
        spec.missions or "ignored",
        Changes(spec.wrappers, spec.attributes),
    )


def _changed(spec: TaskSpec) -> set[str]:
    """The keys that are not at their default."""
    changed = set()
    for key in fields(TaskSpec):
        default = key.default_factory() if key.default_factory is not MISSING else key.default
        if getattr(spec, key.name) != default:
            changed.add(key.name)
    return changed


def _draws(spec: TaskSpec) -> bool:
    return any(isinstance(value, Mapping) for value in spec.kwargs.values())


def _length(length: Any) -> Length | None:
    if length is None or isinstance(length, Length):
        return length
    try:
        return Length(**length) if isinstance(length, Mapping) else Length(int(length))
    except TypeError as error:
        raise ValueError(f"length: {error}") from error


def _plain(value: Any) -> Any:
    """Dictionaries and lists in place of what a configuration library makes of them."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    return value
