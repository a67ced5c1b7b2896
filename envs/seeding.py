"""Randomness by address: a generator depends on a root seed and a path of integers only.

Any part of a stream can therefore be built without building what comes before it.
Source: NumPy `SeedSequence` (hash-based spawning), https://numpy.org/doc/stable/reference/random/.
"""

from __future__ import annotations

import operator
from typing import SupportsIndex

import numpy as np

MAX_EPISODE_SEED = 2**31 - 1
MAX_WORD = 2**32 - 1


def generator(seed: int, *path: int) -> np.random.Generator:
    """The generator that belongs to `path` under the root `seed`; both are integers >= 0."""
    words = (seed, 0, 0, 0, *path)
    if min(words) < 0 or max(words) > MAX_WORD:
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=path))
    # The words that NumPy would put together of the two, in half the time.
    return np.random.default_rng(np.random.SeedSequence(np.array(words, np.uint32)))


def draw_seed(rng: np.random.Generator) -> int:
    """A seed that every Gymnasium environment accepts: a Python integer in [0, 2^31)."""
    return int(rng.integers(MAX_EPISODE_SEED))


def checked_seed(seed: SupportsIndex) -> int:
    """`seed` as a Python integer; raises ValueError for text, fractions and negative numbers."""
    try:
        value = operator.index(seed)
    except TypeError:
        raise ValueError(f"seed: expected an integer >= 0, got {seed!r}") from None
    if value < 0:
        raise ValueError(f"seed: expected an integer >= 0, got {value}; nearest valid is 0")
    return value
