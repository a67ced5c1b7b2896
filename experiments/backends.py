"""Lives in EnvPool are not those in Python: they stand in one comparison only where asked for."""

from __future__ import annotations

from collections.abc import Mapping

from .errors import UsageError

KEY = "mix_backends"
POOLED = "envpool"


def check_backends(backends: Mapping[str, str], mix: str) -> None:
    """Raise UsageError where some of what is compared was lived in EnvPool, some in Python.

    `backends` has the `stream.backend` of everything by its name; `mix` is the value of
    `mix_backends`, `true` allows it.
    """
    if mix not in ("true", "false"):
        raise UsageError(f"{KEY}={mix}: expected true or false")
    pooled = [name for name, backend in backends.items() if backend == POOLED]
    others = [name for name, backend in backends.items() if backend != POOLED]
    if pooled and others and mix == "false":
        raise UsageError(
            f"{pooled[0]} has stream.backend={POOLED} and {others[0]} has not: their layouts come "
            f"from different programs; leave one out, or give {KEY}=true"
        )
