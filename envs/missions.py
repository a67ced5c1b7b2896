"""Missions as tokens: one integer per word of the vocabulary of MiniGrid and BabyAI.

tokens = [id(word_1), id(word_2), ..., 0, 0]; id 0 is padding, id 1 any word outside the vocabulary.
The order of the vocabulary is part of every checkpoint that read missions: append, never reorder.
Source: `DictObservationSpaceWrapper` and the BabyAI verifier of the minigrid package.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache

import numpy as np

from .interface import Array, Channel

PADDING, UNKNOWN = 0, 1

COLOURS = "red green blue yellow purple grey"
OBJECTS = "unseen empty wall floor box key ball door goal agent lava object square"
PLACES = "room rooms maze hallway opening end left right front behind"
VERBS = "pick avoid get find put use open go fetch reach unlock traverse must"
OTHERS = "up the a at , and then to of near next you your matching from after in on"
VOCABULARY = tuple(" ".join((COLOURS, OBJECTS, PLACES, VERBS, OTHERS)).split())

_IDS = {word: number for number, word in enumerate(VOCABULARY, start=UNKNOWN + 1)}
_WORDS = re.compile(r"[a-z0-9]+|,")


def mission_channel(length: int) -> Channel:
    """The channel of missions of up to `length` words."""
    return Channel("tokens", (length,), len(VOCABULARY) + 2)


@lru_cache(maxsize=4096)
def mission_tokens(mission: str, length: int) -> Array:
    """Ids of the words, int64 `[length]`, read-only; longer missions are cut with a warning."""
    words = _WORDS.findall(mission.lower())
    if len(words) > length:
        warnings.warn(f"missions of more than {length} words are cut", stacklevel=2)
    tokens = np.full(length, PADDING, np.int64)
    ids = [_IDS.get(word, UNKNOWN) for word in words[:length]]
    tokens[: len(ids)] = ids
    tokens.setflags(write=False)
    return tokens
