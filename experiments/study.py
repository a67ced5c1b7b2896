"""The verb `study`: settings x seeds as one resumable thing, compared at the end."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import yaml  # type: ignore[import-untyped]

from .comparisons.contrasts import ALL
from .comparisons.groups import group_runs
from .comparisons.output import REPORT, Request, write_comparison
from .errors import EXIT_FAILURE, EXIT_OK, UsageError
from .folder import write_atomically
from .markdown import markdown_table
from .pace import clock
from .progress import plain_console
from .provenance import command_line
from .results import RunResult
from .stopping import exit_code
from .studies.cost import cost_table, measure, total_line
from .studies.member import Member, Places, find_row, state_of, write_row
from .studies.plan import Plan, plan
from .studies.play import TO_RUN, Outcome
from .studies.resumption import keep_words, resumed_words
from .studies.rows import rich_table, study_rows
from .studies.runner import run_members
from .studies.tuning import Trial, Tuned, choose, is_pending


def study(words: Sequence[str]) -> int:
    """Run `sojourn study`; returns the exit code, 1 when a member failed."""
    words = resumed_words(words)
    wanted = plan(words)
    places = Places(wanted.options.output)
    if wanted.options.estimates:
        return _estimate(places, wanted)
    _open(wanted, words)
    say = plain_console().print
    again = command_line("study", words)
    for line in wanted.left_out:
        say(f"left out: {line}", markup=False, highlight=False)
    members, tuned = wanted.members, dict[str, Tuned]()
    if wanted.options.tune is not None:
        signal, _ = _run(places, wanted, wanted.trial_members, "trials", again)
        if signal is not None:
            return exit_code(signal)
        if any(is_pending(places, trial) for trial in _all(wanted.trials)):
            say(f"trials of another share are not done; when they are, go on with: {again}")
            return EXIT_FAILURE
        tuned = choose(places, wanted.trials, wanted.options.tune)
        _tell_tuned(places, wanted, tuned)
        members = wanted.tuned({group: found.setting for group, found in tuned.items()})
    signal, failed = _run(places, wanted, members, "members", again)
    if signal is not None:
        return exit_code(signal)
    _report(places, members, tuned)
    for member in [m for m in members if state_of(places, m) == "running"]:
        say(f"not in the table, as another process runs it: {member.name}", markup=False)
    _tell_failures(places, failed)
    return EXIT_FAILURE if failed or len(tuned) < len(wanted.trials) else EXIT_OK


def _run(
    places: Places, wanted: Plan, members: Sequence[Member], what: str, again: str
) -> tuple[int | None, list[Outcome]]:
    """Run what is left of `members`; returns the signal that stopped it, and what failed."""
    console = plain_console()
    waiting = _waiting(places, members, wanted.trials)
    done, total = sum(find_row(places, member) is not None for member in members), len(members)
    failed: list[Outcome] = []
    begin, jobs = time.monotonic(), min(wanted.num_jobs, max(1, len(waiting)))
    side_by_side = f", {jobs} side by side" if waiting else ""
    console.print(f"{total} {what}, {done} of them done{side_by_side}; folder {places.folder}")
    ended = 0

    def say(outcome: Outcome) -> None:
        nonlocal done, ended
        done, ended = done + (not outcome.error), ended + 1
        failed.extend([outcome] if outcome.error else [])
        result = f"failed: {outcome.error}" if outcome.error else "done"
        line = f"[{done}/{total}] {outcome.member.name}: {result}, {outcome.seconds:.0f} s"
        left = len(waiting) - ended
        if left:
            so_far = time.monotonic() - begin
            line += f"; {left} left, about {clock(so_far / ended * left)} at the pace so far"
        console.print(line, markup=False, highlight=False)

    options = wanted.options
    launcher = options.launcher, options.launcher_options
    signal = run_members(places, waiting, wanted.num_jobs, say, *launcher)
    if signal is not None:
        console.print(f"stopped with {done} of {total} {what} done, go on with: {again}")
    return signal, failed


def _waiting(
    places: Places, members: Sequence[Member], trials: Mapping[str, Sequence[Trial]]
) -> list[Member]:
    """The members to run; finished ones get their row if a kill came between. A trial that failed
    has told what it was for.
    """
    ended = {t.member.name for t in _all(trials) if not is_pending(places, t)}
    waiting = []
    for member in members:
        state = state_of(places, member)
        if state == "done" and find_row(places, member) is None:
            write_row(places, member)
        if state in TO_RUN and member.name not in ended:
            waiting.append(member)
    return waiting


def _estimate(places: Places, wanted: Plan) -> int:
    """Say what the members that are left would take, and run none."""
    console = plain_console()
    members = [*wanted.trial_members, *wanted.members]
    costs = measure([m for m in members if state_of(places, m) in TO_RUN])
    console.print(cost_table(costs))
    console.print(total_line(costs, wanted.num_jobs), markup=False, highlight=False)
    return EXIT_OK


def _tell_tuned(places: Places, wanted: Plan, tuned: Mapping[str, Tuned]) -> None:
    """Say and keep what was chosen for every group, and what every setting scored."""
    console = plain_console()
    for group in wanted.trials:
        line = tuned[group].line() if group in tuned else "left out, as every setting failed"
        console.print(f"tuned {group}: {line}", markup=False, highlight=False)
    content = {
        group: {
            "words": list(found.setting),
            "fraction": found.options.fraction,
            "seeds": list(found.options.seeds),
            "scores": {" ".join(setting): value for setting, value in found.scores.items()},
        }
        for group, found in tuned.items()
    }
    write_atomically(places.folder / "tuned.yaml", yaml.safe_dump(content, sort_keys=False))


def _report(places: Places, members: Sequence[Member], tuned: Mapping[str, Tuned]) -> None:
    """The table of all members' rows, and the figures of the runs that are still on disk."""
    console = plain_console()
    header, rows = study_rows(places, members)
    if not rows:
        return
    if tuned:
        header, rows = [*header, "tuned"], [[*row, tuned[row[0]].line()] for row in rows]
    write_atomically(places.folder / "study.md", markdown_table(header, rows) + "\n")
    console.print(rich_table(header, rows))
    kept = [find_row(places, member) for member in members]
    finished = [places.folder / "runs" / row.stem for row in kept if row is not None]
    runs = [RunResult.read(path) for path in finished if path.exists()]
    if runs:
        # The members of a study are chosen before the first is run: they are the declared set.
        write_comparison(places.folder, group_runs(runs), Request(declared=ALL))
    report = places.folder / REPORT if runs else places.folder / "study.md"
    console.print(f"tables and figures beside {report}", markup=False, highlight=False)


def _tell_failures(places: Places, failed: Sequence[Outcome]) -> None:
    for outcome in failed:
        log = places.output(outcome.member)
        line = f"failed: {outcome.member.name}: {outcome.error}; see {log}"
        plain_console().print(line, markup=False)


def _open(wanted: Plan, words: Sequence[str]) -> None:
    folder = wanted.options.output
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "command.txt").open("a", encoding="utf-8") as file:
            file.write(command_line("study", words) + "\n")
        keep_words(folder, words)
    except OSError as error:
        raise UsageError(f"output={folder}: cannot be made here ({error})") from error


def _all(trials: Mapping[str, Sequence[Trial]]) -> list[Trial]:
    return [trial for found in trials.values() for trial in found]
