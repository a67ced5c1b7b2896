"""A run leaves what it promises, repeats itself, and goes on where it stopped."""

import json
import math
import os
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from omegaconf import OmegaConf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator, ScalarEvent

from sojourn.agents import MetaTrainer, Rollout
from sojourn.experiments import checkpoint, folder, report
from sojourn.experiments.command import main
from sojourn.experiments.recorder import Recorder
from sojourn.experiments.tables import read_table

Train = Callable[..., Path]
Refuse = Callable[..., str]
Same = Callable[[Path, Path], None]
BANDIT = ["stream=bandit"]

DRAW_REGRET = report.draw_regret  # the `train` fixture puts a quick one in its place
FILES = {
    "checkpoints",
    "command.txt",
    "config.yaml",
    "episodes.csv",
    "log.txt",
    "metrics.csv",
    "overrides.txt",
    "regret.csv",
    "regret.png",
    "status.json",
    "summary.json",
    "versions.json",
}


def status(run: Path) -> str:
    return str(json.loads((run / "status.json").read_text())["status"])


def best_step(run: Path) -> int:
    return checkpoint.step_of((run / "checkpoints" / "best").resolve())


def interrupt_at(monkeypatch: pytest.MonkeyPatch, count: int, number: int) -> None:
    """Send this process a signal during its `count`-th rollout."""
    collect, calls = Rollout.collect, iter(range(1, 10**9))

    def collect_and_signal(self: Rollout, *arguments: Any) -> object:
        if next(calls) == count:
            os.kill(os.getpid(), number)
        return collect(self, *arguments)

    monkeypatch.setattr(Rollout, "collect", collect_and_signal)


def test_a_run_leaves_its_files(
    train: Train, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "draw_regret", DRAW_REGRET)
    run = train("run")
    left = {path.name for path in run.iterdir()}
    assert left >= FILES
    assert any(name.startswith("events.") for name in left)
    assert [p.name for p in sorted((run / "checkpoints").iterdir())] == [
        "best",
        "latest",
        *((f"step_{kept:012d}.pt",) if (kept := best_step(run)) < 288 else ()),
        "step_000000000288.pt",
        "step_000000000320.pt",
    ]
    assert status(run) == "done"
    assert Path("runs/latest").resolve() == run.resolve()
    config = OmegaConf.load(run / "config.yaml")
    assert config.trainer.returns.credit == "lifetime"
    assert "${" not in (run / "config.yaml").read_text(), "the saved configuration is resolved"
    assert "folder=run" in (run / "command.txt").read_text()
    assert json.loads((run / "versions.json").read_text())["packages"]["torch"]


def test_metrics_have_one_row_per_update_over_environment_steps(train: Train) -> None:
    metrics = read_table(train("run") / "metrics.csv")
    assert metrics["step"].tolist() == list(range(32, 321, 32))
    assert metrics["update"].tolist() == list(range(1, 11))
    expected = {"charts/episodic_return", "losses/policy_loss", "memory/state_norm"}
    expected |= {"continual/regret", "continual/cumulative_regret", "time/steps_per_second"}
    assert expected <= set(metrics)


def test_episodes_are_complete_and_running_ones_are_marked(train: Train) -> None:
    episodes = read_table(train("run") / "episodes.csv")
    finished = episodes["status"] == "terminated"
    assert finished.sum() == 4 * (80 // 10)
    assert (episodes["num_steps"][finished] == 10).all()
    assert set(episodes["step"].astype(int)) <= set(range(32, 321, 32))


def test_an_episode_without_end_is_logged_all_the_same(train: Train) -> None:
    run = train("run", "stream.schedule.families.0.num_pulls=100000")
    episodes = read_table(run / "episodes.csv")
    assert set(episodes["status"]) == {"running"}
    # At every checkpoint and at the end: 4 lifetimes, each with the steps it has lived.
    assert episodes["step"].tolist() == [s for s in (96, 192, 288, 320) for _ in range(4)]
    assert (episodes["num_steps"] == episodes["step"] / 4).all()


def test_the_same_seed_gives_the_same_bits_and_another_does_not(
    train: Train, assert_same_run: Same
) -> None:
    one, two, other = train("one"), train("two"), train("other", "seed=2")
    assert_same_run(one, two)
    with pytest.raises(AssertionError):
        assert_same_run(one, other)


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


def test_an_existing_folder_is_never_written_to(train: Train, refuse: Refuse) -> None:
    run = train("run", "num_steps=32")
    before = (run / "metrics.csv").read_bytes()
    assert "exists already" in refuse("train", "stream=bandit", "folder=run")
    assert (run / "metrics.csv").read_bytes() == before


def test_a_failure_leaves_a_traceback_in_the_folder(
    train: Train, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> dict[str, float]:
        raise FloatingPointError("non-finite gradient in memory.blocks.0")

    monkeypatch.setattr(MetaTrainer, "update", fail)
    run = train("run", code=1)
    assert status(run) == "failed"
    assert "Traceback" in (run / "log.txt").read_text()
    err = capsys.readouterr().err
    assert "failed at step 0: FloatingPointError: non-finite gradient" in err
    assert "Traceback" not in err and "resume with: sojourn train resume=run" in err


def test_a_full_disk_is_said_in_two_lines(
    train: Train, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    collect = Rollout.collect

    def fill_the_disk(self: Rollout, *arguments: Any) -> object:
        monkeypatch.setattr(folder, "write_atomically", full)
        monkeypatch.setattr(Recorder, "record", full)
        return collect(self, *arguments)

    monkeypatch.setattr(Rollout, "collect", fill_the_disk)
    train("run", code=1)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and "No space left on device" in lines[0]


def test_a_launch_directory_that_cannot_be_written_is_no_obstacle(
    train: Train, workplace: Path
) -> None:
    (workplace / "runs").write_text("in the way")
    assert status(train("elsewhere", "num_steps=32")) == "done"


def test_a_checkpoint_of_another_name_is_refused(train: Train, refuse: Refuse) -> None:
    run = train("run", "num_steps=32")
    checkpoint.newest_first(run / "checkpoints")[0].rename(run / "checkpoints" / "best.pt")
    line = refuse("train", "resume=run/checkpoints/best.pt", code=1)
    assert "expected a checkpoint named step_<number>.pt" in line


def test_debug_is_one_short_loop(train: Train) -> None:
    run = train("run", "debug=true", "num_steps=null")
    assert not torch.is_anomaly_enabled()
    assert not torch.are_deterministic_algorithms_enabled()
    assert len(read_table(run / "metrics.csv")["step"]) == 3


def test_an_endless_run_ends_when_it_is_told_to(
    train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_at(monkeypatch, 5, signal.SIGINT)
    run = train("run", "num_steps=null", code=130)
    assert status(run) == "interrupted"
    rate = read_table(run / "metrics.csv")["charts/learning_rate"]
    assert (rate == rate[0]).all(), "without an end there is no annealing"


def test_evaluation_measures_fresh_lifetimes_and_changes_nothing(
    train: Train, assert_same_run: Same
) -> None:
    plain = train("plain")
    run = train("run", "evaluation.num_lifetimes=6", "evaluation.steps=10")
    assert_same_run(plain, run)
    evaluation = json.loads((run / "summary.json").read_text())["evaluation"]
    assert evaluation["num_lifetimes"] == 6
    assert math.isfinite(evaluation["all"]["normalised"])
    rows = read_table(run / "evaluation.csv")
    assert sorted(set(rows["lifetime"].astype(int))) == list(range(6))
    trained_on = read_table(run / "episodes.csv")["optimal_return"]
    assert not np.isin(rows["optimal_return"], trained_on).any(), "tasks it was trained on"


def test_what_is_printed_says_where_regret_went(
    train: Train, capsys: pytest.CaptureFixture[str]
) -> None:
    train("run", "quiet=false")
    out = capsys.readouterr().out
    for expected in ("parameters", "bytes per lifetime", "Regret by episode", "regret.png"):
        assert expected in out
    assert "sojourn train resume=run" in out and "sojourn compare run" in out
    capsys.readouterr()
    train("quiet")
    assert capsys.readouterr() == ("", "")


def test_warnings_become_lines_of_the_log(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    update = MetaTrainer.update

    def warn(self: MetaTrainer, *arguments: Any) -> dict[str, float]:
        warnings.warn("ratio is off", stacklevel=1)
        return update(self, *arguments)

    monkeypatch.setattr(MetaTrainer, "update", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        run = train("run", "num_steps=32")
    assert "warning: ratio is off" in (run / "log.txt").read_text()


def test_a_folder_that_cannot_be_made_is_refused(refuse: Refuse, workplace: Path) -> None:
    (workplace / "file").write_text("")
    assert "folder: cannot be made here" in refuse("train", *BANDIT, "folder=file/run")


@pytest.mark.slow
def test_a_long_run_does_not_grow(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    process, seen, record = psutil.Process(), [], Recorder.record

    def watch(self: Recorder, step: int, *arguments: Any) -> None:
        record(self, step, *arguments)
        seen.append((step, process.memory_info().rss, process.num_fds()))

    monkeypatch.setattr(Recorder, "record", watch)
    train("run", "num_lifetimes=16", "slice_steps=20", "num_steps=100_000", "log_every=1")
    early = next(s for s in seen if s[0] >= 20_000)
    assert seen[-1][1] - early[1] < 20e6
    assert seen[-1][2] == early[2]
