"""`debug=true` stops at the first NaN, names who made it, and shows everything."""

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sojourn.envs import Stream
from sojourn.experiments import debugging
from sojourn.experiments.build import build, build_agent
from sojourn.experiments.config import compose_config, parse
from sojourn.experiments.settings import Settings

from .conftest import TINY


class Divide(nn.Module):
    """x / x: NaN at zero, as is its gradient."""

    def forward(self, x: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
        return {"parts": (torch.full_like(x, -torch.inf), x / x)}


class Root(nn.Module):
    """A finite value whose gradient at zero is not."""

    def forward(self, x: Tensor) -> Tensor:
        return (x * 0.0).sqrt()


def test_the_innermost_module_is_named() -> None:
    model = nn.Sequential(nn.Identity(), nn.Sequential(Divide()))
    with debugging.watched(model):
        model(torch.ones(2))  # infinities are no fault: they mask actions
        with pytest.raises(FloatingPointError, match=r"output of 1\.0 \(Divide\)"):
            model(torch.zeros(2))
    model(torch.zeros(2))


def test_a_gradient_that_is_no_number_names_its_operation() -> None:
    model = Root()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same once more, and that this mode is slow
        with debugging.watched(model):
            value = model(torch.zeros(1, requires_grad=True)).sum()
            with pytest.raises(RuntimeError, match="MulBackward0' returned nan"):
                value.backward()
    assert not torch.is_anomaly_enabled()


def test_watching_changes_no_number(
    train: Callable[..., Path], assert_same_run: Callable[[Path, Path], None]
) -> None:
    one = train("one", "debug=true")
    assert_same_run(one, train("two", "num_steps=96"))


def test_workers_are_left_out() -> None:
    config = compose_config(parse([*TINY, "stream.workers=2", "debug=true", "num_threads=2"]))
    parts = build(config, Settings.from_config(config))
    stream: Stream = parts.stream
    assert (stream.workers.count, torch.get_num_threads()) == (0, 1)
    assert config.stream.workers == 2, "the configuration tells what was asked for"


@pytest.mark.parametrize("debug", ["true", "false"])
def test_a_failure_shows_its_whole_traceback(
    debug: str,
    train: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def poisoned(*arguments: object) -> object:
        agent = build_agent(*arguments)  # type: ignore[arg-type]
        with torch.no_grad():
            next(agent.memory.parameters()).fill_(np.nan)
        return agent

    monkeypatch.setattr("sojourn.experiments.build.build_agent", poisoned)
    train("run", f"debug={debug}", code=1)
    err = capsys.readouterr().err
    assert ("Traceback" in err) == (debug == "true")
    assert ("NaN in the output of memory" in err) == (debug == "true")
    assert "resume with: sojourn train resume=run" in err
