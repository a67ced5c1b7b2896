"""An evaluation in a few sentences: what is lost, where, and what a memory is worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..report import ordinal
from ..statistics import Interval
from ..tracker import MAX_EPISODES
from .measures import CARRIED, TWIN, Row
from .report import ABSENT, cell_text

NO_MATTER = "makes no difference that can be seen"


class Question(NamedTuple):
    """What a measure of a condition answers, by the side of 0 that its interval lies on."""

    measure: str
    condition: str
    subject: str
    above: str
    below: str
    neither: str


QUESTIONS = (
    Question(
        "regret minus carried",
        "reset_episode",
        "To remember the earlier episodes of a task",
        "helps",
        "hurts",
        NO_MATTER,
    ),
    Question(
        "utility U of having lived",
        TWIN,
        "To remember other tasks (transfer)",
        "helps",
        "hurts",
        NO_MATTER,
    ),
    Question(
        "forgetting at a boundary",
        CARRIED,
        "What is known of earlier tasks (forgetting)",
        "falls",
        "rises",
        "stays",
    ),
)


def in_short(rows: Sequence[Row]) -> list[str]:
    """Sentences about what was measured; none about what was not."""
    known = {(row.measure, row.condition): row for row in rows if cell_text(row) != ABSENT}
    carried = {measure: row for (measure, name), row in known.items() if name == CARRIED}
    answers = ((asked, known.get((asked.measure, asked.condition))) for asked in QUESTIONS)
    return [
        *_of_regret(carried),
        *(_answer(asked, row) for asked, row in answers if row is not None),
    ]


def _of_regret(rows: Mapping[str, Row]) -> Iterator[str]:
    """Of the carried life."""
    total = rows.get("regret, all episodes")
    if total is None:
        return
    names = (f"regret, {ordinal(index)} episode" for index in range(MAX_EPISODES))
    by_episode = ", ".join(f"{rows[name].value.mean:z.3f}" for name in names if name in rows)
    yield (
        f"Regret is {total.value} (0 = reference, 1 = uniform random policy); of the episodes of a "
        f"task, in their order: {by_episode}."
    )
    transient, residual = (rows.get(f"{part} regret") for part in ("transient", "residual"))
    if transient is not None and residual is not None:
        yield (
            f"{transient.value} of it is transient (while a task is new), {residual.value} is "
            "residual (what stays)."
        )


def _answer(asked: Question, row: Row) -> str:
    value: Interval = row.value
    said = asked.neither
    if value.low > 0.0:
        said = asked.above
    elif value.high < 0.0:
        said = asked.below
    return f"{asked.subject} {said}: {asked.measure}, {asked.condition}: {value}."
