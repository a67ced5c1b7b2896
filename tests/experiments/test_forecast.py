"""`estimate=true`: what is told before a launch is what it then takes, and leaves nothing."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sojourn.experiments import forecast as module
from sojourn.experiments.command import main
from sojourn.experiments.forecast import evaluated_steps, forecast, num_updates
from sojourn.experiments.pace import NUM_MEASURED, Duration, Pace, clock
from sojourn.experiments.request import prepare
from sojourn.experiments.studies.cost import Cost, total_line
from sojourn.experiments.tables import read_table

from .conftest import TINY

Train = Callable[..., Path]


def test_the_first_update_is_left_out_and_the_others_give_the_range() -> None:
    pace = Pace()
    with pytest.raises(ValueError, match="no update"):
        pace.per_update()
    ends = [pace.add(seconds) for seconds in (50.0, 1.0, 3.0, 2.0, 2.0, 2.0, 99.0)]
    assert [i for i, end in enumerate(ends) if end] == [NUM_MEASURED]
    assert pace.per_update() * 10 + Duration(1, 1, 1) == Duration(21.0, 11.0, 31.0)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.25, "0.2 s"), (99, "99 s"), (120, "2.0 min"), (7200, "2.0 h"), (4 * 86400, "4.0 days")],
)
def test_times_are_said_in_words(seconds: float, expected: str) -> None:
    assert clock(seconds) == expected


def test_what_is_foretold_is_what_the_run_leaves(train: Train, workplace: Path) -> None:
    words = ["num_steps=3200", "memory.num_heads=2", "checkpoint_every=1000"]
    told = forecast([*TINY, *words])
    assert not list(workplace.iterdir()), "nothing is left of it"
    run = train("run", *words)
    metrics = read_table(run / "metrics.csv")
    assert told.num_updates == len(metrics["step"]) == 100
    tables = sum(path.stat().st_size for path in run.iterdir() if path.is_file())
    saved = [path.stat().st_size for path in (run / "checkpoints").glob("step_*.pt")]
    # A best checkpoint may be among the newest; state grows by the luck of a few running episodes.
    assert told.checkpoint_bytes == pytest.approx(max(saved), rel=0.1)
    fixed = sum((run / name).stat().st_size for name in ("config.yaml", "versions.json"))
    assert told.disk_bytes - 3 * told.checkpoint_bytes == pytest.approx(tables - fixed, rel=0.35)
    assert told.duration.low <= told.duration.mean <= told.duration.high
    assert told.memory_bytes > 50e6


def test_evaluation_is_counted() -> None:
    words = ["evaluation.num_lifetimes=40", "evaluation.steps=10", "evaluation.every=100"]
    settings = prepare([*TINY, *words]).settings
    assert num_updates(settings) == 10
    assert evaluated_steps(settings) == 40 * 10 + 3 * 2 * 16 * 10
    assert evaluated_steps(prepare(TINY).settings) == 0
    assert num_updates(prepare([*TINY, "num_steps=null"]).settings) == 1_000_000 // 32


@pytest.mark.parametrize(
    ("memory", "num_pulls", "grew"),
    [("softmax_attention", 100, True), ("softmax_attention", 8, False), ("delta_net", 100, False)],
)
def test_a_memory_that_grows_within_a_life_takes_at_least_as_long(
    memory: str, num_pulls: int, grew: bool
) -> None:
    told = forecast(
        [*TINY, f"memory={memory}", f"stream.schedule.families.0.num_pulls={num_pulls}"]
    )
    assert told.grew == grew
    assert told.lines()[0].startswith("time at least" if grew else "time about")
    assert ("grows within a life" in told.lines()[0]) == grew


def test_slow_updates_are_measured_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SECONDS", 0.0)
    assert forecast(TINY).num_measured == 1


def test_the_command_tells_and_makes_no_run(
    workplace: Path, capsys: pytest.CaptureFixture[str], refuse: Callable[..., str], train: Train
) -> None:
    assert main(["train", *TINY, "estimate=true"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"time about [\d.]+ \w+ \([\d.]+ \w+ to .*: 10 updates", told)
    assert "memory about" in told and "disk about" in told
    assert not list(workplace.iterdir())
    run = train("run", "num_steps=32")
    assert "estimate: of a new run" in refuse("train", f"resume={run}", "estimate=true")


def test_a_run_says_what_is_left_of_it(train: Train) -> None:
    lines = (train("run") / "log.txt").read_text().splitlines()
    (told,) = (line for line in lines if "updates are left" in line)
    assert told.startswith(f"{10 - 1 - NUM_MEASURED} updates are left: about ")


def test_a_study_is_members_times_estimate(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*TINY, "memory=gated_delta_net", "seed=0..2", "output=study"]
    assert main(["study", *words, "estimate=true", "jobs=2"]) == 0
    told = capsys.readouterr().out
    assert "3 members take about" in told and "jobs=2" in told
    assert not list(workplace.iterdir())


def test_the_total_of_a_study() -> None:
    def cost(name: str, count: int, seconds: float, megabytes: int) -> Cost:
        size = megabytes * 10**6
        each = module.Forecast(1, 1, Duration(seconds, seconds, seconds), size, 1, size)
        return Cost(name, count, each)

    line = total_line([cost("a", 3, 40.0, 100), cost("b", 1, 80.0, 300)], jobs=2)
    assert line.startswith("4 members take about 1.7 min (") and "at most 400 MB of memory" in line
    assert line.endswith("600 MB of disk")
    assert total_line([], jobs=2) == "nothing is left to run"
