"""How many processes `torchrun` started for this command."""

from __future__ import annotations

import os


def num_processes() -> int:
    """1 where it was not `torchrun` that started this one."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return 1
    return int(os.environ.get("WORLD_SIZE", "1"))
