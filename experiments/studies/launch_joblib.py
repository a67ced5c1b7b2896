"""`launcher=joblib`: members on joblib's own processes or on a backend registered with it.

https://joblib.readthedocs.io
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

from .member import Member
from .play import POLL_SECONDS, Outcome, Work, play
from .remote import check_options, library, outcome_of


def joblib_members(
    work: Work, members: Sequence[Member], jobs: int, options: Mapping[str, str]
) -> Iterator[Outcome | None]:
    """`launcher.backend` is the name of a backend; default loky, processes of this machine."""
    check_options(options, ("backend",), "joblib")
    joblib = library("joblib", "joblib")
    ended: queue.Queue[Outcome | None] = queue.Queue()

    def run_all() -> None:
        parallel = joblib.Parallel(
            jobs,
            backend=options.get("backend", "loky"),
            return_as="generator_unordered",
            pre_dispatch=jobs,
        )
        for outcome in parallel(joblib.delayed(_play)(work, member) for member in members):
            ended.put(outcome)

    # joblib waits where no signal is heard; the study listens meanwhile.
    runner = threading.Thread(target=run_all, daemon=True)
    runner.start()
    while runner.is_alive() or not ended.empty():
        while not ended.empty():
            yield ended.get()
        yield None
        time.sleep(POLL_SECONDS)


def _play(work: Work, member: Member) -> Outcome | None:
    begin = time.monotonic()
    return outcome_of(member, lambda: play(work, member), begin)
