"""Measures of the memory as a table, one row per layer and head, and as scalars by name."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sojourn.memory import Measures

from .tables import Cell


def measure_rows(step: int, measures: Measures) -> Iterator[dict[str, Cell]]:
    """Rows `step, layer, head, <measure>...`; what a layer has only once is in its head 0."""
    for layer, of_layer in measures.items():
        columns = {name: values.tolist() for name, values in of_layer.items()}
        for head in range(max(map(len, columns.values()))):
            cells = {name: heads[head] for name, heads in columns.items() if head < len(heads)}
            yield {"step": step, "layer": layer, "head": head, **cells}


def mean_measures(measures: Measures) -> dict[str, float]:
    """Means over the heads, by `memory/<layer>/<measure>`, where they are finite."""
    means = {
        f"memory/{layer}/{name}": float(values.mean())
        for layer, of_layer in measures.items()
        for name, values in of_layer.items()
    }
    return {name: mean for name, mean in means.items() if math.isfinite(mean)}
