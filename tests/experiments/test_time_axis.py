"""What is drawn along the life of runs: borders that all lives share, and measures of memories."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sojourn.experiments.comparisons.groups import group_runs
from sojourn.experiments.comparisons.time_axis import common_borders, memory_panels
from sojourn.experiments.pages.chart import chart
from sojourn.experiments.results import RunResult


def groups_of(*paths: Path) -> Any:
    return group_runs([RunResult.read(path) for path in paths])


def relive(run: Path, ends: dict[int, list[int]]) -> None:
    """Let a run's lifetimes end their segments at these steps."""
    path = run / "episodes.csv"
    header, row, *_ = path.read_text().splitlines()
    cells = dict(zip(header.split(","), row.split(","), strict=True))
    rows = [
        cells | {"step": str(step), "lifetime": str(lifetime), "segment": str(segment)}
        for lifetime, steps in ends.items()
        for segment, step in enumerate(steps)
    ]
    path.write_text("\n".join([header, *(",".join(cells.values()) for cells in rows)]) + "\n")


def test_borders_are_where_every_life_of_every_run_meets_its_next_task(runs: Path) -> None:
    together = {lifetime: [64, 160, 300] for lifetime in range(4)}
    everyone = [runs / name for name in ("delta-1", "delta-2", "never")]
    for run in everyone:
        relive(run, together)
    assert common_borders(groups_of(*everyone)) == [64, 160]
    relive(runs / "never", together | {3: [64, 192, 300]})
    assert common_borders(groups_of(runs / "never")) == []
    assert common_borders(groups_of(*everyone)) == []
    relive(runs / "never", together | {3: [64, 160]})
    assert common_borders(groups_of(runs / "never")) == [], "one life is behind"


def test_lives_that_end_have_no_borders(runs: Path) -> None:
    """Bandits as shipped: every lifetime has one segment, and others follow."""
    assert common_borders(groups_of(runs / "delta-1")) == []


def test_measures_are_means_over_layers_heads_and_runs(runs: Path) -> None:
    groups = groups_of(runs / "delta-1", runs / "delta-2")
    assert memory_panels(groups, "steps") == [], "no run was measured"
    for shift, name in enumerate(("delta-1", "delta-2")):
        (runs / name / "diagnostics.csv").write_text(
            "step,layer,head,weights_norm,keys_norm,half_life_50\n"
            f"8,0,0,{3 + shift},4,inf\n8,0,1,{6 + shift},8,7\n"
            f"16,0,0,{3 + shift},4,inf\n16,0,1,{3 + shift},,inf\n"
        )
    panels = {panel.title: panel for panel in memory_panels(groups, "steps")}
    (norm,) = panels["Memory norm"].curves
    first = [(5 + 10) / 2, (np.hypot(4, 4) + np.hypot(7, 8)) / 2]
    second = [(5 + 3) / 2, (np.hypot(4, 4) + 4) / 2]
    assert norm.x.tolist() == [8, 16]
    assert norm.mean == pytest.approx([np.mean(first), np.mean(second)])
    (half_life,) = panels["Median half-life"].curves
    assert (half_life.x.tolist(), half_life.mean.tolist()) == ([8], [7])
    assert panels["Effective rank"].curves == []


def test_groups_far_apart_are_shown_by_powers_of_ten(runs: Path) -> None:
    for name, norms in (("delta-1", (10, 1)), ("delta-2", (1000, 100)), ("never", (1e5, 1e6))):
        rows = "".join(f"{8 * n},0,0,{norm},{norm}\n" for n, norm in enumerate(norms, start=1))
        header = "step,layer,head,weights_norm,loss_ahead_4\n"
        (runs / name / "diagnostics.csv").write_text(header + rows)
    groups = groups_of(*(runs / name for name in ("delta-1", "delta-2", "never")))
    for panel in memory_panels(groups, "steps"):
        if panel.title in ("Memory norm", "Loss on pairs 4 tokens ahead"):
            assert panel.y_scale == "log" and "geometric mean" in panel.y_label
            low, other = panel.curves
            assert low.mean == pytest.approx([100, 10]) and other.mean == pytest.approx([1e5, 1e6])
            assert (low.low > 0).all() and np.isnan(other.low).all()
            svg = chart(panel, [panel], [c.label for c in panel.curves], "norm")
            assert "nan" not in svg and ">1M<" in svg
