"""Plays a crowd in worker processes, each with a simulator of its own for a block of rows."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .faults import EnvironmentFault
from .interface import Array, Interface, Observation
from .simulator import KINDS, Simulator, Transition
from .task import Segment
from .worker import Worker, blocks, parcel, registered_here, stop_all
from .worker_process import Answer, Parcel
from .workers import WorkerFailed, Workers


class WorkerSimulator(Simulator):
    """`num_rows` episodes in the processes of `workers`, each playing what `make` gives.

    Rows never meet, so what they live does not depend on how they are spread. A fault of an
    environment is told as ever, with its worker and seed; a worker that dies, hangs or raises
    anything else ends all of them with `WorkerFailed`.
    """

    def __init__(
        self, interface: Interface, num_rows: int, make: Callable[[], Simulator], workers: Workers
    ) -> None:
        self.interface = interface
        self.num_rows = num_rows
        self._all_rows = np.arange(num_rows)
        self._tasks = ["no task yet"] * num_rows
        self._seeds = [-1] * num_rows
        self._returns = np.full((2, num_rows), np.nan)
        self._shown: Observation = {}
        self._workers: list[Worker] = []
        self._stop = weakref.finalize(self, stop_all, self._workers)
        for number, rows in enumerate(blocks(num_rows, workers.count)):
            self._workers.append(Worker(number, rows, workers))
        self._owner = np.concatenate([np.full(len(w.rows), w.number) for w in self._workers])
        self._stale = {worker.number for worker in self._workers}
        specs = registered_here()
        orders = {w.number: ("begin", parcel(Parcel(make, w.rows, specs))) for w in self._workers}
        self._told(self._exchange(orders))

    def begin_segment(self, row: int, segment: Segment) -> None:
        """Put the segment's task into a row of its worker."""
        self._tasks[row] = segment.task.name
        self._ask(row, "begin_segment", row, parcel(segment))

    def begin_episode(self, row: int, seed: int) -> None:
        """Start an episode; the worker also tells how well it could go."""
        self._seeds[row] = seed
        self._returns[:, row] = self._ask(row, "begin_episode", row, seed)

    def step(self, actions: Array, rows: Array | None = None) -> Transition:
        """Let all workers step their rows at the same time."""
        played = self._all_rows if rows is None else np.asarray(rows)
        places = {
            number: np.flatnonzero(self._owner[played] == number)
            for number in np.unique(self._owner[played]).tolist()
        }
        orders = {n: ("step", actions[place], played[place]) for n, place in places.items()}
        columns = [np.zeros(len(played), kind) for kind in KINDS]
        faults: dict[int, EnvironmentFault] = {}
        for number, (told, shown) in self._told(self._exchange(orders)).items():
            parts = (told.reward, told.expected_reward, told.terminated, told.truncated)
            for column, part in zip(columns, parts, strict=True):
                column[places[number]] = part
            for row, fault in told.faults.items():
                faults[row] = self._placed(fault, row)
            self._keep(number, shown)
        reward, expected_reward, terminated, truncated = columns
        return Transition(reward, expected_reward, terminated, truncated, faults)

    def observation(self) -> Observation:
        """Copies of the channels and of the `action_mask` of all rows."""
        if self._stale:
            orders = {number: ("observation",) for number in sorted(self._stale)}
            for number, shown in self._told(self._exchange(orders)).items():
                self._keep(number, shown)
        return {name: array.copy() for name, array in self._shown.items()}

    def optimal_return(self, row: int) -> float:
        """As the worker told when the episode began."""
        return float(self._returns[0, row])

    def floor_return(self, row: int) -> float:
        """As the worker told when the episode began."""
        return float(self._returns[1, row])

    def informed_return(self, row: int, episode: int) -> float:
        """As the worker's simulator."""
        return float(self._ask(row, "informed_return", row, episode))

    def close(self) -> None:
        """End the workers, by force those that do not end soon; doing so again does nothing."""
        self._stop()

    def _keep(self, number: int, shown: Observation) -> None:
        """Take over what the rows of a worker see."""
        for name, part in shown.items():
            if name not in self._shown:
                self._shown[name] = np.zeros((self.num_rows, *part.shape[1:]), part.dtype)
            self._shown[name][self._workers[number].rows] = part
        self._stale.discard(number)

    def _ask(self, row: int, method: str, *arguments: Any) -> Any:
        """One order that concerns one row."""
        number = int(self._owner[row])
        self._stale.add(number)
        return self._told(self._exchange({number: (method, *arguments)}, row), row)[number]

    def _exchange(
        self, orders: Mapping[int, tuple[Any, ...]], row: int | None = None
    ) -> dict[int, Answer]:
        """Send orders to workers by number and fetch all the answers."""
        if not self._stop.alive:
            raise WorkerFailed("the workers of this crowd have been ended")
        number = 0
        answers: dict[int, Answer] = {}
        try:
            for number, order in orders.items():
                self._workers[number].order(*order)
            for number in orders:
                answers[number] = self._workers[number].answer()
        except WorkerFailed as error:
            text = f"worker {number}, {self._where(number, row)}: {error}"
            self._workers[number].stop(patience=0.0)
            self.close()
            raise WorkerFailed(text) from error
        return answers

    def _told(self, answers: Mapping[int, Answer], row: int | None = None) -> dict[int, Any]:
        """The values of answers; raises the first fault or error among them."""
        for number, answer in answers.items():
            if answer.fault is not None:
                fault = self._placed(answer.fault, self._row_of(number, row))
                fault.add_note(answer.trace)
                raise fault
            if answer.error:
                self.close()
                text = f"worker {number}, {self._where(number, row)}: raised {answer.error}"
                failure = WorkerFailed(text)
                failure.add_note(answer.trace)
                raise failure
        return {number: answer.value for number, answer in answers.items()}

    def _placed(self, fault: EnvironmentFault, row: int) -> EnvironmentFault:
        """A fault that says in which worker and from which seed it came."""
        place = f"worker {self._owner[row]}, seed {self._seeds[row]}"
        return type(fault)(f"{fault} ({place})") if row >= 0 else fault

    def _row_of(self, number: int, row: int | None) -> int:
        return self._workers[number].playing if row is None else row

    def _where(self, number: int, row: int | None) -> str:
        """The task, row and seed a worker is busy with, or all that it might be busy with."""
        found = self._row_of(number, row)
        rows = self._workers[number].rows.tolist() if found < 0 else [found]
        return "; ".join(f"{self._tasks[r]}, row {r}, seed {self._seeds[r]}" for r in rows)
