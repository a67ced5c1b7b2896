"""What runs inside a worker process: a simulator that is told through a pipe what to do."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

from .faults import EnvironmentFault
from .gymnasium_simulator import GymnasiumSimulator
from .interface import Array, Observation
from .simulator import Simulator, Transition


class Parcel(NamedTuple):
    """What a worker begins with: a maker of its simulator, its rows, ids registered elsewhere."""

    make: Callable[[], Simulator]
    rows: Array
    registered: Sequence[EnvSpec]


class Answer(NamedTuple):
    """What an order came to: a value, a fault of an environment, or another error in words."""

    value: Any = None
    fault: EnvironmentFault | None = None
    error: str = ""
    trace: str = ""


class Served:
    """The orders that a worker obeys."""

    def __init__(self, parcel: Parcel, playing: Array) -> None:
        for spec in parcel.registered:
            gymnasium.registry.setdefault(spec.id, spec)
        self.simulator = parcel.make()
        self.rows = parcel.rows
        if isinstance(self.simulator, GymnasiumSimulator):
            self.simulator.playing = playing  # seen by the process that waits

    def begin_segment(self, row: int, parcel: Any) -> None:
        """As the simulator; the segment lies in a parcel."""
        self.simulator.begin_segment(row, parcel.fn)

    def begin_episode(self, row: int, seed: int) -> tuple[float, float]:
        """Also gives the optimal and the floor return of the instance."""
        self.simulator.begin_episode(row, seed)
        return self.simulator.optimal_return(row), self.simulator.floor_return(row)

    def informed_return(self, row: int, episode: int) -> float:
        """As the simulator."""
        return self.simulator.informed_return(row, episode)

    def step(self, actions: Array, rows: Array) -> tuple[Transition, Observation]:
        """Also gives what the worker's rows now see."""
        return self.simulator.step(actions, rows), self.observation()

    def observation(self) -> Observation:
        """What the worker's rows see."""
        return {name: array[self.rows] for name, array in self.simulator.observation().items()}


def serve(pipe: Connection, playing: Any) -> None:
    """Obey orders `(method, arguments)` until None comes or nobody is left to send one."""
    # Both reach whole groups of processes; it is the parent that stops, in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    watched = np.frombuffer(playing, np.int64)
    served: Served | None = None
    while True:
        try:
            order = pipe.recv_bytes()
        except (EOFError, OSError):
            break
        try:
            told = pickle.loads(order)
            if told is None:
                break
            method, arguments = told
            if method == "begin":
                served = Served(arguments[0].fn, watched)
                answer = Answer()
            else:
                answer = Answer(getattr(served, method)(*arguments))
        except EnvironmentFault as fault:
            answer = Answer(fault=fault, trace=traceback.format_exc())
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            answer = Answer(error=text, trace=traceback.format_exc())
        pipe.send(answer)
    if served is not None:
        served.simulator.close()


def _leave_with_parent() -> None:
    """End this process when its parent does, however that ends."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
