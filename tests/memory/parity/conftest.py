"""Random inputs and the comparison shared by the rows: outputs, final state, all gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from sojourn.memory import Heads

BATCH, STEPS = 2, 64
Pair = tuple[Tensor, Tensor]
SIZES = Heads(width=1, num_heads=2, key_width=8, value_width=6)


class Inputs(NamedTuple):
    """Random views and gates `[B, T, H, ...]`; `state` `[B, H, K, V]`, as they keep it."""

    query: Tensor
    key: Tensor
    value: Tensor
    rate: Tensor
    log_retention: Tensor
    log_momentum: Tensor
    gain: Tensor
    channel_retention: Tensor
    channel_rate: Tensor
    value_rate: Tensor
    state: Tensor

    @property
    def scaled_query(self) -> Tensor:
        """What the references make of the query, and our views of a token's."""
        return self.query * self.query.shape[-1] ** -0.5


def make_inputs() -> Inputs:
    """Leaves that want gradients, in float64."""

    def normal(*size: int) -> Tensor:
        return torch.randn(BATCH, STEPS, SIZES.num_heads, *size, dtype=torch.float64)

    key, value = (SIZES.key_width,), (SIZES.value_width,)
    state = torch.randn(BATCH, SIZES.num_heads, *key, *value, dtype=torch.float64)
    inputs = Inputs(
        query=normal(*key),
        key=functional.normalize(normal(*key), dim=-1),
        value=normal(*value),
        rate=normal().sigmoid(),
        log_retention=functional.logsigmoid(normal() + 1),
        log_momentum=functional.logsigmoid(normal()),
        gain=normal().sigmoid(),
        channel_retention=functional.logsigmoid(normal(*key) + 1),
        channel_rate=normal(*key).sigmoid(),
        value_rate=normal(*value).sigmoid(),
        state=0.3 * state,
    )
    return Inputs(*(x.requires_grad_() for x in inputs))


def imported(name: str) -> Any:
    """A module of a published package; skips the test where the package is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they say at length that there is no GPU
        try:
            return import_module(name)
        except ImportError as error:
            pytest.skip(f"{name.partition('.')[0]} is not installed, see `make parity` ({error})")


def run(
    solver: Callable[..., Any], views: tuple[Any, ...], state: Mapping[str, Tensor], by_token: bool
) -> tuple[Tensor, Mapping[str, Tensor]]:
    """A solver over a call, or over its tokens one by one; no flags."""
    parts = [views]
    if by_token:
        parts = [tuple(_token(view, t) for view in views) for t in range(views[0].query.shape[1])]
    flags = 3 if hasattr(views[0], "erase") else 2
    outputs = []
    for part in parts:
        reads, state = solver(*part, state, *(None,) * flags)
        outputs.append(reads)
    return torch.cat(outputs, dim=1), state


def _token(view: Any, t: int) -> Any:
    return type(view)(*(None if x is None else x[:, t : t + 1] for x in view))


def assert_same(ours: Pair, theirs: Pair, inputs: Inputs) -> None:
    """Outputs and final state to 1e-5, their gradients by every input to 1e-4: float32's share."""
    wanted = [x for x in inputs if x.requires_grad]
    gradients = []
    for reads, state in (ours, theirs):
        loss = _weighted_sum(reads) + _weighted_sum(state)
        options = {"allow_unused": True, "materialize_grads": True, "retain_graph": True}
        gradients.append(torch.autograd.grad(loss, wanted, **options))
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other.double(), rtol=1e-5, atol=1e-5)
    assert any(gradient.abs().max() > 0 for gradient in gradients[1])
    for mine, other in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)


def _weighted_sum(x: Tensor) -> Tensor:
    return (x.double() * torch.linspace(-1, 1, x.numel()).view_as(x)).sum()


class Parity:
    """Functions shared by the tests of this folder."""

    sizes = SIZES
    imported = staticmethod(imported)
    run = staticmethod(run)
    assert_same = staticmethod(assert_same)


@pytest.fixture
def parity() -> Parity:
    return Parity()


@pytest.fixture
def inputs() -> Inputs:
    torch.manual_seed(1)
    return make_inputs()
