"""BabyAI missions are planned by their verifiers' rules: blind searches find nothing shorter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pytest
from minigrid.core.world_object import Door
from minigrid.envs.babyai.core.roomgrid_level import RoomGridLevel
from minigrid.envs.babyai.core.verifier import (
    ActionInstr,
    AfterInstr,
    AndInstr,
    BeforeInstr,
    GoToInstr,
    ObjDesc,
    OpenInstr,
    PickupInstr,
    PutNextInstr,
)

from sojourn.envs.minigrid import optimal_steps, plan

from .blind_search import fewest_steps

Make = Callable[..., Any]

SOLVED = [
    *("ActionObjDoor", "FindObjS5", "GoToDoor", "GoToLocalS5N2", "GoToObjMazeS4", "GoToOpen"),
    *("GoToRedBallGrey", "KeyInBox", "OneRoomS8", "OpenDoor", "OpenDoorDebug", "OpenDoorLoc"),
    *("OpenDoorsOrderN2", "OpenRedBlueDoorsDebug", "OpenTwoDoors", "PickupAbove"),
    *("PickupDistDebug", "PickupLoc", "PutNextLocalS5N3", "PutNextS4N1", "PutNextS5N2Carrying"),
    *("SynthS5R2", "UnlockLocalDist"),
    *[
        pytest.param(name, marks=pytest.mark.slow)
        for name in (
            *("BlockedUnlockPickup", "GoToImpUnlock", "KeyCorridorS4R3", "MoveTwoAcrossS5N2"),
            *("UnblockPickup", "UnlockToUnlock"),
        )
    ],
]
COLOURS = ("red", "blue")
KINDS = ("ball", "key", "box")


class SmallMission(RoomGridLevel):  # type: ignore[misc]
    """Two rooms of four cells with a door, two things and a random instruction."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        super().__init__(room_size=4, num_rows=1, num_cols=2, max_steps=30)

    def gen_mission(self) -> None:
        rng = self.rng
        door, _ = self.add_door(0, 0, 0, color="red", locked=bool(rng.integers(2)))
        if rng.integers(3) == 0:
            door.is_locked, door.is_open = False, True
        for _ in range(2):
            self.add_object(
                int(rng.integers(2)), 0, str(rng.choice(KINDS)), str(rng.choice(COLOURS))
            )
        self.place_agent(int(rng.integers(2)), 0)
        self.instrs = self.instruction(depth=int(rng.integers(3)))

    def instruction(self, depth: int) -> Any:
        if depth == 0:
            return self.clause()
        if depth == 1:
            return AndInstr(self.clause(), self.clause())
        join = BeforeInstr if self.rng.integers(2) else AfterInstr
        return join(self.instruction(int(self.rng.integers(2))), self.clause())

    def clause(self) -> Any:
        things = [cell for cell in self.grid.grid if cell is not None and cell.type in KINDS]
        one, other = (things[i] for i in self.rng.permutation(len(things))[:2])
        meant, beside = ObjDesc(one.type, one.color), ObjDesc(other.type, other.color)
        is_strict = bool(self.rng.integers(4) == 0)
        clauses: list[Callable[[], Any]] = [
            lambda: GoToInstr(meant),
            lambda: GoToInstr(ObjDesc("door", "red")),
            lambda: OpenInstr(ObjDesc("door", "red"), strict=is_strict),
            lambda: PickupInstr(meant, strict=is_strict),
            lambda: PutNextInstr(meant, beside),
            lambda: PutNextInstr(meant, ObjDesc("door", "red")),
        ]
        return clauses[self.rng.integers(len(clauses))]()


def small_mission(seed: int) -> Any:
    env = SmallMission(seed)
    with redirect_stdout(None):
        env.reset(seed=seed)
    return env


def memories(instruction: Any) -> Iterator[tuple[Any, str]]:
    """Everything that the verifier of an instruction changes, as (object, attribute)."""
    if isinstance(instruction, ActionInstr):
        descriptions = [v for v in vars(instruction).values() if isinstance(v, ObjDesc)]
        yield from ((description, "obj_poss") for description in descriptions)
        if hasattr(instruction, "preCarrying"):
            yield instruction, "preCarrying"
        return
    for name in ("a", "b"):
        yield instruction, f"{name}_done"
        yield from memories(getattr(instruction, f"instr_{name}"))


def blind_search(env: Any) -> int | None:
    """Fewest actions to a reward in a game whose state is also what its verifiers remember."""
    door = next(cell for cell in env.grid.grid if isinstance(cell, Door))
    things = [cell for cell in env.grid.grid if cell is not None and cell.type in KINDS]
    kept = [*memories(env.instrs), (env, "agent_dir"), (env, "carrying")]
    kept += [(door, "is_open"), (door, "is_locked"), *((thing, "cur_pos") for thing in things)]

    def save() -> tuple[Any, ...]:
        values = [getattr(owner, name) for owner, name in kept]
        plain = [tuple(v) if isinstance(v, list | np.ndarray) else v for v in values]
        return (tuple(map(int, env.agent_pos)), tuple(env.grid.grid), *plain)

    def load(place: tuple[int, int], cells: Any, *values: Any) -> None:
        env.agent_pos, env.grid.grid = place, list(cells)
        for (owner, name), value in zip(kept, values, strict=True):
            setattr(owner, name, value)

    return fewest_steps(env, range(7), save, load)


@pytest.mark.parametrize(
    "seeds", [range(8), pytest.param(range(8, 300), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_agrees_with_blind_search_of_the_real_game(seeds: range) -> None:
    for seed in seeds:
        env = small_mission(seed)
        found = optimal_steps(env)
        assert found == blind_search(env), (seed, env.mission)


@pytest.mark.parametrize("name", SOLVED)
def test_plans_of_missions_earn_what_they_promise(name: str, original: Make) -> None:
    env = original(f"BabyAI-{name}-v0")
    for seed in range(2):
        with redirect_stdout(None):
            env.reset(seed=seed)
        found = plan(env)
        assert found is not None and found.actions is not None and found.is_exact
        middle = len(found.actions) // 2
        for number, action in enumerate(found.actions, start=1):
            if number == middle + 1:
                assert optimal_steps(env) == len(found.actions) - middle
            _, reward, terminated, _, _ = env.step(action)
            assert terminated == (number == len(found.actions))
        assert reward == found.return_bounds[0]


def test_few_actions_are_enough_to_be_there(original: Make) -> None:
    """Who faces the thing from the start succeeds by any action that changes nothing."""
    env = original("BabyAI-GoToLocalS5N2-v0")
    with redirect_stdout(None):
        env.reset(seed=2)
    assert optimal_steps(env, range(7)) == optimal_steps(env, range(3)) == 1
    _, reward, terminated, _, _ = env.step(2)
    assert terminated and reward > 0
