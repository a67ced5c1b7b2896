"""`launcher=submitit`: members as jobs of Slurm, or of this machine where there is none.

https://github.com/facebookincubator/submitit
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml  # type: ignore[import-untyped]

from ..errors import UsageError
from .member import Member
from .play import Outcome, Work, play
from .remote import in_turn, library

DAY_MINUTES = 24 * 60


def submitit_members(
    work: Work, members: Sequence[Member], jobs: int, options: Mapping[str, str]
) -> Iterator[Outcome | None]:
    """`launcher.cluster` is slurm or local, default what there is; any other option, such as
    `launcher.slurm_partition`, is a parameter of submitit's executor.
    """
    submitit = library("submitit", "submitit")
    parameters: dict[str, Any] = {"name": "sojourn", "cpus_per_task": 1, "timeout_min": DAY_MINUTES}
    parameters |= {name: yaml.safe_load(text) for name, text in options.items()}
    cluster = parameters.pop("cluster", None)
    try:
        executor = submitit.AutoExecutor(work.places.folder / "submitit", cluster=cluster)
        executor.update_parameters(**parameters)
    except (NameError, TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"launcher=submitit: {reason}") from error
    return in_turn(work, members, jobs, lambda member: executor.submit(play, work, member))
