"""A run leaves what it promises, repeats itself, and fails in order."""

import json
import math
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

from sojourn.agents import MetaTrainer, Rollout
from sojourn.experiments import checkpoint, folder, report
from sojourn.experiments.recorder import Recorder
from sojourn.experiments.tables import read_table

from .conftest import interrupt_at, status

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


def best_step(run: Path) -> int:
    return checkpoint.step_of((run / "checkpoints" / "best").resolve())


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
    run = train("run", "memory=kda", code=1)
    assert status(run) == "failed"
    assert "Traceback" in (run / "log.txt").read_text()
    err = capsys.readouterr().err
    assert "failed at step 0: FloatingPointError: non-finite gradient" in err
    assert "in memory.blocks.0 (memory=kda)\n" in err
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
