"""A run goes on where it stopped: after a signal, to a longer budget, from a broken checkpoint."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import OmegaConf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator, ScalarEvent

from sojourn.experiments import checkpoint
from sojourn.experiments.command import main
from sojourn.experiments.tables import read_table

from .conftest import interrupt_at, status

Train = Callable[..., Path]
Refuse = Callable[..., str]
Same = Callable[[Path, Path], None]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_goes_on_bit_for_bit(
    train: Train,
    assert_same_run: Same,
    workplace: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    code: int,
) -> None:
    whole = train("whole")
    with monkeypatch.context() as patch:
        interrupt_at(patch, 4, number)
        run = train("run", code=code)
    assert status(run) == "interrupted"
    assert "resume with: sojourn train resume=" in (run / "log.txt").read_text()
    assert (run / "summary.json").exists()
    assert read_table(run / "metrics.csv")["step"][-1] == 4 * 32
    assert main(["train", "resume=run"]) == 0
    assert_same_run(whole, run)


def test_a_longer_budget_continues_the_same_curves(train: Train, assert_same_run: Same) -> None:
    whole = train("whole", "num_steps=640", "trainer.learning_rate=1e-3", "trainer.loss.entropy=0")
    run = train("run", "trainer.learning_rate=1e-3", "trainer.loss.entropy=0")
    assert main(["train", "resume=latest", "num_steps=640"]) == 0
    assert_same_run(whole, run)
    points = [event.step for event in scalars(run, "continual/cumulative_regret")]
    assert points == list(range(64, 641, 64)), "each step once, in one run"
    assert "changed num_steps: 320 -> 640" in (run / "log.txt").read_text()


def scalars(run: Path, tag: str) -> list[ScalarEvent]:
    events = EventAccumulator(str(run)).Reload()
    return list(events.Scalars(tag))


def test_viewers_see_one_run_with_speed_and_configuration(train: Train) -> None:
    run = train("run")
    events = EventAccumulator(str(run)).Reload()
    assert "charts/SPS" in events.Tags()["scalars"]
    assert "hyperparameters/text_summary" in events.Tags()["tensors"]
    assert [path for path in run.iterdir() if path.is_dir()] == [run / "checkpoints"]


def test_what_was_written_after_the_checkpoint_is_written_once(
    train: Train, assert_same_run: Same
) -> None:
    whole, run = train("whole"), train("run")
    assert main(["train", f"resume={run}/checkpoints/step_000000000288.pt"]) == 0
    assert_same_run(whole, run)
    assert len(scalars(run, "continual/cumulative_regret")) == 5


def test_a_broken_newest_checkpoint_falls_back_and_says_so(
    train: Train, assert_same_run: Same
) -> None:
    whole, run = train("whole"), train("run")
    newest = checkpoint.newest_first(run / "checkpoints")[0]
    newest.write_bytes(newest.read_bytes()[:100])
    assert main(["train", "resume=run", "quiet=true"]) == 0
    log = (run / "log.txt").read_text()
    assert "not a readable checkpoint" in log and "resumed at step 288" in log
    assert_same_run(whole, run)


def test_a_resumed_run_may_change_its_trainer_and_says_so(train: Train) -> None:
    run = train("run")
    assert main(["train", "resume=run", "num_steps=400", "trainer.max_grad_norm=0.1"]) == 0
    assert "changed trainer.max_grad_norm: 0.5 -> 0.1" in (run / "log.txt").read_text()
    assert OmegaConf.load(run / "config.yaml").trainer.max_grad_norm == 0.1
    assert len((run / "overrides.txt").read_text().splitlines()) == 2


def test_a_resumed_run_keeps_what_its_life_depends_on(train: Train, refuse: Refuse) -> None:
    refused = {
        "memory=gru": "the run was made with memory=gated_delta_net",
        "memory.num_heads=2": "memory.num_heads: 1 -> 2",
        "stream.length.amount=2": "stream.length.amount: 1 -> 2",
        "agent.width=16": "agent.width: 8 -> 16",
        "seed=5": "seed: 1 -> 5",
        "folder=other": "goes on in its own folder",
    }
    train("run", "num_steps=32")
    for word, expected in refused.items():
        assert expected in refuse("train", "resume=run", word)


def test_relative_paths_are_those_of_the_launch_directory(
    train: Train, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train("a/b c#=/run", "num_steps=32")
    (workplace / "elsewhere").mkdir()
    monkeypatch.chdir(workplace / "elsewhere")
    assert main(["train", "resume=../a/b c#=/run", "num_steps=64", "quiet=true"]) == 0


def test_a_checkpoint_of_another_name_is_refused(train: Train, refuse: Refuse) -> None:
    run = train("run", "num_steps=32")
    checkpoint.newest_first(run / "checkpoints")[0].rename(run / "checkpoints" / "best.pt")
    line = refuse("train", "resume=run/checkpoints/best.pt", code=1)
    assert "expected a checkpoint named step_<number>.pt" in line


def test_an_end_that_the_run_has_passed_is_refused(train: Train, refuse: Refuse) -> None:
    run = train("run")
    saved = (run / "config.yaml").read_text()
    for word in ("num_steps=96", "stop_step=288"):
        told = refuse("train", "resume=run", word)
        assert told.endswith("the run has reached step 320; give more than that")
    assert (run / "config.yaml").read_text() == saved
    assert main(["train", "resume=run", "num_steps=310", "quiet=true"]) == 0, "the same updates"
