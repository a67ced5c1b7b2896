"""The verb `study`: settings x seeds as one resumable thing, compared at the end."""

from __future__ import annotations

from collections.abc import Sequence

from .comparison_output import REPORT, Request, write_comparison
from .contrasts import ALL
from .errors import EXIT_FAILURE, EXIT_OK, UsageError
from .folder import write_atomically
from .groups import group_runs
from .progress import plain_console
from .provenance import command_line
from .results import RunResult
from .stopping import exit_code
from .studies.member import Member, Places, find_row, state_of, write_row
from .studies.plan import Plan, plan
from .studies.rows import markdown, rich_table, study_rows
from .studies.runner import TO_RUN, Outcome, run_members


def study(words: Sequence[str]) -> int:
    """Run `sojourn study`; returns the exit code, 1 when a member failed."""
    wanted = plan(words)
    places = Places(wanted.output)
    _open(wanted, words)
    console = plain_console()
    waiting = _waiting(places, wanted.members)
    total, failed = len(wanted.members), list[Outcome]()
    done = sum(find_row(places, member) is not None for member in wanted.members)
    console.print(f"{total} members, {done} of them done; folder {wanted.output}")
    for line in wanted.left_out:
        console.print(f"left out: {line}", markup=False, highlight=False)

    def say(outcome: Outcome) -> None:
        nonlocal done
        done += not outcome.error
        failed.extend([outcome] if outcome.error else [])
        result = f"failed: {outcome.error}" if outcome.error else "done"
        line = f"[{done}/{total}] {outcome.member.name}: {result}, {outcome.seconds:.0f} s"
        console.print(line, markup=False, highlight=False)

    signal = run_members(places, waiting, wanted.jobs, say)
    if signal is not None:
        again = command_line("study", words)
        console.print(f"stopped with {done} of {total} members done, go on with: {again}")
        return exit_code(signal)
    _report(places, wanted)
    elsewhere = [m for m in wanted.members if state_of(places, m) == "running"]
    for member in elsewhere:
        console.print(f"not in the table, as another process runs it: {member.name}", markup=False)
    for outcome in failed:
        log = places.output(outcome.member)
        console.print(f"failed: {outcome.member.name}: {outcome.error}; see {log}", markup=False)
    return EXIT_FAILURE if failed else EXIT_OK


def _waiting(places: Places, members: Sequence[Member]) -> list[Member]:
    """The members to run; finished ones get their row if a kill came between."""
    waiting = []
    for member in members:
        state = state_of(places, member)
        if state == "done" and find_row(places, member) is None:
            write_row(places, member)
        if state in TO_RUN:
            waiting.append(member)
    return waiting


def _report(places: Places, wanted: Plan) -> None:
    """The table of all members' rows, and the figures of the runs that are still on disk."""
    console = plain_console()
    header, rows = study_rows(places, wanted.members)
    if not rows:
        return
    write_atomically(wanted.output / "study.md", markdown(header, rows))
    console.print(rich_table(header, rows))
    finished = [places.run(m) for m in wanted.members if find_row(places, m)]
    runs = [RunResult.read(path) for path in finished if path.exists()]
    if runs:
        # The members of a study are chosen before the first is run: they are the declared set.
        write_comparison(wanted.output, group_runs(runs), Request(declared=ALL))
    report = wanted.output / REPORT if runs else wanted.output / "study.md"
    console.print(f"tables and figures beside {report}", markup=False, highlight=False)


def _open(wanted: Plan, words: Sequence[str]) -> None:
    try:
        wanted.output.mkdir(parents=True, exist_ok=True)
        with (wanted.output / "command.txt").open("a", encoding="utf-8") as file:
            file.write(command_line("study", words) + "\n")
    except OSError as error:
        raise UsageError(f"output={wanted.output}: cannot be made here ({error})") from error
