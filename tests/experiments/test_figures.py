"""Figures come with their data, and draw what is missing as missing."""

from pathlib import Path

import numpy as np
import pytest

from sojourn.experiments.drawing.figures import Curve, Panel, draw
from sojourn.experiments.tables import read_table


def curve(label: str, mean: list[float]) -> Curve:
    values = np.array(mean)
    spread = np.where(np.isfinite(values), 0.1, np.nan)
    count = np.isfinite(values).astype(np.int64)
    return Curve(label, np.arange(len(mean)), values, values - spread, values + spread, count)


@pytest.mark.parametrize(
    "means", [[0.1, np.nan, 0.3], [np.nan], [np.nan, 0.5], [-1.0, 2.0], []], ids=str
)
def test_the_data_lies_beside_the_picture(means: list[float], tmp_path: Path) -> None:
    curves = [curve("one", means), curve("two", [0.2] * len(means))]
    panel = Panel("title", "steps", "regret", curves, ("random", np.arange(3), np.arange(3)))
    draw(tmp_path / "figure.png", "figure", "a caption " * 30, [panel, panel])
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    data = read_table(tmp_path / "figure.csv")
    shown = data["mean"][data["curve"] == "one"] if means else np.zeros(0)
    np.testing.assert_array_equal(shown, means * 2)
