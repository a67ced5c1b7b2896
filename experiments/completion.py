"""Tab completion: what may stand at the end of a line that begins with `sojourn`.

Read from the configuration files and from the help of every verb, without torch, so that it answers
before a finger is lifted. A word that is finished ends in a space.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig

from . import catalog
from .config import PATH_KEYS, compose_choices
from .errors import UsageError
from .folder import BEST, LATEST
from .lives.settings import default_config
from .manual.help import TEXTS, key_meanings, live_meanings, probe_keys, probe_named

RUN_VERBS = ("evaluate", "live", "record", "compare")
TRAINING_VERBS = ("train", "check-core", "reference", "study")
OF_PATHS = (*PATH_KEYS, "output", "checkpoint", "pictures")
SHELLS = ("bash", "zsh", "fish")
_OPTION = re.compile(r"^  ([a-z_]+)  +(\S.*)$", re.MULTILINE)
_WORD = re.compile(r"[\w.-]+")


def complete(words: Sequence[str], verbs: Iterable[str]) -> list[str]:
    """Ends of the last of `words`, the words after `sojourn`; finished ones end in a space."""
    *before, current = words
    if not before:
        return [f"{name} " for name in (*verbs, "--help", "--version") if name.startswith(current)]
    verb = before[0]
    if verb not in TEXTS:
        return []
    key, equals, begun = current.partition("=")
    if equals:
        return [f"{key}={value}" for value in _values(verb, key, begun, before[1:])]
    found = [f"{word} " for word in (*_words(verb), "--help") if word.startswith(current)]
    found += _steps(current, _keys(verb, before[1:]))
    return found + (_paths(current) if verb in RUN_VERBS else [])


def choices_in(meaning: str) -> list[str]:
    """The values that an explanation lists, as in `of keys: identity | silu` or as in `batch: over
    all | task: within each`; empty where it lists none.
    """
    first, *others = meaning.split(" | ")
    if not others:
        return []
    said, colon, value = first.rpartition(": ")
    if colon and " " in value:  # the first value is explained itself
        value = said.rpartition(" ")[2]
    return [word[0] for word in map(_WORD.match, [value, *others]) if word]


def option_meanings(verb: str) -> dict[str, str]:
    """Option -> meaning of the options that the help of a verb explains."""
    return dict(_OPTION.findall(TEXTS[verb]))


def _words(verb: str) -> list[str]:
    """Words without an equals sign."""
    if verb == "list":
        return [*catalog.ALL_GROUPS]
    if verb == "completion":
        return list(SHELLS)
    if verb == "compare":  # whole runs, not one checkpoint of one
        return [LATEST]
    return [LATEST, BEST] if verb in RUN_VERBS else []


def _keys(verb: str, given: Sequence[str]) -> list[str]:
    """All dotted keys a verb reads."""
    return [*option_meanings(verb), *(key for key, _ in _configured(verb, given))]


def _configured(verb: str, given: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Key -> value of the files behind a verb, under the choices in `given`."""
    if verb in TRAINING_VERBS:
        yield from _leaves(_training(given))
    elif verb in ("evaluate", "live"):
        yield from _leaves(default_config() if verb == "live" else {})
        whole = _training(given)
        for group in ("stream", "trainer") if verb == "live" else ("stream",):
            yield group, None
            yield from _leaves({group: whole[group]})
    elif verb == "probe":
        yield from _leaves(probe_keys(probe_named(_option(given, "probe"))))


def _values(verb: str, key: str, begun: str, given: Sequence[str]) -> list[str]:
    """Values of a key that begin with `begun`."""
    last = begun.rpartition(",")[2]  # studies and conditions take lists
    before = begun[: len(begun) - len(last)]
    if key in OF_PATHS:
        return [*_begin([LATEST, BEST] if key == "resume" else [], begun), *_paths(begun)]
    if key in catalog.ALL_GROUPS:
        files = _paths(begun) if begun.startswith((".", "/")) else []
        return [before + value for value in _begin(catalog.options(key), last)] + files
    configured = dict(_configured(verb, given))
    choices = choices_in(_meanings(verb, given).get(key, ""))
    if isinstance(configured.get(key), bool):
        choices = ["true", "false"]
    return [before + value for value in _begin(choices, last)]


def _meanings(verb: str, given: Sequence[str]) -> Mapping[str, str]:
    """Key -> what the files and the help say of it."""
    found = dict(option_meanings(verb))
    if verb == "live":
        found |= live_meanings()
    elif verb == "probe":
        found |= key_meanings("probe", probe_named(_option(given, "probe")))
    if verb in (*TRAINING_VERBS, "live", "evaluate"):
        choices = _training(given).choices
        found |= key_meanings(None, "train") if verb in TRAINING_VERBS else {}
        for group in catalog.GROUPS[:-1]:
            of_group = key_meanings(group, choices[group])
            found |= {f"{group}.{key}": said for key, said in of_group.items()}
    return found


def _training(given: Sequence[str]) -> DictConfig:
    """The configuration under the groups that were chosen, as far as they exist."""
    chosen = {}
    for word in given:
        group, _, name = word.partition("=")
        if group in catalog.GROUPS:
            try:
                catalog.check_option(group, name)
            except UsageError:
                continue
            chosen[group] = name
    return compose_choices(chosen)


def _leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys with a value, and those of groups and classes, which may be chosen whole."""
    items = node.items() if hasattr(node, "items") else enumerate(node)
    for name, value in items:
        child = f"{path}.{name}" if path else str(name)
        if str(name).startswith("_") or child == "choices":
            continue
        nested = isinstance(value, (Mapping, DictConfig, ListConfig)) and len(value) > 0
        if not nested or child in catalog.GROUPS or "_target_" in value:
            yield child, value
        if nested:
            yield from _leaves(value, child)


def _steps(current: str, keys: Iterable[str]) -> list[str]:
    """Keys up to their next dot: `trainer.` and not all its hundred keys; a leaf ends in `=`."""
    found: dict[str, None] = {}
    for key in keys:
        if key.startswith(current):
            end = key.find(".", len(current))
            found[f"{key}=" if end < 0 else key[: end + 1]] = None
    return list(found)


def _paths(begun: str) -> list[str]:
    """Files and folders; a folder may go on."""
    return [f"{path}/" if Path(path).is_dir() else f"{path} " for path in sorted(glob(f"{begun}*"))]


def _begin(values: Iterable[str], begun: str) -> list[str]:
    return [f"{value} " for value in values if value.startswith(begun)]


def _option(given: Sequence[str], name: str) -> str:
    return dict(word.partition("=")[::2] for word in given).get(name, "")
