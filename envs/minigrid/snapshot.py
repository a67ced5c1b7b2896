"""Restart a MiniGrid episode from a snapshot of its layout instead of generating the layout again.

Source: the `reset` of `minigrid.minigrid_env.MiniGridEnv` and `gymnasium.Env`, whose result is
reproduced exactly.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import gymnasium
from minigrid.minigrid_env import MiniGridEnv

from ..task import Env
from .memento import Memento, Unrestorable

STEPPED = frozenset(
    {"grid", "agent_pos", "agent_dir", "carrying", "step_count", "mission", "_np_random"}
)
"""Attributes of an environment that an episode binds anew."""


class SnapshotReset(gymnasium.Wrapper[Any, Any, Any, Any]):
    """`reset(seed=s)` restores the layout that the last `reset(seed=s)` generated.

    Nothing but speed tells the two apart: observations, rewards, flags and random draws are those
    of a true reset. The layout is generated anew where the seed differs, options are given or the
    screen shows the episode, where an attribute was rebound that no MiniGrid episode rebinds (a
    setting changed from outside, an environment of one's own), and where something was reached that
    cannot be put back. `layout_seed` is the seed of the present layout, None where it came from an
    unseeded reset. Raises ValueError around anything but a bare MiniGrid environment: wrappers may
    hold state of their own, so they belong outside.
    """

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        if not isinstance(env, MiniGridEnv):
            raise ValueError(f"SnapshotReset: expected a bare MiniGrid environment, got {env}")
        self.layout_seed: int | None = None
        self._snapshot: _Snapshot | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode, from the snapshot where there is one of this seed."""
        snapshot = self._snapshot
        if snapshot is not None and options is None and seed == self.layout_seed:
            first = snapshot.restore()
            if first is not None:
                return first
        self._snapshot = None
        self.layout_seed = seed if options is None else None
        observation, info = self.env.reset(seed=seed, options=options)
        if seed is not None and options is None:
            self._snapshot = _take(self.env, observation, info)
        return observation, info


class _Snapshot:
    """The state of a freshly reset environment and what its reset returned."""

    def __init__(self, env: Any, observation: Any, info: dict[str, Any]) -> None:
        self._env = env
        self._attributes = dict(vars(env))
        self._memento = Memento(self._attributes.values(), owner=env)
        self._first = deepcopy((observation, info))

    def restore(self) -> tuple[Any, dict[str, Any]] | None:
        """Put the environment back; what its reset returned, None where that would not be exact."""
        present, before = vars(self._env), self._attributes
        if present.keys() != before.keys():
            return None
        if any(value is not before[name] for name, value in present.items() if name not in STEPPED):
            return None
        present.update(before)
        self._memento.restore()
        observation, info = deepcopy(self._first)
        return observation, info


def _take(env: Any, observation: Any, info: dict[str, Any]) -> _Snapshot | None:
    if env.render_mode == "human":
        return None
    try:
        return _Snapshot(env, observation, info)
    except Unrestorable:
        return None
