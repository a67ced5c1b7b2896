"""Every trainer of the catalogue runs, resumes bit for bit, and may follow another one."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sojourn.experiments import catalog
from sojourn.experiments.command import main
from sojourn.experiments.tables import read_table

Train = Callable[..., Path]
SAME = Callable[[Path, Path], None]

SMALL = [
    "num_lifetimes=4",
    "slice_steps=16",
    "stream.schedule.families.0.num_pulls=8",
    "stream.lifetime_segments=3",
    "num_steps=256",
    "checkpoint_every=128",
]
WORDS = {
    "ppo": ["trainer.returns.task_discount=0.5", "trainer.extras.slice_start=replay"],
    "transfer": ["trainer.extras.transfer.weight=1", "trainer.extras.transfer.every=2"],
    "auxiliary": ["trainer.extras.auxiliary.observation=1"],
    "evolution": ["trainer.num_pairs=2"],
    "finetuning": ["memory_reset=episode", "credit=episode"],
    "restart": ["trainer.extras.strategy.at=3"],
    "ewc": ["trainer.extras.strategy.fisher_lifetimes=2"],
    "l2_init": ["trainer.extras.strategy.strength=1"],
    "replay": ["trainer.extras.strategy.capacity=6", "trainer.extras.strategy.batch=2"],
    "privileged": [],
}


def words_of(trainer: str) -> list[str]:
    own = [] if trainer == "evolution" else ["trainer.num_epochs=1"]
    return [f"trainer={trainer}", *SMALL, *own, *WORDS[trainer]]


@pytest.fixture
def live(train: Train, monkeypatch: pytest.MonkeyPatch) -> Train:
    """`train` without the keys that only PPO has; every trainer brings its own words."""
    from . import conftest

    ppo_only = "trainer.num_epochs=1"
    monkeypatch.setattr(conftest, "TINY", [word for word in conftest.TINY if word != ppo_only])
    return train


def test_every_trainer_is_tried() -> None:
    assert sorted(WORDS) == catalog.options("trainer")


@pytest.mark.parametrize("trainer", WORDS)
def test_a_resumed_run_is_the_unbroken_one(
    live: Train, trainer: str, assert_same_run: SAME
) -> None:
    whole, halves = (live(name, *words_of(trainer)) for name in ("whole", "halves"))
    middle = halves / "checkpoints" / "step_000000000128.pt"
    assert main(["train", f"resume={middle}", "quiet=true"]) == 0
    assert_same_run(whole, halves)


def test_evolution_goes_on_where_another_trainer_stopped(live: Train) -> None:
    run = live("run", *words_of("ppo"))
    words = ["trainer=evolution", "trainer.num_pairs=2", "num_steps=512", "quiet=true"]
    assert main(["train", "resume=run", *words]) == 0
    columns = read_table(run / "metrics.csv")
    regret, ratio = columns["losses/regret"], columns["losses/first_ratio_error"]
    assert np.isnan(regret).tolist() == [True] * 4 + [False] * 4
    assert np.isnan(ratio).tolist() == [False] * 4 + [True] * 4
    assert "changed trainer._target_" in (run / "log.txt").read_text()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["trainer=transfer", "memory_reset=task"], "memory_reset=task forgets A before B begins"),
        (["trainer=transfer", "memory=softmax_attention"], "no fresh twin of its size"),
        (["trainer=transfer", "stream.lifetime_segments=1"], "has no task that follows another"),
        (["trainer=evolution", "stream.tasks=[FrozenLake-v1]"], "has no floor and ceiling"),
    ],
)
def test_lives_that_teach_a_trainer_nothing_are_refused_before_they_begin(
    refuse: Callable[..., str], words: list[str], line: str
) -> None:
    stream = [] if "stream" in words[-1] else ["stream=bandit"]
    assert line in refuse("train", *stream, *words, "agent.width=8", "folder=run")
    assert not Path("run").exists()


def test_measures_of_a_memory_need_a_trainer_that_keeps_slices(
    refuse: Callable[..., str],
) -> None:
    line = refuse("train", "trainer=evolution", "diagnostics_every=1", "folder=run")
    assert "trainer=evolution keeps no slice to measure" in line
    assert not Path("run").exists()


def test_too_many_parameters_are_refused_in_one_line(refuse: Callable[..., str]) -> None:
    line = refuse("train", "trainer=evolution", "trainer.parameters=['*']", "folder=run")
    assert "at most 1,000 can be estimated from lifetimes" in line
    assert not Path("run").exists()


def test_help_explains_the_keys_that_a_trainer_takes_over(
    workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["train", "trainer=transfer", "--help"]) == 0
    shown = capsys.readouterr().out
    for said in ("GAE lambda", "updates between two estimates", "passes over a slice"):
        assert said in shown
