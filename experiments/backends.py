"""Lives in EnvPool are not those in Python: they stand in one comparison only where asked for."""

from __future__ import annotations

from collections.abc import Mapping

from .errors import UsageError
from .option_values import truth

KEY = "mix_backends"
POOLED = "envpool"


def check_backends(backends: Mapping[str, str], mix: str) -> None:
    """Raise UsageError where some of what is compared was lived in EnvPool, some in Python.

    `backends` has the `stream.backend` of everything by its name; `mix` is the value of
    `mix_backends`, `true` allows it.
    """
    may_mix = truth(KEY, mix)
    pooled = [name for name, backend in backends.items() if backend == POOLED]
    others = [name for name, backend in backends.items() if backend != POOLED]
    if pooled and others and not may_mix:
        raise UsageError(
            f"{pooled[0]} has stream.backend={POOLED} and {others[0]} has not: their layouts come "
            f"from different programs; leave one out, or give {KEY}=true"
        )
