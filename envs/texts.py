"""Free text as tokens: one integer per character.

tokens = [id(c_1), id(c_2), ..., 0, 0]; id 0 is padding, id 1 any character that is not printable
ASCII, so that texts of any character set share one table.
"""

from __future__ import annotations

import warnings
from functools import lru_cache

import numpy as np

from .interface import Array, Channel

PADDING, UNKNOWN = 0, 1
FIRST, LAST = ord(" "), ord("~")
LONGEST_TEXT = 256


def text_channel(length: int) -> Channel:
    """The channel of texts of up to `length` characters."""
    return Channel("tokens", (length,), LAST - FIRST + 3)


@lru_cache(maxsize=4096)
def text_tokens(text: str, length: int) -> Array:
    """Ids of the characters, int64 `[length]`, read-only; longer texts are cut with a warning."""
    if len(text) > length:
        warnings.warn(f"texts of more than {length} characters are cut", stacklevel=2)
    tokens = np.full(length, PADDING, np.int64)
    for place, character in enumerate(text[:length]):
        code = ord(character)
        tokens[place] = code - FIRST + 2 if FIRST <= code <= LAST else UNKNOWN
    tokens.setflags(write=False)
    return tokens
