"""Plasticity beside the training: measured at every n-th update, as metrics of that update.

What is measured is read and not changed: a run with and one without it are the same bit for bit.
"""

from __future__ import annotations

from torch import Tensor

from sojourn.agents import Agent, Trajectory, parameter_vector, plasticity, update_ratio


class PlasticityProbe:
    """Looks at `agent` at every `every`-th update (0: never)."""

    def __init__(self, agent: Agent, every: int) -> None:
        self.agent, self.every = agent, every
        self._before: Tensor | None = None  # the parameters before an update that is measured
        self._metrics: dict[str, float] = {}

    def begin(self, update: int) -> None:
        """Before update number `update`, counted from 1."""
        due = self.every > 0 and update % self.every == 0
        self._before = parameter_vector(self.agent) if due else None
        self._metrics = {}

    def look(self, trajectory: Trajectory) -> None:
        """At the slice just lived, under the parameters that lived it."""
        if self._before is not None:
            found = plasticity(self.agent, trajectory)
            self._metrics = {f"plasticity/{name}": value for name, value in found.items()}

    def end(self) -> dict[str, float]:
        """After the update: the metrics, none where it is not measured.

        A trainer that keeps no slices has the update ratio only.
        """
        if self._before is None:
            return {}
        ratio = update_ratio(self._before, parameter_vector(self.agent))
        return self._metrics | {"plasticity/update_ratio": ratio}
