"""Every stream there is, for laws that hold for all of them.

Each family goes with each schedule, and every file of configs/stream is tested by existing. A test
that asks for `build` runs once per stream; `live` plays random legal actions.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from sojourn.envs import (
    BernoulliBandit,
    Crowd,
    CrowdStep,
    Family,
    GymnasiumFamily,
    Independent,
    Length,
    MovingBandit,
    NeverRepeating,
    Recurring,
    Schedule,
    Stream,
)

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = sorted((ROOT / "configs" / "stream").glob("*.yaml"))

FAMILIES: dict[str, Callable[[], list[Family]]] = {
    "bandit": lambda: [BernoulliBandit(3, 7)],
    "bandits": lambda: [BernoulliBandit(2, 5), MovingBandit(4, 12)],
    "cartpole": lambda: [GymnasiumFamily("CartPole-v1", max_episode_steps=15)],
    "mixed": lambda: [GymnasiumFamily("CartPole-v1", max_episode_steps=9), BernoulliBandit(3, 7)],
}
SCHEDULES: dict[str, Callable[[list[Family]], Schedule]] = {
    "recurring": lambda families: Recurring(families, num_tasks=3),
    "independent": lambda families: Independent(families, num_tasks=3),
    "never_repeating": lambda families: NeverRepeating(families),
}
LENGTHS = {"recurring": Length(2), "independent": Length(11, "steps"), "never_repeating": Length(1)}

Build = Callable[..., Stream]


def composed(families: str, schedule: str) -> Build:
    def build(seed: int, **options: Any) -> Stream:
        options = {"lifetime_segments": 5} | options
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


@pytest.fixture(params=STREAMS.values(), ids=STREAMS.keys())
def build(request: pytest.FixtureRequest) -> Build:
    """Makes the stream under test: `build(seed=0, announce="hidden")`."""
    made: Build = request.param
    return made


def random_actions(crowd: Crowd, rng: np.random.Generator) -> np.ndarray:
    """Uniform over the legal actions of every row."""
    return np.array([rng.choice(np.flatnonzero(row)) for row in crowd.observation["action_mask"]])


def play_at_random(
    crowd: Crowd, num_steps: int, seed: int = 0
) -> list[tuple[np.ndarray, CrowdStep]]:
    rng = np.random.default_rng(seed)
    lived = []
    for _ in range(num_steps):
        actions = random_actions(crowd, rng)
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
