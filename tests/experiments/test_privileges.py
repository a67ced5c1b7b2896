"""What a run was told that its agent does not see is marked, and evaluation never needs it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sojourn.experiments import catalog
from sojourn.experiments.command import main
from sojourn.experiments.config import compose_config, parse
from sojourn.experiments.folder import read_json
from sojourn.experiments.loading import load
from sojourn.experiments.privileges import privileges

Train = Callable[..., Path]

TOLD = {
    "privileged": ["critic"],
    "restart": ["Restart at task ends"],
    "ewc": ["EWC at task ends"],
}


@pytest.mark.parametrize("trainer", catalog.options("trainer"))
def test_trainers_are_marked_by_what_they_are_told(trainer: str) -> None:
    assert privileges(compose_config(parse([f"trainer={trainer}"]))) == TOLD.get(trainer, [])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["experiment=bandit"], ["pseudo-regret"]),
        (["memory_reset=task", "credit=task"], ["memory reset at", "credit cut at"]),
        (["trainer.returns.task_discount=0.5"], ["discount at"]),
        (["trainer=ewc", "trainer.extras.strategy.at=20"], []),
    ],
)
def test_keys_are_marked(words: list[str], told: list[str]) -> None:
    found = privileges(compose_config(parse(words)))
    assert len(found) == len(told)
    assert all(line.startswith(start) for line, start in zip(found, told, strict=True))


def test_a_privileged_run_says_so_and_is_an_ordinary_agent(
    train: Train, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["stream.lifetime_segments=3", "num_steps=64"]
    run = train("run", "trainer=privileged", *words)
    train("plain", *words)
    assert read_json(run / "summary.json")["privileges"] == ["critic"]
    assert read_json(run.parent / "plain" / "summary.json")["privileges"] == []
    capsys.readouterr()
    assert main(["compare", "run", "plain", "output=seen"]) == 0
    header, _, *rows = (run.parent / "seen" / "comparison.md").read_text().splitlines()
    place = header.split(" | ").index("privileged |")
    assert [row.split(" | ")[place] for row in rows[:2]] == ["critic |", "no |"]
    trajectory, _ = load("run").rollout(num_lifetimes=2, seed=3).collect(4)
    assert "knowledge" not in trajectory.steps
    words = ["num_lifetimes=2", "steps=20", "conditions=carried", "probe_lifetimes=0"]
    assert main(["evaluate", "run", *words, "output=asked"]) == 0
    page = (run.parent / "asked" / "evaluation.md").read_text()
    assert "told in training what it does not see: critic" in page
