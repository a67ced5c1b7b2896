"""What compiling buys: one call and one step of acting, against the same ones run eagerly."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from measure import build, in_turns, ratio, run_chunks, run_steps
from torch import Tensor

from sojourn.memory import MemoryCore, compile_calls

BATCH, STEPS, ACTORS, PROBES = 16, 512, 32, 50
HEADS = (
    "memory",
    "one call",
    "compiled",
    "steps",
    "ratio",
    "compiled ratio",
    "first call",
    "one act step",
    "compiled",
    "ratio",
)
Task = Callable[[], object]


def compiled_calls(names: Sequence[str], rounds: int) -> list[str]:
    """The table of the memories `names`; told row by row, as every row waits for a compiler."""
    lines = [f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|"]
    for name in names:
        lines.append(_row(name, rounds))
        print(lines[-1], file=sys.stderr, flush=True)
    return [
        *lines,
        "",
        f"One call: forward and backward, B={BATCH}, H=4, K=V=32, T={STEPS}; steps are eager. "
        f"Acting: B={ACTORS}, without gradients.",
    ]


def _row(name: str, rounds: int) -> str:
    core, fast = (_same(name) for _ in range(2))
    compile_calls(fast)
    x = torch.randn(BATCH, STEPS, core.width)
    start = time.process_time() + _of_children()
    run_chunks(fast, x)
    first = time.process_time() + _of_children() - start
    whole = in_turns(
        rounds,
        lambda: run_chunks(core, x),
        lambda: run_chunks(fast, x),
        lambda: run_steps(core, x),
    )
    with torch.no_grad():
        token = torch.randn(ACTORS, core.width)
        state = core(torch.randn(ACTORS, 64, core.width), core.init_state(ACTORS))[1]
        act = in_turns(rounds, *(_acting(one, token, state) for one in (core, fast)))
    eager, compiled, steps = map(statistics.median, whole)
    costs = [f"{1e3 * statistics.median(one) / PROBES:.0f} us" for one in act]
    cells = [
        *(f"{cell:.0f} ms" for cell in (eager, compiled, steps)),
        *(f"{ratio(whole[2], one):.1f}x" for one in whole[:2]),
        f"{first:.0f} s",
        *costs,
        f"{ratio(*act):.1f}x",
    ]
    return f"| {name} | {' | '.join(cells)} |"


def _same(name: str) -> Any:
    """The memory `name` with the same parameters at every call."""
    torch.manual_seed(0)
    return build(name)


def _acting(core: MemoryCore, token: Tensor, state: Any) -> Task:
    return lambda: [core.step(token, state) for _ in range(PROBES)]


def _of_children() -> float:
    """CPU seconds of the compilers that have finished."""
    times = os.times()
    return times.children_user + times.children_system
