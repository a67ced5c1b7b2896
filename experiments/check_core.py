"""The verb `check-core`: does a memory obey the laws that training relies on?"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch

from sojourn.memory import LAWS, MemoryCore

from .build import build_memory
from .config import compose_config, parse
from .errors import EXIT_FAILURE, EXIT_OK, UsageError

STEPS = 71  # more than two chunks of the default 32, and no multiple of anything


def check_core(words: Sequence[str]) -> int:
    """Run `sojourn check-core memory=NAME|FILE.yaml [key=value ...]`: a line for every law.

    The memory is checked in float64, its parameters moved away from zero, and recomputed in the
    backward pass where `agent.recompute_every` says so. Returns the exit code: 1 when a law is
    broken.
    """
    overrides = parse(words)
    if not any(override.key == "memory" for override in overrides):
        raise UsageError("check-core: which memory? give memory=NAME or memory=FILE.yaml")
    torch.manual_seed(0)
    config = compose_config(overrides)
    core = build_memory(config, config.agent.width).double()
    core.recompute_every = config.agent.get("recompute_every")
    with torch.no_grad():
        for parameter in core.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    broken = 0
    for law in LAWS:
        fault = fault_of(law, core)
        broken += fault is not None
        print(f"{'ok    ' if fault is None else 'BROKEN'}  {law}{f': {fault}' if fault else ''}")
    if broken:
        print(f"sojourn: {broken} of {len(LAWS)} laws are broken", file=sys.stderr)
    return EXIT_FAILURE if broken else EXIT_OK


def fault_of(law: str, core: MemoryCore) -> str | None:
    """How the memory breaks a law, in one line; None when it does not."""
    torch.manual_seed(1)
    try:
        LAWS[law](core, STEPS)
    except AssertionError as error:
        return str(error)
    except Exception as error:  # a user's memory may fail in any way
        lines = str(error).splitlines() or [""]
        return f"{type(error).__name__}: {lines[0]}"
    return None
