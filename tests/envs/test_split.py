"""Laws of held-out tasks: the sides are apart under every seed, and together they are all."""

import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from sojourn.envs import (
    BernoulliBandit,
    CartPole,
    Crowd,
    DarkRoom,
    Drifting,
    Family,
    GymnasiumFamily,
    KeyDoor,
    Length,
    MinigridFamily,
    NeverRepeating,
    Split,
    Stream,
    TabularMDP,
    random_actions,
    task_key,
)

FAMILIES: dict[str, Callable[[], Family]] = {
    "bandit": lambda: BernoulliBandit(3, 7),
    "dark_room": lambda: DarkRoom(5, 8),
    "key_door": lambda: KeyDoor(5, 12),
    "tabular": lambda: TabularMDP(4, 3, 5),
    "cart_pole": lambda: CartPole(12, {"gravity": [5, 20]}),
    "gymnasium": lambda: GymnasiumFamily(
        "MountainCar-v0", kwargs={"goal_velocity": {"uniform": [0, 1]}}
    ),
    "rules": lambda: MinigridFamily(
        "MiniGrid-Empty-Random-5x5-v0", {"max_steps": 9}, "permuted", num_actions=3
    ),
}


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Family:
    return FAMILIES[str(request.param)]()


def keys(family: Family, seed: int, count: int = 60) -> set[bytes]:
    rng = np.random.default_rng(seed)
    return {task_key(family.draw(rng)) for _ in range(count)}


def test_no_task_is_on_both_sides(family: Family) -> None:
    train, held_out = Split(family, "train", 0.4), Split(family, "held_out", 0.4)
    for seed in range(3):
        assert not keys(train, seed) & keys(held_out, 10 + seed)


def test_equal_tasks_have_equal_keys_and_others_do_not(family: Family) -> None:
    first, again, other = (family.draw(np.random.default_rng(s)) for s in (0, 0, 1))
    assert task_key(first) == task_key(again) != task_key(other)
    assert task_key(first, salt=1) != task_key(first)


def test_working_something_out_does_not_move_a_task() -> None:
    task = DarkRoom(5, 8).draw(np.random.default_rng(0))
    before = task_key(task)
    assert task.action_values.shape[0] == 8  # kept once it is known
    assert task_key(task) == before


def test_the_sides_are_as_large_as_declared() -> None:
    bandit = BernoulliBandit(3, 7)
    split = Split(bandit, "held_out", 0.25)
    rng = np.random.default_rng(0)
    held = [split.part_of(bandit.draw(rng)) == "held_out" for _ in range(4000)]
    assert abs(np.mean(held) - 0.25) < 0.03


def test_the_six_rules_are_parted() -> None:
    rules = FAMILIES["rules"]()
    sides = [keys(Split(rules, part, 0.35), 0) for part in ("train", "held_out")]  # type: ignore[arg-type]
    assert all(sides) and len(sides[0] | sides[1]) == 6


def test_the_key_of_a_task_is_the_same_in_every_process() -> None:
    code = (
        "import numpy as np; from sojourn.envs import KeyDoor, task_key; "
        "print(task_key(KeyDoor(5, 12).draw(np.random.default_rng(5))).hex())"
    )
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    )
    assert found.stdout.strip() == task_key(KeyDoor(5, 12).draw(np.random.default_rng(5))).hex()


@pytest.mark.parametrize("name", ["dark_room", "gymnasium"])
def test_a_part_is_lived_like_any_family(name: str) -> None:
    stream = Stream(NeverRepeating([Split(FAMILIES[name](), "held_out", 0.5)]), Length(1), seed=1)
    crowd, rng = Crowd(stream, 2), np.random.default_rng(0)
    for _ in range(20):
        crowd.step(random_actions(crowd.interface, crowd.observation["action_mask"], rng))
    assert crowd.stream.schedule.families[0].name == FAMILIES[name]().name
    crowd.close()


def test_bad_splits_are_refused() -> None:
    bandit = BernoulliBandit(2, 4)
    with pytest.raises(ValueError, match="part: expected one of train, held_out, got 'test'"):
        Split(bandit, "test")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"share: expected a number between 0 and 1, got 1\.5"):
        Split(bandit, "train", 1.5)
    with pytest.raises(ValueError, match="expected a DriftingFamily"):
        Drifting(Split(CartPole(9, {"gravity": [5, 20]}), "train"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no task for held_out among 1000"):
        Split(DarkRoom(3, 4), "held_out", 1e-6).draw(np.random.default_rng(0))
