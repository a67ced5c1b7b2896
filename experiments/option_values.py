"""What the value of an option of a verb says: a whole number, true or false."""

from __future__ import annotations

from .errors import UsageError


def whole(name: str, value: str | int, least: int) -> int:
    """A number such as 20_000; raises UsageError for anything else and for one below `least`."""
    text = str(value).replace("_", "")
    if not text.isdecimal() or int(text) < least:
        raise UsageError(f"{name}={value}: expected a whole number, {least} or more")
    return int(text)


def truth(name: str, value: str) -> bool:
    """Raises UsageError for another word than true and false."""
    if value not in ("true", "false"):
        raise UsageError(f"{name}={value}: expected true or false")
    return value == "true"
