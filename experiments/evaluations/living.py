"""An evaluation lived: all conditions, snapshots of memory and checkpoints on their tasks.

Everything random follows from the request's seed; the run that is evaluated stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tensordict import TensorDict

from sojourn.agents import Agent, Ending, SharedLuck, Snapshots
from sojourn.envs import Stream
from sojourn.memory import state_from_dict

from .. import checkpoint
from ..build import derived_seed
from ..errors import UsageError
from ..loading import agent_of
from ..measures.forgetting import Matrix
from ..measures.lives import Lives
from ..privileges import cell, privileges
from ..report import comparators, lags, references, success_tasks
from ..stopping import StopRequest
from ..tables import Table
from .conditions import Half, condition, left_out, offered, segments_lived
from .findings import Findings, Outer
from .frozen_lives import EVALUATION_LUCK, ending_row, lives
from .matrix import OF_TRAINING, matrix_rows, outer_rows
from .measures import CARRIED, Row, condition_rows, paired_rows
from .outer import OuterTasks, chosen_checkpoints, probe_checkpoint
from .probe import Probes, probe
from .request import Evaluation
from .split import seen_note, share_seen
from .state import Clock, cost_rows, state_rows, training_rows

MOST_AGES = 8  # segments of life after which memories are probed


def carry_out(
    wanted: Evaluation, agent: Agent, stop: StopRequest, say: Callable[[str], None]
) -> Findings | None:
    """Let `agent` live all that was asked for, its episodes in tables of `wanted.output`; None when
    stopped.
    """
    trained, stream = wanted.streams()
    snapshots, luck = Snapshots(), SharedLuck(derived_seed(wanted.seed, EVALUATION_LUCK))
    names = wanted.conditions or offered(stream)
    reasons = left_out(names, agent, stream, wanted.budget, wanted.greedy)
    old = None if agent.memory.grows else inheritance(wanted.content)
    tables: dict[str, Lives] = {}
    clocks: dict[str, Clock] = {}
    for name in names:
        if name in reasons:
            continue
        made = condition(name, agent, stream, wanted.budget, snapshots, wanted.greedy, old)
        path = wanted.output / f"episodes_{name}.csv"
        with Clock() as clocks[name]:
            clocks[name].steps = _write(path, lives(made, stream, wanted.budget, luck), stop)
        if stop.signal is not None:
            return None
        tables[name] = Lives.from_table(path)
        say(f"{name}: {len(tables[name]):,} episodes")
    matrix = _probe(wanted, agent, stream, snapshots, stop)
    outer = _probe_checkpoints(wanted, trained, stop) if stop.signal is None else None
    if stop.signal is not None:
        return None
    rows = _rows(wanted, stream, tables, matrix, outer)
    rows += state_rows(agent, stream, wanted.budget, luck, _shortest(tables[CARRIED]))
    rows += training_rows(wanted.folder / "metrics.csv", wanted.step)
    rows += cost_rows(clocks, agent, stream)
    chosen = wanted.config.choices
    remarks = [*as_trained(wanted.trained.memory_reset), seen_note(share_seen(trained, stream))]
    remarks += [f"left out: {name}: {why}" for name, why in reasons.items()]
    return Findings(
        f"{chosen.memory} on {chosen.stream}, held out",
        [*_notes(wanted, stream), *remarks],
        comparators(stream),
        rows,
        tables,
        matrix,
        outer,
    )


def inheritance(content: Mapping[str, Any]) -> TensorDict:
    """The memories `[B]` of the lives of a run at a checkpoint."""
    life = content["rollout"]
    return state_from_dict(life["memory"], len(life["pending_reset"]))


def _rows(
    wanted: Evaluation,
    stream: Stream,
    tables: Mapping[str, Lives],
    matrix: Matrix | None,
    outer: Outer | None,
) -> list[Row]:
    """All numbers that follow from what was lived."""
    known = lags(stream), success_tasks(stream)
    rows = [row for name, table in tables.items() for row in condition_rows(name, table, *known)]
    rows += paired_rows(tables, Half.of(stream, wanted.budget))
    rows += matrix_rows(matrix) if matrix is not None else []
    rows += outer_rows(outer.matrix) if outer is not None else []
    return rows


def _write(path: Path, slices: Iterator[tuple[int, list[Ending]]], stop: StopRequest) -> int:
    """A table of what is lived, until it is lived or asked to stop; the number of steps."""
    table, steps = Table(path, keep=0), 0
    for lived, endings in slices:
        steps = lived
        table.append(ending_row(ending, lived) for ending in endings)
        if stop.signal is not None:
            break
    table.close()
    return steps


def _probe(
    wanted: Evaluation, agent: Agent, stream: Stream, snapshots: Snapshots, stop: StopRequest
) -> Matrix | None:
    """The R-matrix of the carried memories; None where tasks do not change or it is not wanted."""
    plan = wanted.probes
    num_lives = min(plan.num_lifetimes, wanted.budget.num_lifetimes)
    if num_lives == 0 or agent.memory.grows:
        return None
    ages = 0
    while all((life, ages + 1) in snapshots for life in range(num_lives)) and ages < MOST_AGES:
        ages += 1
    if ages < 2:
        return None
    probes = Probes.of(stream, num_lives, ages)
    path = wanted.output / "probes.csv"
    seed = derived_seed(wanted.seed, EVALUATION_LUCK + 1)
    _write(path, probe(probes, agent, snapshots, plan.num_episodes, plan.writes, seed), stop)
    return probes.matrix(Lives.from_table(path))


def checkpoint_files(wanted: Evaluation) -> tuple[list[Path], list[int]]:
    """The checkpoints of the matrix of outer parameters, and the steps of all its rows.

    The first row is step 0, the untrained agent, whatever was kept of it. Raises UsageError where
    there are too few.
    """
    files = chosen_checkpoints(wanted.folder / "checkpoints", wanted.checkpoints)
    steps = [checkpoint.step_of(file) for file in files]
    steps = steps if steps[0] == 0 else [0, *steps]
    if len(steps) < 2:
        raise UsageError(f"checkpoints: {wanted.folder} keeps none but that of the untrained agent")
    return files, steps


def _probe_checkpoints(wanted: Evaluation, trained: Stream, stop: StopRequest) -> Outer | None:
    """The R-matrix of outer parameters; None where it is not wanted."""
    if wanted.checkpoints == 0:
        return None
    files, steps = checkpoint_files(wanted)
    tasks = OuterTasks.of(trained, max(1, wanted.probes.num_lifetimes))
    seed = derived_seed(wanted.seed, EVALUATION_LUCK + 2)

    def all_lives() -> Iterator[tuple[int, list[Ending]]]:
        for row in range(len(steps)):
            number = row - (len(steps) - len(files))
            content = checkpoint.load(files[number]) if number >= 0 else None
            agent = agent_of(wanted.trained, content)
            yield from probe_checkpoint(tasks, row, agent, wanted.probes.num_episodes, seed)

    path = wanted.output / "outer_probes.csv"
    _write(path, all_lives(), stop)
    played = tasks.played(wanted.folder / "episodes.csv", steps)
    return Outer(tasks.names, steps, tasks.matrix(Lives.from_table(path), played))


def _shortest(carried: Lives) -> int:
    """Steps that every carried life has lived at least."""
    ends = carried.start_step + carried.num_steps
    lived = [ends[carried.lifetime == life].max() for life in np.unique(carried.lifetime)]
    return int(min(lived, default=0))


def _of_outer(wanted: Evaluation) -> list[str]:
    """Whose lives the matrix of outer parameters is made of."""
    lives = max(1, wanted.probes.num_lifetimes)
    told = f"matrix of outer parameters: {lives} lifetimes {OF_TRAINING} (probe_lifetimes)"
    return [] if wanted.checkpoints == 0 else [told]


def as_trained(memory_reset: str) -> list[str]:
    """Which condition is the agent as it lived in training, where that is not `carried`."""
    if memory_reset not in ("episode", "task"):
        return []
    return [
        f"trained with memory_reset={memory_reset}: reset_{memory_reset} is the agent as it was "
        "trained, under carried its memory goes on all the same"
    ]


def scales(stream: Stream) -> list[str]:
    """What 0 and 1 are in the regrets of a stream."""
    known = {name: found for name, found in references(stream).items() if found is not None}
    if not known:
        return ["no task has a reference: returns are told, and no regret"]
    kinds = ", ".join(sorted(set(comparators(stream).values())))
    notes = [f"normalised regret: 0 = reference ({kinds}), 1 = uniform random policy"]
    if any(found.informed is not None for found in known.values()):
        notes.append(
            "regret against informed play: 0 = the best that one can do who must first find out "
            "what a task hides; who knows it from the start, as the oracle does, lies below 0"
        )
    return notes


def _notes(wanted: Evaluation, stream: Stream) -> list[str]:
    """What the numbers are, and what they are measured against."""
    budget = wanted.budget
    half, segments = Half.of(stream, budget), segments_lived(stream, budget)
    lived = f"{budget.steps:,} steps" if segments is None else f"{segments:,} segments"
    lived = "1 segment" if segments == 1 else lived
    where = f"segment {half.start + 1}" if half.in_segments else f"step {half.start:,}"
    halved = "" if segments == 1 else f"; half of a life: {where}"
    inside = {"episode": "works on inside a probe episode", "frozen": "only reads in a probe"}
    return [
        f"agent: {wanted.folder}, step {wanted.step:,}, trained with memory_reset="
        f"{wanted.trained.memory_reset}, seed {wanted.trained.seed}; told in training what it does "
        f"not see: {cell(privileges(wanted.trained))}",
        f"{budget.num_lifetimes} lifetimes of at most {lived} each, root seed {wanted.seed} "
        f"(trained on {wanted.trained.seed}), {'greedy' if wanted.greedy else 'sampled'} actions; "
        "all conditions live the same segments with the same luck",
        *scales(stream),
        "intervals: 95 % over lifetimes of one agent; they tell how well it was measured, not how "
        "training runs differ",
        f"U = regret of the reset twin - regret of the carried life{halved}",
        f"matrix of memories: a snapshot {inside[wanted.probes.writes]}",
        *_of_outer(wanted),
        "every measure has a card: sojourn explain MEASURE",
    ]
