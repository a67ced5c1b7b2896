"""The verb `probe`: memories on supervised tasks, without reinforcement learning."""

from __future__ import annotations

import json
from collections.abc import Sequence

from .errors import EXIT_FAILURE, EXIT_OK, UsageError
from .folder import write_atomically
from .probes.member import Result, read_result, row_file
from .probes.plan import Plan, plan
from .probes.report import report
from .probes.study import finished, run_study
from .progress import plain_console
from .provenance import command_line, versions
from .stopping import exit_code


def probe(words: Sequence[str]) -> int:
    """Run `sojourn probe`; returns the exit code, 1 when a member failed."""
    wanted = plan(words)
    if not wanted.members:
        raise UsageError(f"no member is left: {'; '.join(wanted.left_out)}")
    _open_folder(wanted, words)
    console = plain_console()
    done = finished(wanted.output, wanted.members)
    waiting = [member for member in wanted.members if member not in done]
    total = len(wanted.members)
    console.print(f"{total} members, {len(done)} of them in {wanted.output} already")

    def say(result: Result) -> None:
        done[result.member] = result
        console.print(f"[{len(done)}/{total}] {_line(result)}", markup=False, highlight=False)

    signal = run_study(wanted.output, waiting, wanted.jobs, say)
    if signal is not None:
        console.print(f"stopped with {len(done)} of {total} members; the same command goes on")
        return exit_code(signal)
    found = [read_result(wanted.output, member) for member in wanted.members]
    results = [result for result in found if result is not None]
    for content in report(wanted, results):
        console.print(content, markup=False, highlight=False)
    console.print(f"tables and figures in {wanted.output}", markup=False, highlight=False)
    return EXIT_FAILURE if any(result.error for result in results) else EXIT_OK


def _open_folder(wanted: Plan, words: Sequence[str]) -> None:
    folder = wanted.output
    try:
        row_file(folder, wanted.members[0]).parent.mkdir(parents=True, exist_ok=True)
        with (folder / "command.txt").open("a", encoding="utf-8") as file:
            file.write(command_line("probe", words) + "\n")
        write_atomically(folder / "versions.json", json.dumps(versions("cpu"), indent=2) + "\n")
    except OSError as error:
        raise UsageError(f"output={folder}: cannot be made here ({error})") from error


def _line(result: Result) -> str:
    member = result.member
    name = " ".join([*member.group[:2], f"seed {member.seed}", *_unusual(member.group[2:])])
    if result.error:
        return f"{name}: failed: {result.error}"
    return f"{name}: {result.score:.3f}, {result.numbers['seconds']:.0f} s"


def _unusual(choices: Sequence[str]) -> list[str]:
    return [choice for choice in choices if choice != "none"]
