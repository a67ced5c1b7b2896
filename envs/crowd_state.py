"""Brings the rows of a crowd back to the middle of their episodes: same seed, same actions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .interface import Array
from .rows import RowCounters
from .simulator import Simulator


def restore_rows(
    simulator: Simulator,
    counters: RowCounters,
    actions: Sequence[Array],
    observation: Mapping[str, Array],
    names: Sequence[str],
) -> list[int]:
    """Replay the running episodes, which have just begun, and compare what the rows now see.

    Returns the rows that do not see what they saw (`observation`), with one warning for all.
    """
    going = _replay(simulator, actions) if simulator.replays else set()
    shown = simulator.observation()
    lost = [
        row
        for row, lived in enumerate(counters.episode_step.tolist())
        if not (row in going and lived == len(actions[row]) and _same(shown, observation, row))
    ]
    if lost:
        tasks = ", ".join(sorted({names[row] for row in lost}))
        warnings.warn(
            f"{len(lost)} of {len(actions)} running episodes could not be replayed and start "
            f"again ({tasks}): their environments do not repeat an episode from its seed, or the "
            "episode was too long to keep",
            stacklevel=3,
        )
    return lost


def _replay(simulator: Simulator, actions: Sequence[Array]) -> set[int]:
    """Play the logged actions; returns the rows whose episode is still running after them."""
    going = set(range(len(actions)))
    for step in range(max(len(played) for played in actions)):
        rows = np.array([row for row in sorted(going) if len(actions[row]) > step])
        if len(rows) == 0:
            break
        played = np.stack([actions[row][step] for row in rows])
        if played.dtype.kind == "i":
            played = played.astype(np.int64)
        outcome = simulator.step(played, rows)
        going -= set(rows[outcome.terminated | outcome.truncated].tolist()) | set(outcome.faults)
    return going


def _same(shown: Mapping[str, Array], stored: Mapping[str, Array], row: int) -> bool:
    """Whether a row sees exactly what was stored, in every channel."""
    return all(
        name in stored
        and np.array_equal(array[row], stored[name][row], equal_nan=array.dtype.kind == "f")
        for name, array in shown.items()
    )


def check_numbers(num_lifetimes: int, first_lifetime: int, stride: int) -> None:
    """Raise ValueError, naming the argument, for lifetimes that no crowd can live."""
    if num_lifetimes < 1:
        raise ValueError(f"num_lifetimes: expected at least 1, got {num_lifetimes}")
    if first_lifetime < 0:
        raise ValueError(f"first_lifetime: expected at least 0, got {first_lifetime}")
    if stride < num_lifetimes:
        raise ValueError(f"stride: expected at least {num_lifetimes} (all rows), got {stride}")


def check_state(state: Mapping[str, Any], seed: int, num_lifetimes: int) -> None:
    """Raise ValueError for the state of another stream seed or another number of lifetimes."""
    found = (state["seed"], len(state["actions"]))
    if found != (seed, num_lifetimes):
        raise ValueError(
            f"crowd state: expected seed {seed} and {num_lifetimes} lifetimes, "
            f"got seed {found[0]} and {found[1]} lifetimes"
        )
