"""What is left when a run ends: summary.json, regret.png, and the table of where regret went."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.table import Table
from scipy import stats

from sojourn.envs import Reference, Stream, Task, is_provisional

from .drawing.figures import Curve, Panel, draw
from .drawing.panels import Picture
from .episodes import Episodes, Regret
from .privileges import privileges
from .results import Array, RunResult
from .tracker import MAX_EPISODES

NUM_SEGMENTS = 20  # of a lifetime that are looked at for their tasks
LAG_SEGMENTS = 256  # the same for the steps between a cue and its use: ladders grow slowly
NO_REFERENCE = "none"  # kind of what nobody has measured
LAST = 0.1  # fraction of a run that counts as its start or its end
KINDS, INFORMED = "normalised | raw", " | against informed play"
ORDINALS = ("1st", "2nd", "3rd", "4th", "5th")


@dataclass(frozen=True)
class Sizes:
    """What an agent costs."""

    num_parameters: int
    state_bytes: int


def summarise(
    result: RunResult, sizes: Sizes, stream: Stream, evaluation: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The content of summary.json: regret at start and end by episode, speed and size."""
    start, end = result.first_episodes(LAST), result.final_episodes(LAST)
    return {
        "choices": {str(k): v for k, v in result.config.choices.items()},
        "seed": result.config.seed,
        "privileges": privileges(result.config),
        "steps": result.last_step,
        "updates": len(result.metrics.get("step", ())),
        **asdict(sizes),
        "steps_per_second": result.steps_per_second,
        "comparators": comparators(stream),
        "references": {name: reference_row(r) for name, r in references(stream).items()},
        "regret_definition": {
            "normalised": "(J* - J) / (J* - J_random), a ratio of means within a task",
            "raw": "(J* - J) / J*",
            "window": f"first and last {LAST:.0%} of the steps",
        },
        "regret_start": _by_episode(start),
        "regret_end": _by_episode(end),
        "return_end": _mean(end.achieved),
        "evaluation": evaluation,
    }


def evaluation_summary(episodes: Episodes) -> dict[str, Any]:
    """Return and regret of an evaluation, with standard errors over lifetimes.

    The errors tell how well this one agent was measured, not how agents differ.
    """
    lost = episodes.optimal - episodes.achieved
    return {
        "num_lifetimes": len(np.unique(episodes.lifetime)),
        "num_episodes": len(episodes),
        "return": _over_lifetimes(episodes.achieved, episodes.lifetime),
        "lost_return": _over_lifetimes(lost, episodes.lifetime),
        **_by_episode(episodes),
    }


def comparators(stream: Stream) -> dict[str, str]:
    """Task name -> kind of its reference, and whether it is only provisional."""
    return {
        name: NO_REFERENCE if found is None else found.kind + provisional(found)
        for name, found in references(stream).items()
    }


def lags(stream: Stream) -> dict[str, int]:
    """Task name -> steps from cue to use, of the first tasks of the first lifetime that have it."""
    return {task.name: task.lag for task in _first_tasks(stream) if task.lag is not None}


def success_tasks(stream: Stream) -> frozenset[str]:
    """Names of the tasks that pay for success alone, among the first of the first lifetime."""
    return frozenset(task.name for task in _first_tasks(stream) if task.pays_success)


def _first_tasks(stream: Stream) -> list[Task]:
    count = min(stream.num_segments(0) or LAG_SEGMENTS, LAG_SEGMENTS)
    return [stream.segment(0, index).task for index in range(count)]


def references(stream: Stream) -> dict[str, Reference | None]:
    """Task name -> its reference, from the first segments of the first lifetime."""
    tasks = [stream.segment(0, index).task for index in range(NUM_SEGMENTS)]
    return {task.name: task.reference for task in tasks}


def provisional(reference: Reference) -> str:
    """What stands behind the kind of a ceiling whose error is above a tenth of the gap."""
    return " (provisional)" if is_provisional(reference) else ""


def reference_row(reference: Reference | None) -> dict[str, Any] | None:
    """Everything that a regret against a reference must carry."""
    if reference is None:
        return None
    row = {key: value for key, value in asdict(reference).items() if value is not None}
    return row | {"provisional": is_provisional(reference)}


def draw_regret(result: RunResult) -> None:
    """Write regret.png and regret.csv into the run folder."""
    shown = regret_picture(result)
    draw(result.path / f"{shown.name}.png", shown.title, shown.caption, shown.panels)


def regret_picture(result: RunResult) -> Picture:
    """Regret over training: by episode within a task, and summed."""
    curves = result.curves()
    memory, stream = result.config.choices.memory, result.config.choices.stream
    step = np.append(0, curves.step)
    by_episode = [
        _single(f"{ordinal(i)} episode", curves.step, values)
        for i, values in enumerate(curves.by_episode)
    ]
    total = _single("this run", step, np.append(0.0, curves.cumulative))
    return Picture(
        "regret",
        f"{memory} on {stream}, seed {result.config.seed}",
        f"One run (n = 1), {len(curves.step)} windows. {regret_scale([result.summary])}",
        [
            Panel(
                "Regret by episode within a task",
                "environment steps",
                "normalised regret",
                by_episode,
            ),
            Panel(
                "Cumulative regret, mean over parallel lives",
                "environment steps",
                "normalised regret × steps",
                [total],
                ("uniform random policy", step, step / int(result.config.num_lifetimes)),
            ),
        ],
    )


def regret_scale(summaries: Iterable[Mapping[str, Any]]) -> str:
    """What 0 and 1 mean on the axis of normalised regret, with the kinds of comparator."""
    kinds = sorted({kind for s in summaries for kind in s.get("comparators", {}).values()})
    return (
        f"Normalised regret: 0 = optimal (comparator: {', '.join(kinds) or 'unknown'}), "
        "1 = uniform random policy."
    )


def regret_table(summary: Mapping[str, Any]) -> Table:
    """Where the regret went: by episode of a task, at the start and at the end of training."""
    informed = summary["regret_end"]["all"]["informed"] is not None
    kinds = KINDS + (INFORMED if informed else "")
    table = Table(title=f"Regret by episode within a task ({kinds})", title_justify="left")
    table.add_column("episode")
    table.add_column("first 10 % of the steps", justify="right")
    table.add_column("last 10 %", justify="right")
    start, end = summary["regret_start"], summary["regret_end"]
    rows = max(len(start["by_episode"]), len(end["by_episode"]))
    for index in range(rows):
        cells = [_cell(part["by_episode"], index) for part in (start, end)]
        table.add_row(ordinal(index), *cells)
    table.add_row("all", _cell([start["all"]], 0), _cell([end["all"]], 0))
    return table


def ordinal(index: int) -> str:
    """1st, 2nd ... for an index that counts from 0."""
    return ORDINALS[index] if index < len(ORDINALS) else f"{index + 1}th"


def evaluation_line(evaluation: Mapping[str, Any]) -> str:
    """One line: mean return, what the best policy would have had more, and normalised regret."""
    reached, lost = evaluation["return"], evaluation["lost_return"]
    informed = evaluation["all"].get("informed") is not None
    return (
        f"evaluation on {evaluation['num_lifetimes']:,} fresh lifetimes: "
        f"return per episode {_with_error(reached)}, lost to the reference {_with_error(lost)}; "
        f"regret {KINDS}{INFORMED if informed else ''} {_cell([evaluation['all']], 0)}"
    )


def _with_error(number: Mapping[str, float | None]) -> str:
    mean, error = number["mean"], number["standard_error"]
    if mean is None:
        return "-"
    return f"{mean:.3f}" if error is None else f"{mean:.3f} ± {error:.3f} (s.e.)"


def _mean(values: Array) -> float | None:
    return float(np.mean(values)) if len(values) and np.isfinite(values).all() else None


def _by_episode(episodes: Episodes) -> dict[str, Any]:
    indices = range(episodes.num_indices(MAX_EPISODES))
    return {
        "all": _plain(episodes.regret()),
        "by_episode": [_plain(episodes.of_index(index).regret()) for index in indices],
    }


def _plain(regret: Regret) -> dict[str, float | int | None]:
    """JSON has no NaN: a missing value is null."""
    return {
        k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(regret).items()
    }


def _cell(regrets: Sequence[Mapping[str, Any]], index: int) -> str:
    if index >= len(regrets) or regrets[index]["normalised"] is None:
        return "-"
    shown = [regrets[index][kind] for kind in ("normalised", "raw", "informed")]
    return " | ".join(f"{value:.3f}" for value in shown if value is not None)


def _over_lifetimes(values: Array, lifetimes: Array) -> dict[str, float | None]:
    known = np.isfinite(values)
    _, index = np.unique(lifetimes[known], return_inverse=True)
    means = np.bincount(index, values[known]) / np.bincount(index)
    return {
        "mean": float(means.mean()) if len(means) else None,
        "standard_error": float(stats.sem(means)) if len(means) > 1 else None,
    }


def _single(label: str, x: Array, values: Array) -> Curve:
    none = np.full(len(values), np.nan)
    return Curve(label, x, values, none, none, np.isfinite(values).astype(np.int64))
