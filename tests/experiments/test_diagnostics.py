"""Measures of the memory in a run: written on time, resumed without a gap, and without a trace."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from sojourn.experiments import checkpoint
from sojourn.experiments.command import main
from sojourn.experiments.diagnostics import mean_measures, measure_rows
from sojourn.experiments.tables import LateTable, read_table

Train = Callable[..., Path]
MEASURES = {
    "0": {"norm": torch.tensor([1.0, 3.0]), "rows": torch.tensor([0.5])},
    "1": {"half_life": torch.tensor([torch.inf, 2.0])},
}


def test_a_row_for_every_layer_and_head() -> None:
    assert list(measure_rows(7, MEASURES)) == [
        {"step": 7, "layer": "0", "head": 0, "norm": 1.0, "rows": 0.5},
        {"step": 7, "layer": "0", "head": 1, "norm": 3.0},
        {"step": 7, "layer": "1", "head": 0, "half_life": np.inf},
        {"step": 7, "layer": "1", "head": 1, "half_life": 2.0},
    ]
    assert mean_measures(MEASURES) == {"memory/0/norm": 2.0, "memory/0/rows": 0.5}


def test_the_table_appears_with_its_first_row_and_is_cut_back(tmp_path: Path) -> None:
    path = tmp_path / "diagnostics.csv"
    table = LateTable(path, keep=0)
    table.sync()
    assert table.num_rows == 0 and not path.exists()
    table.append(measure_rows(10, MEASURES))
    table.append(measure_rows(20, MEASURES))
    table.close()
    again = LateTable(path, keep=4)
    assert again.num_rows == 4
    again.close()
    columns = read_table(path)
    assert set(columns["step"]) == {10.0} and np.isinf(columns["half_life"][2])


def test_measuring_leaves_training_bit_for_bit_the_same(
    train: Train, assert_same_run: Callable[[Path, Path], None]
) -> None:
    plain, measured = train("plain"), train("measured", "diagnostics_every=3")
    assert not (plain / "diagnostics.csv").exists()
    columns = read_table(measured / "diagnostics.csv")
    assert columns["step"].tolist() == [96.0, 192.0, 288.0]  # ten updates of 32 steps
    assert np.isfinite(columns["loss_before"]).all() and (columns["weights_norm"][1:] > 0).all()
    content = [checkpoint.load_newest(run / "checkpoints")[1] for run in (plain, measured)]
    assert [one["rows"].pop("diagnostics") for one in content] == [0, 3]
    for run, one in zip((plain, measured), content, strict=True):
        checkpoint.save(run / "checkpoints", one.pop("step"), one, keep=9)
    assert_same_run(plain, measured)


def test_a_resumed_run_has_every_measure_once(train: Train) -> None:
    run = train("run", "diagnostics_every=2")
    whole = (run / "diagnostics.csv").read_bytes()
    early = checkpoint.newest_first(run / "checkpoints")[-1]
    assert checkpoint.step_of(early) < 320
    assert main(["train", f"resume={early}", "quiet=true"]) == 0
    assert (run / "diagnostics.csv").read_bytes() == whole


def test_tensorboard_shows_the_measures(train: Train) -> None:
    run = train("run", "diagnostics_every=5")
    events = EventAccumulator(str(run))
    events.Reload()
    shown = [event.step for event in events.Scalars("memory/0/loss_before")]
    assert shown == [160, 320]


@pytest.mark.parametrize(
    ("memory", "layers"),
    [("gru", {0.0}), ("none", {0.0}), ("hybrid", {"0.long_term", "0.short_term"})],
)
def test_any_memory_can_be_measured(workplace: Path, memory: str, layers: set[object]) -> None:
    words = [
        f"memory={memory}",
        "stream=bandit",
        "num_lifetimes=2",
        "slice_steps=4",
        "num_steps=16",
    ]
    assert main(["train", *words, "diagnostics_every=2", "folder=run", "quiet=true"]) == 0
    columns = read_table(workplace / "run" / "diagnostics.csv")
    assert set(columns["layer"]) == layers and set(columns["step"]) == {16.0}
    assert ("loss_before" in columns) == (memory == "hybrid")


def test_a_negative_interval_is_refused(refuse: Callable[..., str]) -> None:
    line = refuse("train", "diagnostics_every=-1")
    assert line == "sojourn: diagnostics_every: expected 0 (off) or more updates, got -1"
