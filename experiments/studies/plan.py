"""From the words of `sojourn study` to its members, every one checked before the first runs.

A word may sweep: `memory=gru,lstm`, `seed=0..4`, `trainer.loss.clip=0.1,0.2`. Members are the
product of all sweeps. A study file adds sweeps of its own and words for some of the members.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from omegaconf import DictConfig

from .. import catalog
from ..config import compose_config, parse
from ..errors import UsageError, hint
from ..folder import RUNS
from ..scale import scale_among
from ..sizing import Quantity, match, measure
from .member import Member, settings_of
from .sweep import choose_each, first_seeds

OPTIONS = {
    "study": "",
    "output": "",
    "jobs": "auto",
    "part": "1/1",
    "match": "none",
    "reference": "gated_delta_net",
}
MATCHES = ("none", "parameters", "state_bytes")
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
        """The words of a member beside its choices; those on the command line go before them."""
        given = {word.partition("=")[0] for word in own}
        found = [w for key, value in choices.items() for w in self.where.get(f"{key}={value}", ())]
        return [word for word in found if word.partition("=")[0] not in given]


@dataclass(frozen=True)
class Plan:
    """`left_out`: choices whose memory cannot be matched in size, and why."""

    members: Sequence[Member]
    output: Path
    jobs: int
    left_out: Sequence[str] = ()


def plan(words: Sequence[str]) -> Plan:
    """Read the words; raises UsageError naming the first that is wrong."""
    options, own = _sort(words)
    file = read_study(options["study"]) if options["study"] else StudyFile()
    sizes = _Sizes(options["match"], options["reference"])
    scale = scale_among([*file.words, *own])
    most_seeds = None if any(word.startswith("seed=") for word in own) else scale.seeds
    members: dict[str, Member] = {}
    left_out: list[str] = []
    for sweep in file.sweeps:
        keys = [word.partition("=")[0] for word in sweep]
        given = _last_of_each_key([*scale.reduce_words([*file.words, *sweep]), *own])
        for choices, chosen in choose_each(first_seeds(given, most_seeds), keys):
            found = scale.reduce_words(file.added_to(choices, own))
            try:
                member = _member(choices, [*chosen, *found], sizes)
            except _Unmatched as error:
                left_out.append(str(error))
                continue
            members.setdefault(member.name, member)
    if not members:
        raise UsageError(f"no member is left: {'; '.join(dict.fromkeys(left_out))}")
    ordered = sorted(members.values(), key=lambda m: int(m.choices.get("seed", 0)))
    output = Path(options["output"] or RUNS / "studies" / _name(options, own))
    return Plan(
        _share(ordered, options["part"]),
        output,
        _jobs(options["jobs"]),
        list(dict.fromkeys(left_out)),
    )


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


class _Unmatched(Exception):
    """No size of a memory matches the reference."""


def _member(choices: dict[str, str], words: Sequence[str], sizes: _Sizes) -> Member:
    seed = choices.get("seed", "")
    if not seed.isdecimal():
        raise UsageError("seed: a study needs seeds that are given, as in seed=0..4")
    words = [word for word in _last_of_each_key(words) if not word.startswith("seed=")]
    matched = sizes.words(_settings(tuple(words)))
    words = _last_of_each_key([*words, *matched])
    config = _settings(tuple(words)).copy()
    config.seed = int(seed)
    return Member([*words, f"seed={seed}"], choices, settings_of(config))


@cache
def _settings(words: tuple[str, ...]) -> DictConfig:
    """The checked settings of the members that differ by seed only."""
    return compose_config([*parse(words), *parse(["seed=0"])])


class _Sizes:
    """Words that give a member's memory the size of the reference."""

    def __init__(self, how: str, reference: str) -> None:
        if how not in MATCHES:
            raise UsageError(f"match={how}: no such match; {hint(how, MATCHES)}")
        known = catalog.options("memory")
        if reference not in known:
            raise UsageError(f"reference={reference}: no such memory; {hint(reference, known)}")
        self.quantity: Quantity | None = None if how == "none" else how  # type: ignore[assignment]
        self.reference = reference
        self._targets: dict[int, int] = {}

    def words(self, config: DictConfig) -> list[str]:
        """Raises _Unmatched when no size fits."""
        if self.quantity is None or config.choices.memory == self.reference:
            return []
        width = int(config.agent.width)
        if width not in self._targets:
            size = measure(compose_config(parse([f"memory={self.reference}"])), width)
            self._targets[width] = int(getattr(size, self.quantity))
        try:
            sized = match(config, width, self.quantity, self._targets[width])
        except UsageError as error:
            raise _Unmatched(f"{config.choices.memory}: {error}") from error
        return [f"memory.{key}={value}" for key, value in sized.changes.items()]


def _last_of_each_key(words: Sequence[str]) -> list[str]:
    return list({word.partition("=")[0]: word for word in words}.values())


def _sort(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    options, own = dict(OPTIONS), []
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name in options:
            options[name] = value
        else:
            own.append(word)
    return options, own


def _strings(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise UsageError(f"{where}: expected a list of key=value words")
    return value


def _name(options: dict[str, str], words: Sequence[str]) -> str:
    if options["study"]:
        return Path(options["study"]).stem
    chosen = dict(word.partition("=")[::2] for word in words)
    return chosen.get("experiment", "default").replace(",", "-")


def _share(members: Sequence[Member], part: str) -> list[Member]:
    """`part=2/4` is every fourth member from the second on: one share for each machine."""
    number, slash, count = part.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise UsageError(f"part={part}: expected a share such as 1/4")
    return list(members[int(number) - 1 :: int(count)])


def _jobs(text: str) -> int:
    if text == "auto":
        return os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"jobs={text}: expected auto or a whole number of processes from 1")
    return int(text)
