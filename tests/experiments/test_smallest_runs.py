"""The smallest slices: statistics over one sample are no source of NaN."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sojourn.experiments.tables import read_table

Train = Callable[..., Path]


@pytest.mark.parametrize(("lifetimes", "steps"), [(1, 1), (1, 5)])
def test_one_advantage_is_enough(train: Train, lifetimes: int, steps: int) -> None:
    size = [f"num_lifetimes={lifetimes}", f"slice_steps={steps}", f"num_steps={3 * steps}"]
    table = read_table(train("one", *size, "log_every=1") / "metrics.csv")
    losses = {n: v for n, v in table.items() if n.startswith("losses/")}
    del losses["losses/explained_variance"]  # of constant targets there is none
    assert len(losses) > 4
    for name, values in losses.items():
        assert len(values) == 3 and np.isfinite(values).all(), name
