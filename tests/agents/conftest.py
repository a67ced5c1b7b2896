"""Small agents and crowds for the laws of the agents room."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf

from sojourn.agents import Agent, Rollout
from sojourn.envs import BernoulliBandit, Crowd, Interface, Length, NeverRepeating, Stream
from sojourn.memory import MemoryCore, Stack

ROOT = Path(__file__).resolve().parent.parent.parent
CORES = sorted(path.stem for path in (ROOT / "configs" / "memory").glob("*.yaml"))
WIDTH = 16
SMALL_WIDTH = 6
SMALL = {
    "key_width": 4,
    "value_width": 4,
    "hidden_width": 5,
    "solver.chunk_size": 4,
    "solver.solver.chunk_size": 4,
    "cache.window": 5,
    "solver.window": 3,
    "long_term.solver.chunk_size": 4,
    "short_term.cache.window": 5,
}


def make_core(name: str, width: int = WIDTH) -> MemoryCore:
    config = OmegaConf.load(ROOT / "configs" / "memory" / f"{name}.yaml")
    core: MemoryCore = instantiate(config, width=width)
    return core


def small_core(name: str, dtype: torch.dtype = torch.float64) -> MemoryCore:
    """The registered memory with small sizes and parameters away from their start."""
    config = OmegaConf.load(ROOT / "configs" / "memory" / f"{name}.yaml")
    for key, value in SMALL.items():
        if OmegaConf.select(config, key) is not None:
            OmegaConf.update(config, key, value)
    torch.manual_seed(0)
    core: MemoryCore = instantiate(config, width=SMALL_WIDTH)
    core = core.to(dtype)
    with torch.no_grad():
        for parameter in core.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return core


def make_agent(interface: Interface, core: str = "gated_delta_net", seed: int = 0) -> Agent:
    torch.manual_seed(seed)
    return Agent(interface, Stack([make_core(core), make_core(core)]))


def bandit_stream(seed: int = 0, pulls: int = 5, **kwargs: object) -> Stream:
    family = BernoulliBandit(num_arms=3, num_pulls=pulls)
    return Stream(NeverRepeating([family]), Length(2), seed=seed, **kwargs)  # type: ignore[arg-type]


def unmeasured_crowd(num_lifetimes: int, **rows: int) -> Crowd:
    """Lives of bandits that nobody has told a floor and a ceiling of."""
    family = BernoulliBandit(num_arms=3, num_pulls=5)
    family.reference = None  # type: ignore[assignment]
    stream = Stream(NeverRepeating([family]), Length(2), seed=0)
    return Crowd(stream, num_lifetimes, **rows)


@pytest.fixture(params=CORES)
def core_name(request: pytest.FixtureRequest) -> str:
    """Every registered memory core."""
    return str(request.param)


@pytest.fixture
def make_rollout() -> Callable[..., Rollout]:
    """A small agent over bandit lifetimes: five pulls an episode, two episodes a task."""

    def build(
        core: str = "gated_delta_net",
        num_lifetimes: int = 4,
        segments: int | None = None,
        pulls: int = 5,
        **kwargs: object,
    ) -> Rollout:
        crowd = Crowd(bandit_stream(pulls=pulls, lifetime_segments=segments), num_lifetimes)
        make = partial(Rollout, make_agent(crowd.interface, core), crowd)
        return make(**kwargs)  # type: ignore[arg-type]

    return build
