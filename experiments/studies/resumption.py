"""`sojourn study resume=latest|FOLDER`: the words of a study that was begun, given once more."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..errors import RunError, UsageError
from ..folder import BEST, LATEST, RUNS, link, pointed_at, read_json, write_atomically

FILE = "study.json"
POINTER = RUNS / "studies" / LATEST
RESUME = "resume="
# Words that say how a study is run, not what it is.
FREE = ("jobs", "launcher", "estimate", "part", "only")


def keep_words(folder: Path, words: Sequence[str]) -> None:
    """Write down what a study was asked for, and point `runs/studies/latest` at it."""
    own = [word for word in words if not _is_free(word)]
    write_atomically(folder / FILE, json.dumps({"words": own}, indent=1) + "\n")
    with suppress(OSError):  # a study elsewhere goes without where this place cannot be written
        POINTER.parent.mkdir(parents=True, exist_ok=True)
        link(POINTER, folder)


def resumed_words(words: Sequence[str]) -> list[str]:
    """The words themselves; where one is `resume=`, those of that study and the others that say how
    it is run. Raises UsageError for a folder that is none and for words that would change it.
    """
    where = [word.removeprefix(RESUME) for word in words if word.startswith(RESUME)]
    if not where:
        return list(words)
    if where[-1] == BEST:
        raise UsageError(
            "resume=best: the members of a study go on from their newest checkpoints; give latest"
        )
    folder = pointed_at(POINTER, "study") if where[-1] == LATEST else Path(where[-1])
    if not (folder / FILE).is_file():
        raise UsageError(f"{RESUME}{where[-1]}: not the folder of a study (it has no {FILE})")
    others = [word for word in words if not word.startswith(RESUME)]
    for word in others:
        if not _is_free(word):
            raise UsageError(
                f"{word}: a study that goes on changes {', '.join(FREE)} only; leave resume= out "
                "for another"
            )
    saved = read_json(folder / FILE).get("words")
    if not isinstance(saved, list):
        raise RunError(f"{folder / FILE}: expected a list of words")
    kept = [word for word in saved if not word.startswith("output=")]
    return [*kept, f"output={folder}", *others]


def _is_free(word: str) -> bool:
    return word.partition("=")[0].partition(".")[0] in FREE
