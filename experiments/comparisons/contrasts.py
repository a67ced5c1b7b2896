"""Groups beside each other: robust means of each, and how each differs from a reference group.

Which groups are compared with the reference is declared before one looks, so that Holm's
adjustment is over that set only and a further group changes no number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import UsageError, hint
from ..statistics import Interval, interval
from ..tables import Cell
from .comparison import Comparison
from .contrast_statistics import (
    holm,
    improvement,
    interquartile_mean,
    probability_of_no_difference,
    worst_mean,
)
from .groups import Group

DEFAULT_REFERENCE = "gru"
ALL = "all"
END = "normalised"


@dataclass(frozen=True)
class Declared:
    """The reference group, and the groups whose differences from it were declared.

    `reference` is None where nothing is to be compared.
    """

    reference: Group | None = None
    compared: Sequence[Group] = ()


@dataclass(frozen=True)
class Contrast:
    """A group beside the reference group: regret of it less that of the reference, by seeds that
    both have; how likely one of its runs has less regret; p, and p after Holm (NaN: not declared).
    """

    label: str
    reference: str
    difference: Interval
    improvement: Interval
    p: float
    adjusted: float


def declare(groups: Sequence[Group], reference: str, compared: str) -> Declared:
    """The groups that words name: labels, or memories that only one group has.

    An empty `reference` is the group of the GRU, if there is just one; `compared` is `all`, names
    with `;` between them (`,` where no label has one), or empty. Raises UsageError for an unknown
    name.
    """
    if not reference:
        found = _named(groups, DEFAULT_REFERENCE)
        if len(found) != 1 or len(groups) < 2:
            if compared not in ("", ALL):
                raise UsageError("declared: give reference=GROUP, which they are compared with")
            return Declared()
    chosen = _one(groups, reference or DEFAULT_REFERENCE, "reference")
    others = [group for group in groups if group is not chosen]
    if compared == ALL:
        return Declared(chosen, others)
    sign = ";" if ";" in compared or any("," in group.label for group in groups) else ","
    names = dict.fromkeys(name.strip() for name in compared.split(sign) if name.strip())
    declared = [_one(groups, name, "declared") for name in names]
    if chosen in declared:
        raise UsageError(f"declared: {chosen.label} is the reference itself")
    return Declared(chosen, declared)


def contrasts(groups: Sequence[Group], declared: Declared, last: float) -> list[Contrast]:
    """Every group but the reference beside it; none without a reference."""
    if declared.reference is None:
        return []
    reference = declared.reference
    others = [group for group in groups if group is not reference]
    differences = {id(group): _paired(group, reference, last) for group in others}
    p_values = {key: probability_of_no_difference(found) for key, found in differences.items()}
    kept = [id(group) for group in declared.compared]
    adjusted = dict(zip(kept, holm([p_values[key] for key in kept]), strict=True))
    base = reference.final_values(END, last)
    return [
        Contrast(
            group.label,
            reference.label,
            interval(differences[id(group)]),
            improvement(group.final_values(END, last), base),
            p_values[id(group)],
            adjusted.get(id(group), np.nan),
        )
        for group in others
    ]


def contrast_table(found: Sequence[Contrast]) -> Comparison:
    """A row for every group beside the reference."""
    columns = {
        "group": [one.label for one in found],
        "reference": [one.reference for one in found],
        "pairs": [str(one.difference.num_runs) for one in found],
        "regret less the reference's": [str(one.difference) for one in found],
        "p": [_p(one.p) for one in found],
        "p after Holm": [_p(one.adjusted) for one in found],
        "probability of improvement": [str(one.improvement) for one in found],
    }
    data: dict[str, list[Cell]] = {name: list(columns[name]) for name in ("group", "reference")}
    data["pairs"] = [one.difference.num_runs for one in found]
    data |= _numbers("regret less the reference's", [one.difference for one in found])
    data |= {"p": [one.p for one in found], "p after Holm": [one.adjusted for one in found]}
    data |= _numbers("probability of improvement", [one.improvement for one in found])
    notes = [
        "Paired by seed; below 0 the group has less regret than the reference.",
        "p: two-sided, of the same make as the interval. Holm is over the declared groups only "
        "(declared=...); a group that was not declared has no adjusted p.",
        "Probability of improvement: that a run of the group has less regret than a run of the "
        "reference, ties counting half; no interval where all runs of one are below all of the "
        "other.",
    ]
    return _table(columns, data, notes)


def aggregate_table(groups: Sequence[Group], last: float) -> Comparison:
    """A row for every group: normalised regret of its runs at their end, as mean, split into
    transient and residual, interquartile mean and tail.
    """
    values = [group.final_values(END, last) for group in groups]
    means, middles = [interval(v) for v in values], [interquartile_mean(v) for v in values]
    worst = [worst_mean(v) for v in values]
    splits = [np.array([run.final_split(last) for run in group.runs]) for group in groups]
    transient, residual = ([interval(found[:, part]) for found in splits] for part in (0, 1))
    columns = {
        "group": [group.label for group in groups],
        "n": [str(len(group.runs)) for group in groups],
        "mean": [str(found) for found in means],
        "transient": [str(found) for found in transient],
        "residual": [str(found) for found in residual],
        "IQM": [str(found) for found in middles],
        "worst tenth": [f"{value:.3f}" if np.isfinite(value) else "-" for value in worst],
    }
    data: dict[str, list[Cell]] = {"group": list(columns["group"])}
    data["n"] = [len(group.runs) for group in groups]
    data |= _numbers("mean", means)
    data |= _numbers("transient", transient) | _numbers("residual", residual)
    data |= _numbers("IQM", middles) | {"worst tenth": list(worst)}
    notes = [
        "Of the runs' mean normalised regret at their end. IQM: mean of the middle half of the "
        "runs (with fewer than four runs the mean); worst tenth: at least one run.",
        "Transient and residual: of the segments that ended in that part, mean over segments.",
    ]
    return _table(columns, data, notes)


def _paired(group: Group, reference: Group, last: float) -> list[float]:
    """Regret of the group less the reference's for every seed that both have.

    None on a stream that follows the agent: one seed is then not one life.
    """
    if group.follows_agent or reference.follows_agent:
        return []
    one, other = (
        dict(zip(g.seeds, g.final_values(END, last), strict=True)) for g in (group, reference)
    )
    return [one[seed] - other[seed] for seed in one if seed in other]


def _named(groups: Sequence[Group], name: str) -> list[Group]:
    labelled = [group for group in groups if group.label == name]
    return labelled or [g for g in groups if str(g.runs[0].config.choices.memory) == name]


def _one(groups: Sequence[Group], name: str, key: str) -> Group:
    found = _named(groups, name)
    if len(found) == 1:
        return found[0]
    labels = [group.label for group in groups]
    if found:
        raise UsageError(
            f"{key}={name}: {len(found)} groups have this memory; give a label: "
            f"{'; '.join(group.label for group in found)}"
        )
    raise UsageError(f"{key}={name}: no such group; {hint(name, labels)}")


def _numbers(name: str, found: Sequence[Interval]) -> dict[str, list[Cell]]:
    parts = ("mean", "low", "high", "num_runs")
    return {f"{name}: {part}": [getattr(one, part) for one in found] for part in parts}


def _table(
    columns: dict[str, list[str]], data: dict[str, list[Cell]], notes: Sequence[str]
) -> Comparison:
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    return Comparison(list(columns), rows, data, notes)


def _p(value: float) -> str:
    if np.isnan(value):
        return "-"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
