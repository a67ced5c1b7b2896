"""Ranges of whole numbers in the words of a command: `0..4` is 0, 1, 2, 3, 4."""

from __future__ import annotations

import re

_RANGE = re.compile(r"(\d+)\.\.(\d+)$")


def range_of(text: str) -> list[int] | None:
    """The numbers of a range, both ends included; None for any other text, `4..0` too."""
    found = _RANGE.match(text)
    return (list(range(int(found[1]), int(found[2]) + 1)) or None) if found else None
