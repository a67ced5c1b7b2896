"""Evaluation beside the training: the run does not feel it, and a resumed one repeats it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from sojourn.experiments import checkpoint
from sojourn.experiments.command import main
from sojourn.experiments.tables import read_table

Train = Callable[..., Path]
Refuse = Callable[..., str]
BESIDE = ["evaluation.every=96", "evaluation.num_lifetimes=2", "evaluation.steps=25"]
SEGMENTS = ["stream.lifetime_segments=null"]


def test_a_run_is_the_same_with_and_without(
    train: Train, assert_same_run: Callable[[Path, Path], None]
) -> None:
    plain, watched = train("plain", *SEGMENTS), train("watched", *SEGMENTS, *BESIDE)
    assert not (plain / "evaluations.csv").exists()
    columns = read_table(watched / "evaluations.csv")
    assert columns["step"].tolist() == [96.0, 192.0, 288.0]
    assert np.isfinite(columns["eval/regret_carried"]).all()
    assert (columns["eval/num_lifetimes"] == 2).all()
    content = [checkpoint.load_newest(run / "checkpoints")[1] for run in (plain, watched)]
    assert [one["rows"].pop("evaluations") for one in content] == [0, 3]
    for run, one in zip((plain, watched), content, strict=True):
        checkpoint.save(run / "checkpoints", one.pop("step"), one, keep=9)
    assert_same_run(plain, watched)
    board = EventAccumulator(str(watched))
    board.Reload()
    assert [e.step for e in board.Scalars("eval/utility")] == [96, 192, 288]


def test_a_resumed_run_has_every_evaluation_once(train: Train) -> None:
    run = train("run", *SEGMENTS, *BESIDE, "keep_checkpoints=9")
    unbroken = (run / "evaluations.csv").read_bytes()
    middle = run / "checkpoints" / "step_000000000192.pt"
    assert main(["train", f"resume={middle}", "quiet=true"]) == 0
    assert (run / "evaluations.csv").read_bytes() == unbroken


def test_the_last_evaluation_lives_on_the_declared_stream(train: Train) -> None:
    words = ["evaluation.num_lifetimes=2", "evaluation.steps=50", *SEGMENTS]
    run = train("run", *words, 'evaluation.stream=["stream.length.amount=3"]')
    assert read_table(run / "evaluation.csv")["episode"].max() == 2
    assert read_table(run / "episodes.csv")["episode"].max() == 0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["evaluation.every=-1"], "evaluation.every: expected 0 (never) or more steps, got -1"),
        (["evaluation.every=9"], "evaluation.every: expected evaluation.num_lifetimes >= 1"),
        (["evaluation.stream=[seed=3]"], "cannot read the value"),
        (['evaluation.stream=["seed=3"]'], "seed: an evaluation changes the stream only"),
        (['evaluation.stream=["stream=dark_room"]'], "the agent cannot live there"),
        (["evaluation.evry=9"], "evaluation.evry: no such key; did you mean every?"),
    ],
)
def test_a_wrong_setting_gets_one_line(refuse: Refuse, words: list[str], line: str) -> None:
    assert line in refuse("train", "stream=bandit", "folder=run", *words)
    assert not Path("run").exists(), "before anything is written"
