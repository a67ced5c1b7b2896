"""Figures come with their data, and draw what is missing as missing."""

from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from sojourn.experiments.drawing.figures import Curve, Panel, draw
from sojourn.experiments.drawing.panels import limits
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


def test_limits_hold_whiskers_as_far_as_the_means_spread() -> None:
    x, mean = np.arange(2), np.array([0.0, 1.0])
    count = np.array([2, 2])

    def shown(kind: Literal["lines", "points"], spread: float) -> tuple[float, float]:
        band = Curve("one", x, mean, mean - spread, mean + spread, count)
        return limits([Panel("title", "x", "y", [band], kind=kind)])

    assert shown("lines", 0.5) == pytest.approx((0.0, 1.15))
    assert shown("points", 0.5) == pytest.approx((-0.5 - 0.3, 1.5 + 0.3))
    assert shown("points", 40.0) == pytest.approx((-1.0 - 0.45, 2.0 + 0.45)), "they are cut"
