"""`launcher=ray`: members as tasks of a Ray cluster, or of this machine where there is none.

https://docs.ray.io
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import RunError, UsageError
from .member import Member
from .play import Outcome, Work, play
from .remote import check_options, in_turn, library

OPTIONS = ("address", "num_cpus", "num_gpus")
PATIENCE = (
    "on a busy machine set RAY_raylet_start_wait_time_s and RAY_agent_register_timeout_ms higher"
)


class _Task:
    """A Ray task with the face of a job."""

    def __init__(self, ray: Any, reference: Any) -> None:
        self._ray, self._reference = ray, reference

    def done(self) -> bool:
        ready, _ = self._ray.wait([self._reference], timeout=0)
        return bool(ready)

    def result(self) -> Outcome | None:
        outcome: Outcome | None = self._ray.get(self._reference)
        return outcome


def ray_members(
    work: Work, members: Sequence[Member], jobs: int, options: Mapping[str, str]
) -> Iterator[Outcome | None]:
    """`launcher.address` is that of a cluster, default one on this machine with `jobs` processors;
    `launcher.num_cpus` and `launcher.num_gpus` are what one member needs, default 1 and 0.
    """
    check_options(options, OPTIONS, "ray")
    ray = library("ray", "ray")
    needs = {name: _number(options, name) for name in OPTIONS[1:] if name in options}
    address = options.get("address")
    own = {} if address else {"num_cpus": max(1, jobs), "include_dashboard": False}
    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False, **own)
    except (ConnectionError, ValueError) as error:
        raise UsageError(f"launcher.address={address}: {' '.join(str(error).split())}") from error
    except Exception as error:  # Ray has no class of its own for it
        told = " ".join(str(error).split())
        raise RunError(f"launcher=ray: Ray did not start ({told}); {PATIENCE}") from error
    try:
        task = ray.remote(**{"num_cpus": 1.0, **needs})(play)
        yield from in_turn(work, members, jobs, lambda m: _Task(ray, task.remote(work, m)))
    finally:
        ray.shutdown()


def _number(options: Mapping[str, str], name: str) -> float:
    try:
        return float(options[name])
    except ValueError as error:
        raise UsageError(f"launcher.{name}={options[name]}: expected a number") from error
