"""The verb `evaluate`: a trained agent on held-out lifetimes, beside its controls."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from omegaconf import OmegaConf

from sojourn.agents import Agent, Ending, SharedLuck, Snapshots
from sojourn.envs import Stream

from .build import build_agent, derived_seed
from .errors import EXIT_OK, RunError, UsageError
from .evaluation import EVALUATION_LUCK, ending_row, frozen_copy, lives
from .evaluation_conditions import Half, condition, left_out
from .evaluation_figures import draw_figures, draw_matrix
from .evaluation_measures import condition_rows, matrix_rows, paired_rows
from .evaluation_probe import Probes, probe
from .evaluation_report import lines, rich_table, write_tables
from .evaluation_request import Evaluation, request
from .evaluation_split import seen_note, share_seen
from .folder import write_atomically
from .measures.forgetting import Matrix
from .measures.lives import Lives
from .progress import plain_console
from .provenance import command_line, versions
from .report import comparators
from .stopping import StopRequest, exit_code
from .tables import Table

MOST_AGES = 8  # segments of life after which memories are probed


def evaluate(words: Sequence[str]) -> int:
    """Run `sojourn evaluate`; returns the exit code. Nothing of the run is changed."""
    wanted = request(words)
    trained, stream = wanted.streams()
    torch.set_num_threads(int(wanted.trained.num_threads))
    agent = build_agent(wanted.trained, trained)
    agent.load_state_dict(wanted.content["agent"])
    _open(wanted, words)
    try:
        with StopRequest() as stop, warnings.catch_warnings():
            warnings.simplefilter("default")
            remarks = [seen_note(share_seen(trained, stream))]
            if _live(wanted, frozen_copy(agent), stream, remarks, stop):
                return EXIT_OK
        assert stop.signal is not None
        plain_console().print(f"stopped; what was lived is in {wanted.output}", markup=False)
        return exit_code(stop.signal)
    except OSError as error:
        raise RunError(f"{wanted.output}: cannot be written ({error})") from error


def _live(
    wanted: Evaluation, agent: Agent, stream: Stream, remarks: list[str], stop: StopRequest
) -> bool:
    """Live all conditions and write what they say; False when asked to stop."""
    console, snapshots = plain_console(), Snapshots()
    reasons = left_out(wanted.conditions, agent, wanted.budget)
    tables: dict[str, Lives] = {}
    luck = SharedLuck(derived_seed(wanted.seed, EVALUATION_LUCK))
    for name in wanted.conditions:
        if name in reasons:
            continue
        made = condition(name, agent, stream, wanted.budget, snapshots, wanted.greedy)
        path = wanted.output / f"episodes_{name}.csv"
        if not _write(path, lives(made, stream, wanted.budget, luck), stop):
            return False
        tables[name] = Lives.from_table(path)
        console.print(f"{name}: {len(tables[name]):,} episodes", markup=False, highlight=False)
    matrix = _probe(wanted, agent, stream, snapshots, stop)
    if stop.signal is not None:
        return False
    remarks += [f"left out: {name}: {why}" for name, why in reasons.items()]
    _tell(wanted, stream, tables, matrix, remarks)
    return True


def _write(path: Path, slices: Iterator[tuple[int, list[Ending]]], stop: StopRequest) -> bool:
    """A table of what is lived; False when asked to stop."""
    table = Table(path, keep=0)
    for lived, endings in slices:
        table.append(ending_row(ending, lived) for ending in endings)
        if stop.signal is not None:
            break
    table.close()
    return stop.signal is None


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
    slices = probe(probes, agent, snapshots, plan.num_episodes, plan.writes, seed)
    return probes.matrix(Lives.from_table(path)) if _write(path, slices, stop) else None


def _tell(
    wanted: Evaluation,
    stream: Stream,
    tables: dict[str, Lives],
    matrix: Matrix | None,
    remarks: Sequence[str],
) -> None:
    """Write and print tables and figures."""
    half = Half.of(stream, wanted.budget)
    rows = [row for name, lives in tables.items() for row in condition_rows(name, lives)]
    rows += paired_rows(tables, half)
    rows += matrix_rows(matrix) if matrix is not None else []
    chosen = wanted.config.choices
    title = f"{chosen.memory} on {chosen.stream}, held out"
    notes = [*_notes(wanted, stream, half), *remarks]
    write_tables(wanted.output, rows, title, notes)
    draw_figures(wanted.output, title, tables)
    if matrix is not None:
        how = {"episode": "The memory works on inside a probe episode.", "frozen": "Read only."}
        draw_matrix(wanted.output, title, matrix, how[wanted.probes.writes])
    console = plain_console()
    console.print(rich_table(rows))
    for line in (*lines(rows), *notes, f"tables and figures in {wanted.output}"):
        console.print(line, markup=False, highlight=False)


def _notes(wanted: Evaluation, stream: Stream, half: Half) -> list[str]:
    """What the numbers are, and what they are measured against."""
    budget, kinds = wanted.budget, sorted(set(comparators(stream).values()))
    lived = f"{budget.segments} segments" if budget.segments else f"{budget.steps:,} steps at most"
    where = f"segment {half.start + 1}" if half.in_segments else f"step {half.start:,}"
    return [
        f"agent: {wanted.folder}, step {wanted.step:,}, trained with memory_reset="
        f"{wanted.trained.memory_reset}, seed {wanted.trained.seed}",
        f"{budget.num_lifetimes} lifetimes of {lived} each, root seed {wanted.seed} "
        f"(trained on {wanted.trained.seed}), {'greedy' if wanted.greedy else 'sampled'} actions; "
        "all conditions live the same segments with the same luck",
        f"normalised regret: 0 = reference ({', '.join(kinds)}), 1 = uniform random policy",
        "intervals: 95 % over lifetimes of one agent; they tell how well it was measured, not how "
        "training runs differ",
        f"U = regret of the reset twin - regret of the carried life; half of a life: {where}",
    ]


def _open(wanted: Evaluation, words: Sequence[str]) -> None:
    """Make the folder and write where its numbers come from."""
    folder = wanted.output
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise UsageError(f"output={folder}: exists already; choose another") from error
    except OSError as error:
        raise UsageError(f"output={folder}: cannot be made here ({error})") from error
    write_atomically(folder / "command.txt", command_line("evaluate", words) + "\n")
    write_atomically(folder / "config.yaml", OmegaConf.to_yaml(wanted.config, resolve=True))
    write_atomically(folder / "versions.json", json.dumps(versions("cpu"), indent=2) + "\n")
