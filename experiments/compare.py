"""The verb `compare`: runs on disk to regret curves with bands over seeds, and one table."""

from __future__ import annotations

import glob
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .backends import KEY, check_backends
from .comparisons.comparison import rich_table
from .comparisons.groups import group_runs
from .comparisons.output import REPORT, Request, write_comparison
from .errors import EXIT_OK, RunError, UsageError, hint
from .folder import LATEST, RUNS, latest_run
from .progress import plain_console
from .results import CONFIG_FILE, RunResult
from .studies.member import Places

UNFINISHED = ("refuse", "include", "skip")
OPTIONS = ("output", "last", "unfinished", "reference", "declared", KEY)


@dataclass(frozen=True)
class Options:
    """`request.last`: the end of a run, a fraction of its steps below 1, else a number of
    episodes.
    """

    output: Path
    request: Request
    unfinished: str = "refuse"
    mix_backends: str = "false"


def compare(words: Sequence[str]) -> int:
    """Run `sojourn compare`; returns the exit code."""
    patterns = [word for word in words if not _is_option(word)]
    options = parse_options([word for word in words if _is_option(word)])
    runs = [RunResult.read(path) for path in find_runs(patterns)]
    runs, left_out = choose_finished(runs, options.unfinished)
    check_backends({str(run.path): run.backend for run in runs}, options.mix_backends)
    groups = group_runs(runs)
    request = replace(options.request, left_out=left_out)
    table = write_comparison(options.output, groups, request)
    console = plain_console()
    console.print(rich_table(table))
    for line in table.notes:
        console.print(line, markup=False, highlight=False)
    report = options.output / REPORT
    console.print(f"figures, data and tables beside {report}", markup=False, highlight=False)
    return EXIT_OK


def parse_options(words: Sequence[str]) -> Options:
    """Read `key=value` words; raises UsageError for an unknown key or a bad value."""
    values = dict(word.split("=", 1) for word in words)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    output = Path(values.pop("output", RUNS / "comparisons" / stamp))
    text = values.pop("last", "0.1")
    unfinished = values.pop("unfinished", "refuse")
    mix = values.pop(KEY, "false")
    reference, declared = values.pop("reference", ""), values.pop("declared", "")
    try:
        last = float(text)
    except ValueError:
        last = 0.0
    if not 0 < last < math.inf:
        raise UsageError(f"last={text}: expected a fraction such as 0.1 or a number of episodes")
    if unfinished not in UNFINISHED:
        expected = ", ".join(UNFINISHED)
        near = hint(unfinished, UNFINISHED)
        raise UsageError(f"unfinished={unfinished}: expected {expected}; {near}")
    return Options(output, Request(last, reference, declared), unfinished, mix)


def find_runs(patterns: Sequence[str]) -> list[Path]:
    """Run folders that the words name, each once; raises for a word that names none."""
    if not patterns:
        raise UsageError("compare: expected run folders, studies, patterns or latest")
    found: dict[Path, Path] = {}
    for pattern in patterns:
        for path in _matches(pattern):
            found.setdefault(path.resolve(), path)
    return list(found.values())


def choose_finished(
    runs: Sequence[RunResult], unfinished: str
) -> tuple[list[RunResult], list[str]]:
    """The runs that are compared, and a note on each that is skipped.

    An endless run counts as finished when it was stopped. Raises RunError for a run that may be
    neither compared nor skipped, and where none is left.
    """
    chosen, notes = [], []
    for run in runs:
        endless = run.config.num_steps is None
        accepted = {"done"} | ({"interrupted"} if endless else set())
        if unfinished == "include":
            accepted |= {"interrupted", "running", "killed"}
        if run.status in accepted and run.last_step > 0:
            chosen.append(run)
            continue
        state = run.status if run.last_step > 0 else f"{run.status} before its first update"
        if unfinished != "skip":
            raise RunError(
                f"{run.path}: this run is {state} and cannot be compared; resume it, leave it out "
                "with unfinished=skip, or give unfinished=include if it did not fail"
            )
        notes.append(f"left out: {run.path}, which is {state}; what is left may be the lucky ones")
    if not chosen:
        raise RunError("compare: none of these runs is finished; give unfinished=include")
    return chosen, notes


def _is_option(word: str) -> bool:
    name, equals, _ = word.partition("=")
    if not equals or "/" in name or Path(word).exists():
        return False
    if name not in OPTIONS:
        raise UsageError(f"{name}: no such option of compare; {hint(name, OPTIONS)}")
    return True


def _matches(pattern: str) -> list[Path]:
    path = latest_run() if pattern == LATEST else Path(pattern)
    if (path / CONFIG_FILE).is_file():
        return [path]
    if path.is_dir():
        inside = _runs_among(path.iterdir()) or _runs_of_study(path)
        if inside:
            return inside
        raise UsageError(f"{pattern}: neither a run (it has no {CONFIG_FILE}) nor a folder of runs")
    named = sorted(map(Path, glob.glob(pattern)))
    inside = _runs_among(named) or [run for path in named for run in _runs_of_study(path)]
    if not inside:
        raise UsageError(f"{pattern}: no run there; give runs, folders of runs, studies or latest")
    return inside


def _runs_of_study(path: Path) -> list[Path]:
    """The runs of the members that the folder of a study holds; none where it is no study."""
    runs = Places(path).runs
    return _runs_among(runs.iterdir()) if runs.is_dir() else []


def _runs_among(paths: Iterable[Path]) -> list[Path]:
    """The run folders, sorted; links such as `latest` lead to a run that is listed itself."""
    return sorted(p for p in paths if not p.is_symlink() and (p / CONFIG_FILE).is_file())
