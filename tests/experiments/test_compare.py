"""Comparisons show what runs hold: no run changes another's number, none is a silent zero."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sojourn.experiments.command import main
from sojourn.experiments.compare import find_runs
from sojourn.experiments.comparisons.groups import group_runs
from sojourn.experiments.results import RunResult
from sojourn.experiments.tables import read_table, write_table

Train = Callable[..., Path]
Refuse = Callable[..., str]

FIGURES = ("cumulative_regret", "windowed_regret", "regret_at_the_end", "performance_profile")
TOLD_APART = ("regret_by_episode", "regret_split")  # by the episodes of a task


def test_a_comparison_writes_figures_their_data_and_tables(runs: Path) -> None:
    assert main(["compare", "runs/*", "output=out"]) == 0
    for name in FIGURES:
        assert Path("out", f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in Path("out", f"{name}.svg").read_text()
        data = read_table(Path("out", f"{name}.csv"))
        assert set(data["curve"]) == {"memory_reset=lifetime", "memory_reset=never"}
    text = Path("out/comparison.md").read_text()
    assert "memory_reset: lifetime; never" in text
    assert "n = 2, seeds 1, 2" in text and "A single run (n = 1) has no interval" in text
    table = read_table(Path("out/comparison.csv"))
    assert table["normalised regret, all episodes: num_runs"].tolist() == [2, 1]
    assert np.isnan(table["normalised regret, all episodes: low"]).tolist() == [False, True]


def test_episodes_of_a_task_are_told_apart_where_it_has_several(train: Train) -> None:
    for amount in (1, 3):
        run = train(f"run{amount}", f"stream.length.amount={amount}", "slice_steps=32")
        assert main(["compare", str(run), f"output=out{amount}"]) == 0
        drawn = [Path(f"out{amount}", f"{name}.csv").exists() for name in TOLD_APART]
        assert drawn == [amount > 1] * 2
        page = Path(f"out{amount}/report.html").read_text()
        assert page.count("all tasks have one episode") == (2 if amount == 1 else 0)
    data = read_table(Path("out3/regret_by_episode.csv"))
    assert set(data["panel"]) == {f"{name} episode of a task" for name in ("1st", "2nd", "3rd")}


def test_adding_a_run_changes_no_other_number(runs: Path) -> None:
    assert main(["compare", "runs/delta-1", "runs/delta-2", "output=few"]) == 0
    assert main(["compare", "runs/delta-1", "runs/delta-2", "runs/never", "output=more"]) == 0
    few, more = (read_table(Path(folder, "comparison.csv")) for folder in ("few", "more"))
    for name in few:
        if name != "group":
            np.testing.assert_array_equal(few[name][0], more[name][0], err_msg=name)


def test_the_end_is_a_fraction_of_the_steps_or_a_number_of_episodes(runs: Path) -> None:
    run = RunResult.read(runs / "delta-1")
    assert run.final_episodes(0.1).step.min() > 0.9 * run.last_step
    assert len(run.final_episodes(7)) == 7
    assert len(run.final_episodes(1.0)) == 1
    assert len(run.first_episodes(0.5)) + len(run.final_episodes(0.5)) == len(run.episodes)


def test_schedules_are_compared_as_single_values(runs: Path) -> None:
    results = [RunResult.read(runs / name) for name in ("delta-1", "delta-2")]
    results[0].config.trainer.loss.entropy = 0.5
    labels = [group.label for group in group_runs(results)]
    assert labels == ["entropy=0.5", "entropy=Linear(start=0.01, end=0.001)"]


def test_evaluations_are_compared(runs: Path) -> None:
    for seed in (1, 2):
        summary = runs / f"delta-{seed}" / "summary.json"
        found = json.loads(summary.read_text())
        found["evaluation"] = {"all": {"normalised": seed / 10}, "lost_return": {"mean": seed}}
        summary.write_text(json.dumps(found))
    assert main(["compare", "runs/*", "output=out"]) == 0
    table = read_table(Path("out/comparison.csv"))
    assert table["evaluation, normalised regret: mean"][0] == pytest.approx(0.15)
    assert table["evaluation, lost reward per episode: mean"][0] == 1.5
    assert np.isnan(table["evaluation, lost reward per episode: mean"][1]), "none is not zero"


def test_runs_that_differ_by_seed_only_are_one_group(runs: Path) -> None:
    results = [RunResult.read(runs / name) for name in ("delta-1", "delta-2")]
    (group,) = group_runs(results)
    assert group.label == "gated_delta_net" and group.differences == {}
    curves = group.stack("normalised")
    assert curves.shape == (2, len(group.step))
    assert group.final_regret("normalised", 0.1).num_runs == 2
    results[1].config.evaluation.num_lifetimes = 5
    assert len(group_runs(results)) == 1, "an evaluation changes nothing of what was lived"


def test_runs_of_different_lengths_share_the_windows_that_both_lived(runs: Path) -> None:
    """Endless runs that were stopped at different steps may form a group."""
    longer, shorter = (runs / name for name in ("delta-1", "delta-2"))
    lines = (shorter / "metrics.csv").read_text().splitlines(keepends=True)
    (shorter / "metrics.csv").write_text("".join(lines[: len(lines) // 2]))
    (group,) = group_runs([RunResult.read(longer), RunResult.read(shorter)])
    reached = group.runs[1].last_step
    assert group.step[-1] == reached < group.runs[0].last_step
    alone = [run.curves(reached).normalised for run in group.runs]
    np.testing.assert_array_equal(group.stack("normalised"), alone)
    np.testing.assert_array_equal(group.curves[0].step, group.curves[1].step)


@pytest.mark.parametrize("name", ["config.yaml", "status.json", "episodes.csv"])
def test_a_damaged_file_is_named(runs: Path, refuse: Refuse, name: str) -> None:
    path = runs / "never" / name
    path.write_text("{\n" if name != "episodes.csv" else path.read_text() + "x\ny\n")
    line = refuse("compare", "runs/delta-1", "runs/never", code=1)
    assert f"runs/never/{name}" in line


def test_the_same_run_never_counts_twice(runs: Path, refuse: Refuse) -> None:
    shutil.copytree(runs / "never", runs / "again")
    line = refuse("compare", "runs/never", "runs/again", code=1)
    assert "runs/again: same settings and seed as runs/never" in line


def test_a_missing_run_is_an_error_that_names_it(runs: Path, refuse: Refuse) -> None:
    assert "runs/none" in refuse("compare", "runs/delta-1", "runs/none")
    assert "nothing*" in refuse("compare", "nothing*")
    assert "expected run folders" in refuse("compare")


@pytest.mark.parametrize("state", ["failed", "interrupted", "running"])
def test_an_unfinished_run_is_an_error_unless_it_is_included(
    runs: Path, refuse: Refuse, state: str
) -> None:
    path = runs / "delta-2" / "status.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": state}))
    line = refuse("compare", "runs/delta-1", "runs/delta-2", code=1)
    assert "delta-2" in line and ("killed" if state == "running" else state) in line
    expected = 1 if state == "failed" else 0
    assert main(["compare", "runs/*", "unfinished=include", "output=out"]) == expected
    assert main(["compare", "runs/*", "unfinished=skip", "output=skipped"]) == 0
    for name in ("comparison.md", "comparison.tex", "report.html"):
        text = Path("skipped", name).read_text()
        assert "left out: runs/delta-2" in text, name
    assert "n = 1, seeds 1" in Path("skipped/comparison.md").read_text()


def test_a_comparison_without_a_finished_run_is_refused(runs: Path, refuse: Refuse) -> None:
    path = runs / "delta-2" / "status.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "failed"}))
    assert "none of these runs" in refuse("compare", str(path.parent), "unfinished=skip", code=1)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("lst=0.1", "did you mean last?"),
        ("last=some", "expected a fraction"),
        ("last=0", "expected a fraction"),
        ("last=inf", "expected a fraction"),
        ("last=nan", "expected a fraction"),
        ("unfinished=skp", "did you mean skip?"),
    ],
)
def test_a_wrong_option_is_refused(runs: Path, refuse: Refuse, word: str, expected: str) -> None:
    assert expected in refuse("compare", "runs/delta-1", word)


def test_latest_and_folders_of_runs_are_found(train: Train, refuse: Refuse) -> None:
    train("sweep/one")
    train("sweep/two", "seed=2")
    assert main(["compare", "latest", "sweep", "output=out"]) == 0
    assert Path("out/comparison.md").read_text().count("sweep/") == 2, "each run counts once"


def test_every_table_of_regret_names_its_comparator(runs: Path) -> None:
    words = ["reference=memory_reset=never", "declared=all", "output=out"]
    assert main(["compare", "runs/*", *words]) == 0
    for name in ("comparison", "aggregates", "contrasts"):
        assert "(comparator: analytic)" in Path(f"out/{name}.tex").read_text(), name
    assert Path("out/report.html").read_text().count("(comparator: analytic)") >= 3


@pytest.mark.parametrize("given", ["studies/mine", "studies/*", "studies/mine/runs"])
def test_a_study_is_its_runs(runs: Path, given: str) -> None:
    for name in ("delta-1", "delta-2"):
        shutil.copytree(runs / name, Path("studies/mine/runs") / name)
    assert find_runs([given]) == [Path("studies/mine/runs") / n for n in ("delta-1", "delta-2")]


def test_a_folder_without_runs_is_neither_run_nor_study(workplace: Path, refuse: Refuse) -> None:
    Path("empty/runs").mkdir(parents=True)
    assert "empty: neither a run (it has no config.yaml)" in refuse("compare", "empty")


def test_a_run_without_a_finished_episode_can_be_compared(train: Train) -> None:
    run = train("run", "num_steps=32")
    assert main(["compare", str(run), "output=out"]) == 0
    assert "-" in Path("out/comparison.md").read_text()


def test_without_a_reference_returns_are_held_against_the_best_group(
    workplace: Path, train: Train
) -> None:
    ends = {}
    for name, *words in (("low", "memory_reset=never"), ("high",), ("higher", "seed=2")):
        table = train(name, "num_steps=96", *words) / "episodes.csv"
        columns = {key: list(column) for key, column in read_table(table).items()}
        count = len(columns["step"])
        columns |= {key: [np.nan] * count for key in ("optimal_return", "expected_return")}
        ends[name] = {"low": 1.0, "high": 3.0, "higher": 5.0}[name]
        write_table(table, columns | {"total_return": [ends[name]] * count})
    assert main(["compare", "low", "high", "higher", "output=out"]) == 0
    shown = read_table(Path("out/comparison.csv"))
    assert not any("normalised" in name for name in shown)
    assert shown["return at the end: mean"].tolist() == [1.0, 4.0]
    assert shown["relative regret: mean"].tolist() == [3.0, 0.0]
    assert shown["relative regret: num_runs"].tolist() == [1, 2]
    assert all("nan" not in row for row in Path("out/comparison.md").read_text().splitlines())
