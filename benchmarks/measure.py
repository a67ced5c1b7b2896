"""What benchmarks of memories share: small builds, fair clocks, counts of what autograd keeps."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import Tensor

from sojourn.memory import MemoryCore

CONFIGS = Path(__file__).parents[1] / "configs" / "memory"


def build(name: str, size: int = 32, num_heads: int = 4, chunk_size: int | None = None) -> Any:
    """The memory of a YAML file with `num_heads` of `size` x `size`, of the width of all heads."""
    config = OmegaConf.load(CONFIGS / f"{name}.yaml")
    changes = {"num_heads": num_heads, "key_width": size, "value_width": size}
    if chunk_size is not None:
        changes["solver.chunk_size"] = chunk_size
    for key, value in changes.items():
        if OmegaConf.select(config, key) is not None:
            OmegaConf.update(config, key, value)
    return instantiate(config, width=num_heads * size)


def run_chunks(core: MemoryCore, x: Tensor) -> None:
    """Forward and backward in one call; `x` serves as the gradient at the outputs, too.

    A loss would be a tenth of what is measured, of a memory or not.
    """
    y, _ = core(x, core.init_state(x.shape[0]))
    y.backward(x)


def run_steps(core: MemoryCore, x: Tensor) -> None:
    """The same, token by token."""
    state, outputs = core.init_state(x.shape[0]), []
    for token in x.unbind(1):
        y, state = core.step(token, state)
        outputs.append(y)
    torch.stack(outputs, dim=1).backward(x)


def keep_heap() -> None:
    """Free one large tensor, after which glibc keeps what is freed, as in any process that trains.

    Without it the cost of small tensors depends on where the heap happens to end.
    """
    torch.empty(7 * 2**20)


def in_turns(rounds: int, *tasks: Callable[[], object]) -> list[list[float]]:
    """CPU milliseconds `[tasks][rounds]`, after one round of warming up."""
    measured: list[list[float]] = [[] for _ in tasks]
    for number in range(rounds + 1):
        for task, figures in zip(tasks, measured, strict=True):
            start = time.process_time()
            task()
            if number > 0:
                figures.append(1e3 * (time.process_time() - start))
    return measured


def ratio(upper: Sequence[float], lower: Sequence[float]) -> float:
    """The median of the ratios within a round."""
    return statistics.median(u / b for u, b in zip(upper, lower, strict=True))


def solver_tasks(core: Any, x: Tensor) -> tuple[Callable[[], object], Callable[[], object]]:
    """The core's solver alone on what it gets from `x`: in the core's calls, and token by token."""
    calls: list[Any] = []
    hook = core.solver.register_forward_pre_hook(lambda _, inputs: calls.append(inputs))
    with torch.no_grad():
        core(x, core.init_state(x.shape[0]))
    hook.remove()
    position = next(n for n, one in enumerate(calls[0]) if isinstance(one, dict))
    state, *flags = calls[0][position:]
    # Inputs of their own: the gradient of a slice of the whole would cost a copy of it per step.
    slabs = [[_own(one, slice(None)) for one in call[:position]] for call in calls]
    tokens = [
        [_own(one, slice(t, t + 1)) for one in slab]
        for slab in slabs
        for t in range(slab[0][0].shape[1])
    ]

    def run(parts: list[list[Any]]) -> None:
        carried, reads = state, []
        for part in parts:
            read, carried = core.solver(*part, carried, *flags)
            reads.append(read)
        torch.autograd.backward(torch.cat(reads, dim=1).square().mean())

    return lambda: run(slabs), lambda: run(tokens)


def _own(parts: Any, steps: slice) -> Any:
    """Tokens or gates at some steps, as leaves of a graph."""
    return type(parts)(
        *(
            None if part is None else part[:, steps].detach().clone().requires_grad_()
            for part in parts
        )
    )


def saved_numbers(core: MemoryCore, x: Tensor) -> int:
    """Float32 numbers that autograd keeps for the backward pass, inputs and parameters left out."""
    storages: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes() // 4
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        y, _ = core(x, core.init_state(x.shape[0]))
    assert y.requires_grad
    known = {one.untyped_storage().data_ptr() for one in (x, *core.parameters())}
    return sum(size for pointer, size in storages.items() if pointer not in known)
