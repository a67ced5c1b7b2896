"""What an evaluation found, before anything is written or drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..measures.forgetting import Matrix
from ..measures.lives import Lives
from .measures import Row


@dataclass(frozen=True)
class Outer:
    """The R-matrix of outer parameters: a row for the checkpoint at each of `steps`."""

    tasks: Sequence[str]
    steps: Sequence[int]
    matrix: Matrix


@dataclass(frozen=True)
class Findings:
    """`rows` are all numbers, `tables` the lives by condition, the matrices None where there is
    none; `notes` say what the numbers are, `comparators` by task what regret is measured against.
    """

    title: str
    notes: Sequence[str]
    comparators: Mapping[str, str]
    rows: Sequence[Row]
    tables: Mapping[str, Lives]
    matrix: Matrix | None
    outer: Outer | None
