"""`scale=tiny|small|full`, the one dial: the most that a run and a study may be.

value = min(value of the files, most of the scale); a key on the command line stands as it is
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml  # type: ignore[import-untyped]
from omegaconf import DictConfig, OmegaConf

from . import catalog
from .errors import UsageError, hint

GROUP = "scale"
FULL = "full"


@dataclass(frozen=True)
class Scale:
    """`most`: dotted key -> largest value; `seeds`: how many a study has that names none (None: all
    of its file).
    """

    most: Mapping[str, int]
    seeds: int | None

    def reduce(self, config: DictConfig) -> None:
        """Make every key of the configuration, in place, at most what this scale allows; an
        endless run (null) becomes the longest.
        """
        for key, most in self.most.items():
            value = OmegaConf.select(config, key)
            if value is None or value > most:
                OmegaConf.update(config, key, most)

    def reduce_words(self, words: Sequence[str]) -> list[str]:
        """The `key=value` words of a file, none above what this scale allows."""
        return [self._reduce_word(word) for word in words]

    def _reduce_word(self, word: str) -> str:
        key, _, text = word.partition("=")
        if key not in self.most:
            return word
        try:
            fits = float(text) <= self.most[key]
        except ValueError:  # null, a sweep or a mistake
            fits = False
        return word if fits else f"{key}={self.most[key]}"


def read_scale(name: str) -> Scale:
    """A shipped scale; raises UsageError naming the nearest for another."""
    known = catalog.options(GROUP)
    if name not in known:
        raise UsageError(f"{GROUP}={name}: no such scale; {hint(name, known)}")
    content = yaml.safe_load(catalog.text_of(GROUP, name))
    return Scale(dict(_leaves(content["most"], "")), content["seeds"])


def scale_among(words: Sequence[str]) -> Scale:
    """The scale that the last `scale=` word names, else the full one."""
    names = [word.partition("=")[2] for word in words if word.startswith(f"{GROUP}=")]
    return read_scale(names[-1] if names else FULL)


def _leaves(node: Mapping[str, Any], path: str) -> Iterator[tuple[str, int]]:
    for name, value in node.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value
