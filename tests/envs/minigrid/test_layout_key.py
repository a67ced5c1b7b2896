"""What is remembered of a layout is what the planner would find in it now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hydra.utils import instantiate
from minigrid.core.world_object import Box, Key
from minigrid.envs.babyai.core.roomgrid_level import RoomGridLevel
from minigrid.envs.dynamicobstacles import DynamicObstaclesEnv

from sojourn.envs import MinigridFamily
from sojourn.envs.minigrid import reference
from sojourn.envs.minigrid.informed import informed_ceiling
from sojourn.envs.minigrid.layout_key import NAMED, layout_key
from sojourn.envs.minigrid.planner import optimal_return
from sojourn.envs.minigrid.planner_families import GOALS
from sojourn.envs.minigrid.recipe import Recipe, make_bare
from sojourn.envs.minigrid.rule_room import RuleRoom
from sojourn.envs.minigrid.wrappers import PermutedActions

STREAMS = Path(__file__).resolve().parents[3] / "configs" / "stream"


def nodes(content: Any) -> Iterator[dict[str, Any]]:
    """Every family of MiniGrid tasks in a stream's file."""
    parts = content if isinstance(content, list) else ()
    if isinstance(content, dict):
        parts = list(content.values())
        if str(content.get("_target_")).endswith(".MinigridFamily"):
            yield content
    for part in parts:
        yield from nodes(part)


def shipped_recipes() -> list[Recipe]:
    files = [yaml.safe_load(path.read_text()) for path in sorted(STREAMS.glob("*.yaml"))]
    families: list[MinigridFamily] = [instantiate(n) for file in files for n in nodes(file)]
    return list(dict.fromkeys(replace(family.recipe, replayed=False) for family in families))


RECIPES = shipped_recipes()


def all_returns(env: Any, recipe: Recipe) -> list[list[float]]:
    """Optimum and informed ceilings, as they are remembered and as they are found now."""
    best = optimal_return(env, range(recipe.num_actions))
    told = [reference.instance_informed(env, recipe, episode) for episode in (0, 1)]
    found = [informed_ceiling(env, recipe, episode).value for episode in (0, 1)]
    return [[reference.instance_optimum(env, recipe), *told], [best, *found]]


def assert_remembered_is_fresh(recipe: Recipe, num_layouts: int) -> None:
    env, rng = recipe.make(), np.random.default_rng(0)
    env.reset(seed=int(rng.integers(2**31)))
    for _ in range(num_layouts):
        if isinstance(env, PermutedActions):
            env.permutation = tuple(rng.permutation(recipe.num_actions).tolist())
        env.reset()
        remembered, fresh = all_returns(env, recipe)
        np.testing.assert_array_equal(remembered, fresh)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: f"{recipe.id}-{recipe.num_actions}")
def test_what_is_remembered_is_what_is_found(recipe: Recipe) -> None:
    assert_remembered_is_fresh(recipe, 8)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: f"{recipe.id}-{recipe.num_actions}")
def test_what_is_remembered_is_what_is_found_in_many_layouts(recipe: Recipe) -> None:
    assert_remembered_is_fresh(recipe, 200)


def test_every_rule_has_keys_but_three() -> None:
    assert set(GOALS) - set(NAMED) == {RoomGridLevel.step, RuleRoom.step, DynamicObstaclesEnv.step}
    assert set(NAMED) <= set(GOALS)


def test_corridors_that_come_back_are_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cue and the side that is right make four layouts."""
    planned: list[Any] = []

    def counted(env: Any, *rest: Any) -> float:
        planned.append(env)
        return optimal_return(env, *rest)

    monkeypatch.setattr(reference, "optimal_return", counted)
    family = MinigridFamily("Sojourn-Memory-v0", {"size": 9, "max_steps": 77}, num_actions=3)
    env = family.recipe.make()
    for seed in range(40):
        env.reset(seed=seed)
        reference.instance_optimum(env, family.recipe)
    assert len(planned) == 4


def door_key() -> Any:
    base: Any = make_bare("MiniGrid-DoorKey-6x6-v0", {})
    base.reset(seed=0)
    return base


def thing(base: Any, kind: str) -> Any:
    return next(cell for cell in base.grid.grid if cell is not None and cell.type == kind)


def put_in_a_box(base: Any) -> None:
    place = base.grid.grid.index(thing(base, "key"))
    base.grid.grid[place] = Box("red", contains=Key("blue"))


CHANGES: dict[str, Any] = {
    "pose": lambda base: setattr(base, "agent_dir", (base.agent_dir + 1) % 4),
    "clock": lambda base: setattr(base, "step_count", 1),
    "limit": lambda base: setattr(base, "max_steps", 17),
    "view": lambda base: setattr(base, "agent_view_size", 5),
    "hand": lambda base: setattr(base, "carrying", Key("blue")),
    "colour": lambda base: setattr(thing(base, "key"), "color", "grey"),
    "door": lambda base: setattr(thing(base, "door"), "is_locked", False),
    "box": put_in_a_box,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_key_tells_everything_apart(change: str) -> None:
    base = door_key()
    before = layout_key(base)
    assert before is not None and before == layout_key(door_key())
    CHANGES[change](base)
    assert layout_key(base) not in (None, before)


def test_what_a_box_holds_is_told() -> None:
    bases = [door_key() for _ in range(3)]
    for base, content in zip(bases, (None, Key("blue"), Key("red")), strict=True):
        base.grid.grid[base.grid.grid.index(thing(base, "key"))] = Box("red", contains=content)
    assert len({layout_key(base) for base in bases}) == 3


def test_rules_of_ones_own_have_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    base = door_key()
    monkeypatch.setattr(base, "_reward", lambda: 1.0)
    assert layout_key(base) is None
