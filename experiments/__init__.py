"""The room that knows files, clocks and configuration.

The command `sojourn` starts in `command`; every verb is a module, with a folder for
what only it needs: `evaluate` and `evaluations`, `compare` and `comparisons`.
`build` turns configuration into objects, `run` lives and trains, `results` reads a run folder back.
In Python: `load` gives a trained agent back, `read_table` a run's tables.
"""

from typing import TYPE_CHECKING, Any

from .tables import read_table as read_table

if TYPE_CHECKING:
    from .loading import Trained as Trained
    from .loading import load as load


def __getattr__(name: str) -> Any:
    """Import torch only where an agent is asked for: `sojourn --help` needs none."""
    if name not in ("load", "Trained"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import loading

    return getattr(loading, name)
