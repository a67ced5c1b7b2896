"""The best checkpoint: chosen by regret, kept, found again, and the same however often a run
stops.
"""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sojourn.experiments import checkpoint
from sojourn.experiments.command import main
from sojourn.experiments.selection import Candidate, Selection
from sojourn.experiments.tables import read_table

Train = Callable[..., Path]
LEARNING = ["num_steps=640", "trainer.learning_rate=0.02", "trainer.loss.entropy=0"]


def means(run: Path, every: int) -> dict[int, float]:
    """Step of a multiple of `every` -> mean regret of the updates since the one before it."""
    metrics = read_table(run / "metrics.csv")
    stretch = (metrics["step"] - 1) // every
    found = {}
    for number in range(int(metrics["step"][-1]) // every):
        values = metrics["continual/regret"][stretch == number]
        found[every * (number + 1)] = float(np.nanmean(values))
    return found


def best_of(run: Path) -> int:
    return checkpoint.step_of((run / "checkpoints" / "best").resolve())


def test_the_stretch_with_least_regret_is_kept(train: Train) -> None:
    run = train("run", *LEARNING)
    expected = means(run, 96)
    assert len(expected) == 6
    assert best_of(run) == min(expected, key=expected.__getitem__)
    files = [checkpoint.step_of(p) for p in checkpoint.newest_first(run / "checkpoints")]
    assert files == sorted({640, 576, best_of(run)}, reverse=True)


def test_a_stopped_run_chooses_what_the_unbroken_one_does(train: Train) -> None:
    whole, run = train("whole", *LEARNING), train("run", *LEARNING, "num_steps=160")
    assert main(["train", "resume=run", "num_steps=640", "quiet=true"]) == 0
    ends = [checkpoint.load_newest(one / "checkpoints")[1]["selection"] for one in (whole, run)]
    assert ends[0] == ends[1]
    assert best_of(whole) == best_of(run)


def test_best_goes_on_from_the_best_and_ends_as_the_unbroken_run(
    train: Train, assert_same_run: Callable[[Path, Path], None]
) -> None:
    whole, run = train("whole", *LEARNING), train("run", *LEARNING)
    step = best_of(run)
    assert main(["train", "resume=best", "quiet=true"]) == 0
    assert f"resumed at step {step}" in (run / "log.txt").read_text()
    assert_same_run(whole, run)
    assert best_of(run) == step


def test_best_is_read_by_the_other_verbs(train: Train, capsys: pytest.CaptureFixture[str]) -> None:
    run = train("run", *LEARNING)
    for number, where in enumerate(("best", f"{run}/checkpoints/best")):
        words = ["num_lifetimes=2", "segments=1", "probe_lifetimes=0", "conditions=carried"]
        assert main(["evaluate", where, *words, f"output=out{number}"]) == 0
        assert f"agent: run, step {best_of(run)}," in capsys.readouterr().out


def test_a_life_has_a_best_checkpoint_too(train: Train, workplace: Path) -> None:
    train("base", "num_steps=64")
    words = ["guard.slices=1", "guard.by=none", "checkpoint_every=32", "quiet=true"]
    assert main(["live", "latest", "folder=life", *words, "num_steps=160"]) == 0
    step = best_of(Path("life"))
    windows = read_table(Path("life/windows.csv"))
    assert step in windows["step"]
    assert main(["live", "resume=best", "num_steps=160", "quiet=true"]) == 0
    assert main(["live", "resume=latest", "num_steps=192", "quiet=true"]) == 0
    assert checkpoint.load_newest(Path("life/checkpoints"))[1]["step"] == 192


def test_without_a_best_checkpoint_latest_is_advised(
    train: Train, refuse: Callable[..., str]
) -> None:
    train("run", "num_steps=32")
    assert "in which an episode ended; give latest" in refuse("train", "resume=best")
    assert "no life has been started" in refuse("live", "resume=best")


def test_any_regret_goes_before_another_loss_and_the_newer_of_equals_before_the_older() -> None:
    regret, loss = Candidate(1, "regret", 0.9), Candidate(2, "loss", -3.0)
    assert regret.beats(loss) and not loss.beats(regret)
    assert regret.beats(None) and Candidate(3, "regret", 0.9).beats(regret)
    assert not Candidate(3, "loss", -2.0).beats(loss)


def test_what_tells_nothing_counts_for_nothing() -> None:
    selection = Selection()
    selection.end_stretch(8)
    assert selection.best_step is None
    for regret in (math.nan, 0.5, math.nan, 0.3):
        selection.add(regret, -1.0)
    selection.end_stretch(16)
    assert selection.best == Candidate(16, "regret", 0.4)
    selection.add(math.nan, -9.0)
    selection.end_stretch(24)
    assert selection.best_step == 16


def test_a_best_file_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    first, then = Selection(), Selection()
    for step, regret in ((8, 0.1), (16, 0.2)):
        first.add(regret, 0.0)
        first.end_stretch(step)
    checkpoint.save(tmp_path, 16, {}, keep=1)
    then.load_state_dict(first.state_dict(), tmp_path)
    assert then.best == Candidate(16, "regret", 0.2)
    assert (tmp_path / "best").resolve().name == "step_000000000016.pt"
