"""A study as a file: words for all members, sweeps, and words for those that made a choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from .. import catalog
from ..errors import UsageError, hint

FILE_KEYS = ("words", "sweeps", "where")


@dataclass(frozen=True)
class StudyFile:
    """`words` hold for every member, each of `sweeps` makes a product, `where` adds words.

    `where` maps a choice such as `memory=gru` to the words of the members that made it.
    """

    words: Sequence[str] = ()
    sweeps: Sequence[Sequence[str]] = ((),)
    where: dict[str, Sequence[str]] = field(default_factory=dict)

    def added_to(self, choices: dict[str, str], own: Sequence[str]) -> list[str]:
        """The words of a member beside its choices; these and the command line go before them."""
        given = {*choices, *(word.partition("=")[0] for word in own)}
        found = [w for key, value in choices.items() for w in self.where.get(f"{key}={value}", ())]
        return [word for word in found if word.partition("=")[0] not in given]


def read_study(name: str) -> StudyFile:
    """A shipped study or a YAML file of one's own."""
    known = catalog.options("study")
    if name in known:
        text = catalog.text_of("study", name)
    elif Path(name).is_file():
        text = Path(name).read_text(encoding="utf-8")
    else:
        raise UsageError(f"study={name}: no such study or file; {hint(name, known)}")
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        fault = " ".join(str(error).split())
        raise UsageError(f"study={name}: not valid YAML ({fault})") from error
    if not isinstance(content, dict):
        raise UsageError(f"study={name}: expected the keys {', '.join(FILE_KEYS)}")
    for key in content:
        if key not in FILE_KEYS:
            raise UsageError(f"study={name}: {key}: no such key; {hint(str(key), FILE_KEYS)}")
    sweeps, where = content.get("sweeps", [[]]), content.get("where", {})
    if not isinstance(sweeps, list):
        raise UsageError(f"study={name}: sweeps: expected a list of lists of key=value words")
    if not isinstance(where, dict):
        raise UsageError(
            f"study={name}: where: expected choices such as memory=gru and their words"
        )
    return StudyFile(
        _strings(content.get("words", []), f"study={name}: words"),
        [_strings(s, f"study={name}: sweeps") for s in sweeps],
        {
            str(choice): _strings(words, f"study={name}: where.{choice}")
            for choice, words in where.items()
        },
    )


def _strings(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise UsageError(f"{where}: expected a list of key=value words")
    return value
