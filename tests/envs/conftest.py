"""Every stream there is, for laws that hold for all of them.

Each family goes with each schedule, and every file of configs/stream is tested by existing. A test
that asks for `build` runs once per stream; `live` plays random legal actions.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from sojourn.envs import (
    Autoencode,
    BernoulliBandit,
    Blurry,
    CartPole,
    Crowd,
    CrowdStep,
    Curriculum,
    DarkRoom,
    Drifting,
    DriftingBandit,
    Family,
    GymnasiumFamily,
    Independent,
    KeyDoor,
    Length,
    MovingBandit,
    Nested,
    NeverRepeating,
    RandomCount,
    RandomLength,
    Recurring,
    RepeatFirst,
    RepeatPrevious,
    Schedule,
    Shuffled,
    Stream,
    TabularMDP,
    TMaze,
    random_actions,
)

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = sorted((ROOT / "configs" / "stream").glob("*.yaml"))


def short_cart_pole() -> Family:
    """Gymnasium's own, cut so early that random play reaches most of what there is."""
    reference = CartPole(15).reference
    return GymnasiumFamily("CartPole-v1", max_episode_steps=15, reference=reference)


FAMILIES: dict[str, Callable[[], list[Family]]] = {
    "bandit": lambda: [BernoulliBandit(3, 7)],
    "bandits": lambda: [BernoulliBandit(2, 5), MovingBandit(4, 12)],
    "finite": lambda: [DarkRoom(3, 5), KeyDoor(5, 12), TMaze(3, 8), TabularMDP(4, 3, 5)],
    "recall": lambda: [RepeatPrevious(1, 3), RepeatFirst(), Autoencode()],
    "cart_pole": lambda: [
        CartPole(20, offset_spread=2.0),
        CartPole(60, {"gravity": [5, 20], "pole_mass": 0.2}, shows="positions", name="masked"),
    ],
    "cartpole": lambda: [short_cart_pole()],
    "mixed": lambda: [short_cart_pole(), BernoulliBandit(3, 7)],
}
SCHEDULES: dict[str, Callable[[list[Family]], Schedule]] = {
    "recurring": lambda families: Recurring(families, num_tasks=3),
    "independent": lambda families: Independent(families, num_tasks=3),
    "never_repeating": lambda families: NeverRepeating(families),
    "mixed": lambda families: Nested(
        [
            Curriculum(families, [2] * len(families)),
            Blurry(families, stay=2, width=2),
            Shuffled(families),
            Drifting(DriftingBandit(2, 4, period=9.0)),
        ],
        stay=2,
    ),
}
LENGTHS = {
    "recurring": Length(2),
    "independent": Length(11, "steps"),
    "never_repeating": Length(1),
    "mixed": RandomLength(1, 3, "episodes"),
}

Build = Callable[..., Stream]


def composed(families: str, schedule: str) -> Build:
    def build(seed: int, **options: Any) -> Stream:
        options = {"lifetime_segments": RandomCount(4, 9)} | options
        order = SCHEDULES[schedule](FAMILIES[families]())
        return Stream(order, LENGTHS[schedule], seed, **options)

    return build


def shipped(path: Path) -> Build:
    def build(seed: int, **options: Any) -> Stream:
        stream = instantiate(OmegaConf.load(path), seed=seed, **options)
        assert isinstance(stream, Stream)
        return stream

    return build


STREAMS = {f"{f}-{s}": composed(f, s) for f in FAMILIES for s in SCHEDULES}
STREAMS |= {path.stem: shipped(path) for path in SHIPPED}
# Floors and ceilings of many large grids are measured first.
SLOW = {"continual_dreamer", "m21_condensed", "m21_dispersed", "memory_ladder"}
PARAMS = [
    pytest.param(build, id=name, marks=[pytest.mark.slow] if name in SLOW else [])
    for name, build in STREAMS.items()
]


@pytest.fixture(params=PARAMS)
def build(request: pytest.FixtureRequest) -> Build:
    """Makes the stream under test: `build(seed=0, announce="hidden")`."""
    made: Build = request.param
    return made


def play_at_random(
    crowd: Crowd, num_steps: int, seed: int = 0
) -> list[tuple[np.ndarray, CrowdStep]]:
    rng = np.random.default_rng(seed)
    lived = []
    for _ in range(num_steps):
        actions = random_actions(crowd.interface, crowd.observation["action_mask"], rng)
        lived.append((actions, crowd.step(actions)))
    return lived


@pytest.fixture(scope="session")
def live() -> Callable[..., list[tuple[np.ndarray, CrowdStep]]]:
    """`live(crowd, num_steps, seed=0)` gives the actions and the outcome of every step."""
    return play_at_random


@pytest.fixture(scope="session")
def shipped_streams() -> list[Path]:
    """The YAML files of all streams."""
    return SHIPPED


@pytest.fixture
def no_child_is_left() -> Iterator[None]:
    """Every process that a test began has ended with it."""
    yield
    assert multiprocessing.active_children() == []
