"""What `sojourn study` is told beside the words of `sojourn train`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..backends import KEY as MIX_BACKENDS
from ..errors import UsageError
from ..folder import RUNS
from ..option_values import truth
from .runner import LOCAL, check_launcher
from .tuning import TuneOptions, tune_options

DEFAULTS = {
    "study": "",
    "output": "",
    "jobs": "auto",
    "launcher": LOCAL,
    "estimate": "false",
    "part": "1/1",
    "only": "*",
    "match": "none",
    "reference": "gated_delta_net",
    MIX_BACKENDS: "false",
    "tune": "",
    "tune_seed": "",
}
LAUNCHER, TUNE = "launcher.", "tune."  # begin the words that are options of a launcher, of tuning
CLUSTERS = ("submitit", "ray")


@dataclass(frozen=True)
class Options:
    """`part` is (number from 1, of how many); `only` patterns of names, as a shell's; `jobs` None
    stands for auto; `estimates`: say what the members would take and run none.
    """

    study: str
    output: Path
    jobs: int | None
    part: tuple[int, int]
    only: Sequence[str]
    match: str
    reference: str
    estimates: bool = False
    launcher: str = LOCAL
    launcher_options: Mapping[str, str] = field(default_factory=dict)
    tune: TuneOptions | None = None
    mix_backends: str = "false"

    def jobs_of(self, num_members: int) -> int:
        """`auto`: every core that this process may use, or all members at once on a cluster, which
        queues them.
        """
        if self.jobs is not None:
            return self.jobs
        return max(1, num_members) if self.launcher in CLUSTERS else usable_cores()


def usable_cores() -> int:
    """Cores that the system lets this process run on: a part of a machine may be all it has."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def read_options(words: Sequence[str]) -> tuple[Options, list[str]]:
    """The options, and the words that are meant for the members; raises UsageError for a wrong
    one.
    """
    given, own = dict(DEFAULTS), list[str]()
    prefixed: dict[str, dict[str, str]] = {LAUNCHER: {}, TUNE: {}}
    for word in words:
        name, equals, value = word.partition("=")
        prefix = next((p for p in prefixed if name.startswith(p)), None)
        if equals and name in given:
            given[name] = value
        elif equals and prefix:
            prefixed[prefix][name.removeprefix(prefix)] = value
        else:
            own.append(word)
    check_launcher(given["launcher"])
    options = Options(
        given["study"],
        Path(given["output"] or RUNS / "studies" / _name(given["study"], own)),
        _jobs(given["jobs"]),
        _part(given["part"]),
        given["only"].split(","),
        given["match"],
        given["reference"],
        truth("estimate", given["estimate"]),
        given["launcher"],
        prefixed[LAUNCHER],
        tune_options(given["tune"], given["tune_seed"], prefixed[TUNE]),
        given[MIX_BACKENDS],
    )
    return options, own


def _name(study: str, words: Sequence[str]) -> str:
    if study:
        return Path(study).stem
    chosen = dict(word.partition("=")[::2] for word in words)
    return chosen.get("experiment", "default").replace(",", "-")


def _part(text: str) -> tuple[int, int]:
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise UsageError(f"part={text}: expected a share such as 1/4")
    return int(number), int(count)


def _jobs(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"jobs={text}: expected auto or a whole number of processes from 1")
    return int(text)
