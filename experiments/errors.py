"""What can go wrong outside the code: a mistake in the request, or a run that cannot be used."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

EXIT_OK = 0
EXIT_FAILURE = 1
EXIT_USAGE = 2


class UsageError(Exception):
    """The request itself is wrong; told in one line, exit code 2."""


class RunError(Exception):
    """A run cannot be read or continued; told in one line, exit code 1."""


def first_line(error: BaseException) -> str:
    """What an error says first; its name where it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def nearest(name: str, choices: Iterable[str], count: int = 3) -> list[str]:
    """The choices that look most like `name`, best first; at most `count`."""
    known = sorted(set(choices))
    folded = {choice.lower(): choice for choice in known}
    found = difflib.get_close_matches(name.lower(), list(folded), n=count, cutoff=0.55)
    return [folded[match] for match in found]


def hint(name: str, choices: Iterable[str]) -> str:
    """The end of an error line: the nearest valid names, or all of them when none is near."""
    known = sorted(set(choices))
    close = nearest(name, known)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"choose from {', '.join(known)}" if known else "there is nothing to choose from"
