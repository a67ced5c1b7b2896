"""`agent.compile=true`: refused where it cannot be, and a run that resumes as any other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch._dynamo.utils import counters

from sojourn.experiments.command import main
from sojourn.memory import compiled

Refuse = Callable[..., str]
Train = Callable[..., Path]
COMPILE = "agent.compile=true"
pytestmark = [
    pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning"),
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
]


def forget() -> None:
    """As in a process that has compiled nothing yet."""
    torch.compiler.reset()
    compiled._compiled_consume.cache_clear()
    counters.clear()


@pytest.fixture
def forgotten() -> Iterator[None]:
    forget()
    yield
    forget()


def test_a_missing_compiler_is_one_line(refuse: Refuse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    expected = "agent.compile: needs a C++ compiler, and there is no 'no-such-compiler' here"
    assert expected in refuse("train", "stream=bandit", COMPILE)


def test_a_memory_that_grows_is_one_line(refuse: Refuse) -> None:
    words = ("stream=bandit", "memory=softmax_attention", COMPILE)
    assert "agent.compile: this memory grows with every token" in refuse("train", *words)


def test_a_debugger_meets_no_compiled_code(train: Train, forgotten: None) -> None:
    train("run", COMPILE, "debug=true")
    assert not counters["stats"]["unique_graphs"]


@pytest.mark.slow
def test_a_resumed_compiled_run_is_the_unbroken_one(
    train: Train, assert_same_run: Callable[[Path, Path], None], forgotten: None
) -> None:
    whole = train("whole", COMPILE, "evaluation.num_lifetimes=2", "evaluation.steps=20")
    graphs = counters["stats"]["unique_graphs"]
    assert graphs >= 3, "acting, learning and the evaluation"
    cut = train(
        "cut", COMPILE, "evaluation.num_lifetimes=2", "evaluation.steps=20", "stop_step=160"
    )
    assert counters["stats"]["unique_graphs"] == graphs, "the same shapes were compiled before"
    forget()
    assert main(["train", "resume=cut", "stop_step=null", "quiet=true"]) == 0
    assert counters["stats"]["unique_graphs"] > 0
    assert_same_run(whole, cut)
