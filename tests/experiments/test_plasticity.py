"""Plasticity beside the training: off by default, read only, in the table of metrics."""

from collections.abc import Callable

import numpy as np
import torch

from sojourn.experiments import checkpoint
from sojourn.experiments.command import main
from sojourn.experiments.tables import read_table

from .conftest import Train, same

MEASURES = {
    "dormant",
    "dormant_loose",
    "feature_rank",
    "token_rank",
    "weight_norm",
    "memory_weight_norm",
    "update_ratio",
}


def test_every_third_update_is_measured_and_the_run_does_not_feel_it(train: Train) -> None:
    plain, measured = train("plain"), train("measured", "plasticity_every=3")
    one, other = (read_table(run / "metrics.csv") for run in (plain, measured))
    extra = {name for name in other if name.startswith("plasticity/")}
    assert extra == {f"plasticity/{name}" for name in MEASURES}
    assert set(other) - set(one) == extra
    for name in one:
        if not name.startswith("time/"):
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    for name in extra:
        assert (np.isfinite(other[name]) == (other["update"] % 3 == 0)).all(), name
    for name in ("agent", "trainer", "rollout", "generators"):
        found = [checkpoint.load_newest(run / "checkpoints")[1][name] for run in (plain, measured)]
        same(found[0], found[1], name)


def test_the_norm_and_the_ratio_are_those_of_the_update(train: Train) -> None:
    run = train("run", "plasticity_every=1", "checkpoint_every=32", "keep_checkpoints=99")
    metrics = read_table(run / "metrics.csv")
    saved = [checkpoint.load(path) for path in checkpoint.newest_first(run / "checkpoints")[::-1]]
    weights = [torch.cat([part.flatten() for part in one["agent"].values()]) for one in saved]
    for i in range(3):
        step = (weights[i + 1] - weights[i]).norm() / weights[i].norm()
        np.testing.assert_allclose(metrics["plasticity/update_ratio"][i], float(step), rtol=1e-5)
        norm = float(weights[i].norm())
        np.testing.assert_allclose(metrics["plasticity/weight_norm"][i], norm, rtol=1e-5)


def test_a_resumed_run_has_every_measure_once(train: Train) -> None:
    run = train("run", "plasticity_every=2")
    whole = read_table(run / "metrics.csv")
    early = checkpoint.newest_first(run / "checkpoints")[-1]
    assert checkpoint.step_of(early) < 320
    assert main(["train", f"resume={early}", "quiet=true"]) == 0
    again = read_table(run / "metrics.csv")
    assert list(again) == list(whole)
    for name in whole:
        if not name.startswith("time/"):
            np.testing.assert_array_equal(whole[name], again[name], err_msg=name)


def test_a_negative_number_is_refused(refuse: Callable[..., str]) -> None:
    line = refuse("train", "plasticity_every=-1")
    assert line == "sojourn: plasticity_every: expected 0 (off) or more updates, got -1"
