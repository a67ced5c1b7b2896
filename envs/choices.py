"""Arguments that are one of a few words."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, get_args


def check_choice(name: str, value: Any, choices: object) -> None:
    """Raise ValueError, naming the nearest, where `value` is none of a Literal's choices."""
    options = get_args(choices)
    if value not in options:
        near = get_close_matches(str(value), options, n=1)
        nearest = f"; nearest is {near[0]!r}" if near else ""
        raise ValueError(f"{name}: expected one of {', '.join(options)}, got {value!r}{nearest}")
