"""Every memory that has a YAML file, small and randomly initialised, alone and in a stack."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from tensordict import TensorDict
from torch import Tensor, nn

from sojourn.memory import (
    ChannelGatedMemory,
    Edits,
    ExactChannel,
    MemoryCore,
    NextValue,
    NormalisedDelta,
    Stack,
)
from sojourn.memory.law_tools import flatten, initial_like, run_in_parts

CONFIGS = Path(__file__).parents[2] / "configs" / "memory"
NAMES = sorted(path.stem for path in CONFIGS.glob("*.yaml"))
SMALL = {
    "num_heads": 2,
    "key_width": 4,
    "value_width": 3,
    "solver__chunk_size": 4,
    "solver__solver__chunk_size": 4,
    "solver__block_size": 2,
    "cache__window": 5,
    "solver__window": 3,
    "solver__period": 3,
    "solver__cache_size": 2,
    "estimator__count": 2,
    "hidden_width": 5,
    "long_term__num_heads": 2,
    "long_term__key_width": 4,
    "long_term__value_width": 3,
    "long_term__solver__chunk_size": 4,
    "short_term__num_heads": 2,
    "short_term__key_width": 4,
    "short_term__value_width": 3,
    "short_term__cache__window": 5,
}
for level, period in {"fast": 4, "middle": 3, "slow": 5}.items():
    SMALL[f"members__{level}__solver__chunk_size"] = period
    SMALL |= {f"members__{level}__{size}": SMALL[size] for size in ("key_width", "value_width")}
WIDTH = 6


def config_path(name: str) -> Path:
    return CONFIGS / f"{name}.yaml"


def build(name: str, width: int = WIDTH, **changes: Any) -> MemoryCore:
    """The memory of one YAML file with `changes` to the keys it has (`__` for a dot)."""
    config = OmegaConf.load(config_path(name))
    for key, value in changes.items():
        *parents, leaf = key.split("__")
        owner = OmegaConf.select(config, ".".join(parents)) if parents else config
        if owner is not None and leaf in owner:
            owner[leaf] = value
    core = instantiate(config, width=width)
    assert isinstance(core, MemoryCore)
    return core


def randomise(module: nn.Module) -> None:
    """Move zero-initialised parameters (initial states, biases) away from zero."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))


@dataclass(frozen=True)
class Case:
    """One memory, made anew with the same parameters by every call of `make`."""

    name: str
    make: Callable[[], MemoryCore]

    def core(self, dtype: torch.dtype = torch.float64) -> MemoryCore:
        torch.manual_seed(0)
        core = self.make().to(dtype)
        randomise(core)
        return core


def small(name: str) -> MemoryCore:
    square = "output: residual" in config_path(name).read_text()  # adds keys to values
    return build(name, **SMALL | ({"value_width": SMALL["key_width"]} if square else {}))


def mixed_stack() -> MemoryCore:
    return Stack([small(name) for name in ("gated_delta_net", "softmax_attention", "lstm")])


def mesa_by_conjugate_gradient() -> MemoryCore:
    changes = {"solver__method___target_": "sojourn.memory.ConjugateGradient"}
    return build("mesa_net", **SMALL, **changes)


def falcon2_by_key_channels() -> MemoryCore:
    return ChannelGatedMemory(
        WIDTH,
        key_width=4,
        value_width=3,
        views=NextValue,
        rule=NormalisedDelta,
        solver=partial(ExactChannel, chunk_size=4, block_size=2),
    )


def replay_of_losers() -> MemoryCore:
    storage = {"_target_": "sojourn.memory.AbsorbLosers", "_partial_": True}
    return build("residual_replay", **SMALL, solver__storage=storage)


CASES = [
    *(Case(name, lambda name=name: small(name)) for name in NAMES),
    *(
        Case(f"stack_of_{name}", lambda name=name: Stack([small(name), small(name)]))
        for name in NAMES
    ),
    Case("mixed_stack", mixed_stack),
    Case("residual_replay_of_losers", replay_of_losers),
    Case("mesa_net_by_conjugate_gradient", mesa_by_conjugate_gradient),
    Case("falcon2_by_key_channels", falcon2_by_key_channels),
]


def commits(core: MemoryCore, batch: int, steps: int) -> dict[str, Tensor]:
    """A commit at every token, for memories whose reads would otherwise see nothing new."""
    return {"commit": torch.ones(batch, steps, dtype=torch.bool)} if core.reads_commits else {}


def make_edits(
    steps: int, dtype: torch.dtype = torch.float64, key: int = 4, value: int = 3
) -> Edits:
    """Random edits of two rows and two memories, with writes of length one."""

    def normal(size: int) -> Tensor:
        return torch.randn(2, steps, 2, size, dtype=dtype)

    write = nn.functional.normalize(normal(key), dim=-1)
    retention, rate = nn.functional.logsigmoid(normal(key)), torch.rand_like(write)
    return Edits(normal(key), rate * write, write, normal(value), retention, rate)


def assert_same_state(actual: TensorDict, expected: TensorDict, tolerance: float = 1e-10) -> None:
    got, want = flatten(actual), flatten(expected)
    assert got.keys() == want.keys()
    for name in want:
        torch.testing.assert_close(got[name], want[name], rtol=tolerance, atol=tolerance)


class Tools:
    """Functions shared by the tests of this folder."""

    initial_like = staticmethod(initial_like)
    build = staticmethod(build)
    small = staticmethod(small)
    config_path = staticmethod(config_path)
    randomise = staticmethod(randomise)
    run_in_parts = staticmethod(run_in_parts)
    flatten = staticmethod(flatten)
    commits = staticmethod(commits)
    make_edits = staticmethod(make_edits)
    assert_same_state = staticmethod(assert_same_state)


@pytest.fixture
def tools() -> Tools:
    return Tools()


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture(
    params=[case for case in CASES if "stack" not in case.name], ids=lambda case: case.name
)
def single(request: pytest.FixtureRequest) -> Case:
    """The cases that are not stacks."""
    return request.param


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(1)
