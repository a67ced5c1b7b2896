"""Numbers from EnvPool and from Python are not mixed, unless somebody asks for it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sojourn.experiments.backends import check_backends
from sojourn.experiments.command import main
from sojourn.experiments.errors import UsageError
from sojourn.experiments.studies.plan import plan

Refuse = Callable[..., str]
POOLED = ["stream=bandit", "seed=0", "memory=gru"]


@pytest.mark.parametrize("same", [["auto", "gymnasium"], ["envpool", "envpool"], ["auto"], []])
def test_one_program_is_no_mixture(same: list[str]) -> None:
    check_backends({str(number): backend for number, backend in enumerate(same)}, "false")


def test_two_are_refused_by_name_and_allowed_by_the_flag() -> None:
    both = {"a": "gymnasium", "b": "envpool"}
    with pytest.raises(UsageError, match=r"^b has stream.backend=envpool and a has not.*=true$"):
        check_backends(both, "false")
    check_backends(both, "true")
    with pytest.raises(UsageError, match="mix_backends=yes: expected true or false"):
        check_backends({}, "yes")


def test_a_study_refuses_before_anything_runs() -> None:
    words = [*POOLED, "stream.backend=auto,envpool"]
    with pytest.raises(UsageError, match="mix_backends=true"):
        plan(words)
    assert len(plan([*words, "mix_backends=true"]).members) == 2
    assert len(plan([*POOLED, "stream.backend=auto,gymnasium"]).members) == 2


def test_compare_refuses_runs_of_both(runs: Path, refuse: Refuse) -> None:
    config = runs / "never" / "config.yaml"
    text = config.read_text()
    assert "backend: auto" in text
    config.write_text(text.replace("backend: auto", "backend: envpool"))
    line = refuse("compare", "runs/delta-1", "runs/never")
    assert "runs/never has stream.backend=envpool and runs/delta-1 has not" in line
    assert main(["compare", "runs/delta-1", "runs/never", "mix_backends=true", "output=out"]) == 0
    assert "backend" in Path("out/comparison.md").read_text()
    assert "mix_backends" in refuse("compare", "runs/delta-1", "mix_backend=true")


def test_train_without_the_package_is_one_line(
    workplace: Path, refuse: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "envpool", None)
    task = "stream.tasks=[{id: MiniGrid-Empty-5x5-v0, instance: resampled}]"
    line = refuse("train", task, "stream.backend=envpool")
    assert "envpool cannot be imported" in line and "extra 'envpool'" in line
