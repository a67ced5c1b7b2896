"""Workers with a fresh interpreter import what tasks name; what they cannot import is named."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv

from sojourn.envs import Crowd, Workers, task_stream

CODE = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv

class Foo(CartPoleEnv):
    pass

gymnasium.register("Foo-v0", Foo, max_episode_steps=9)
"""


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("start", ["spawn", pytest.param("forkserver", marks=pytest.mark.slow)])
def test_modules_that_tasks_name_are_imported_in_every_worker(
    start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "worker_envs.py").write_text(CODE)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    tasks = ["worker_envs:Foo-v0", "worker_envs:Foo"]
    spread = Crowd(task_stream(tasks, 0, workers=Workers(1, start)), 2)
    alone = Crowd(task_stream(tasks, 0), 2)
    try:
        for _ in range(12):
            one, two = (crowd.step(np.ones(2, np.int64)) for crowd in (spread, alone))
            np.testing.assert_array_equal(one.observation["vector"], two.observation["vector"])
    finally:
        spread.close()
        del gymnasium.registry["Foo-v0"], sys.modules["worker_envs"]


def test_a_module_that_a_worker_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    ghost: Any = ModuleType("ghost_envs")  # known to this process alone
    ghost.Foo = type("Foo", (CartPoleEnv,), {"__module__": "ghost_envs"})
    monkeypatch.setitem(sys.modules, "ghost_envs", ghost)
    with pytest.raises(Exception, match="ghost_envs") as told:
        Crowd(task_stream(["ghost_envs:Foo"], 0, workers=1), 1)
    assert len(str(told.value).splitlines()) == 1, told.value
    told.value.__traceback__ = None  # it holds the half-made crowd, whose end ends its workers
    del told
