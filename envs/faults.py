"""What is done when an environment breaks: the errors that name it, and how many are borne.

raise: the error stops the run;  skip_episode: the episode ends, truncated, and the next begins;
replace_task: so does its segment, and the next task begins
"""

from __future__ import annotations

import warnings
from typing import Literal

OnError = Literal["raise", "skip_episode", "replace_task"]
MAX_FAULTS_IN_A_ROW = 20
"""So many broken episodes of one row, without a whole one between them, stop any run."""


class EnvironmentFault(Exception):
    """An environment broke its contract; the message names the task, the row and the step."""


class EnvironmentFailed(EnvironmentFault, RuntimeError):
    """An environment raised an error of its own."""


class EnvironmentMisbehaved(EnvironmentFault, ValueError):
    """An environment returned what no step can be: another shape, a reward that is no number."""


def failure(where: str, doing: str, error: Exception, hint: str = "") -> EnvironmentFailed:
    """An environment's own error as a fault that says where and on what it was raised."""
    reason = f"{type(error).__name__}: {error}"
    return EnvironmentFailed(f"{where}: the environment failed on {doing} ({reason}){hint}")


class FaultLog:
    """Counts the faults of the rows of a crowd and decides whether they are borne."""

    def __init__(self, on_error: OnError, num_rows: int) -> None:
        self.on_error = on_error
        self.total = 0
        self._in_a_row = [0] * num_rows

    def note(self, row: int, fault: EnvironmentFault) -> None:
        """Count a fault; raises it where faults stop the run, warns now and then where not.

        The 1st, 2nd, 4th, 8th ... fault is told, so that a log cannot be flooded.
        """
        self._in_a_row[row] += 1
        if self.on_error == "raise" or self._in_a_row[row] > MAX_FAULTS_IN_A_ROW:
            raise fault
        self.total += 1
        if self.total & (self.total - 1) == 0:
            warnings.warn(f"fault {self.total}, {self.on_error}: {fault}", stacklevel=2)

    def clear(self, row: int) -> None:
        """A row ended an episode as episodes should end."""
        self._in_a_row[row] = 0
