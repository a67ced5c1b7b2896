"""Every memory that has a YAML file, small and randomly initialised, alone and in a stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from tensordict import TensorDict
from torch import Tensor, nn

from sojourn.memory import Edits, MemoryCore, Stack

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


CASES = [
    *(Case(name, lambda name=name: small(name)) for name in NAMES),
    *(
        Case(f"stack_of_{name}", lambda name=name: Stack([small(name), small(name)]))
        for name in NAMES
    ),
    Case("mixed_stack", mixed_stack),
    Case("mesa_net_by_conjugate_gradient", mesa_by_conjugate_gradient),
]


def run_in_parts(
    core: MemoryCore,
    x: Tensor,
    state: TensorDict,
    flags: dict[str, Tensor],
    sizes: Sequence[int],
) -> tuple[Tensor, TensorDict]:
    """Feed `x` in calls of the given sizes, tokens one by one where the size is 1."""
    outputs, start = [], 0
    for size in sizes:
        part = {name: flag[:, start : start + size] for name, flag in flags.items()}
        if size == 1:
            part = {name: flag[:, 0] for name, flag in part.items()}
            y, state = core.step(x[:, start], state, **part)
            outputs.append(y.unsqueeze(1))
        else:
            y, state = core(x[:, start : start + size], state, **part)
            outputs.append(y)
        start += size
    assert start == x.shape[1]
    return torch.cat(outputs, dim=1), state


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
    retention = nn.functional.logsigmoid(normal(key))
    return Edits(normal(key), torch.rand_like(write) * write, write, normal(value), retention)


def flatten(state: TensorDict) -> dict[str, Tensor]:
    """Leaves by dotted name."""
    flat: dict[str, Tensor] = {}
    for key, leaf in state.items():
        if isinstance(leaf, Tensor):
            flat[key] = leaf
        else:
            flat |= {f"{key}.{inner}": value for inner, value in flatten(leaf).items()}
    return flat


def assert_same_state(actual: TensorDict, expected: TensorDict, tolerance: float = 1e-10) -> None:
    got, want = flatten(actual), flatten(expected)
    assert got.keys() == want.keys()
    for name in want:
        torch.testing.assert_close(got[name], want[name], rtol=tolerance, atol=tolerance)


def initial_like(core: MemoryCore, state: TensorDict) -> TensorDict:
    """The initial state, with the clocks of `state` that no reset touches."""
    return core.reset_rows(state, torch.ones(state.batch_size[0], dtype=torch.bool))


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


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(1)
