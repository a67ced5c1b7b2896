"""Seeds of the episodes of a segment, fast: the words that NumPy's `SeedSequence` would give.

    seed_e = SeedSequence([seed, e]).generate_state(1)[0]

Made one at a time they cost more than the step of a simulator; 64 at once cost as much as a dozen.
So the first few of a segment, which may be all it has, come from NumPy, the others from here.
Source: O'Neill (2015), "Developing a seed_seq alternative"; `numpy.random.SeedSequence`, whose
numbers are reproduced bit for bit.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from .interface import Array

SINGLES, BLOCK = 8, 64
MAX_BLOCKS = 4096
MASK = 2**32 - 1

_POOL = 4
_MIX_LEFT, _MIX_RIGHT = 0xCA01F9DD, 0x4973F715


def _constants(start: int, factor: int, num: int) -> list[tuple[int, int]]:
    """What a value is combined with and multiplied by in the 1st, 2nd ... hash."""
    chain = [start * pow(factor, power, 2**32) & MASK for power in range(num + 1)]
    return list(pairwise(chain))


_IN = _constants(0x43B0D7E5, 0x931E8875, _POOL * _POOL)
_OUT = _constants(0x8B51F9DD, 0x58F38DED, 1)


def episode_seed(seed: int, episode: int) -> int:
    """The seed of an episode; raises ValueError for negative numbers."""
    if not (0 <= seed <= MASK and SINGLES <= episode <= MASK):
        return int(np.random.SeedSequence([seed, episode]).generate_state(1)[0])
    block, place = divmod(episode, BLOCK)
    return _block(seed, block)[place]


@lru_cache(maxsize=MAX_BLOCKS)
def _block(seed: int, block: int) -> list[int]:
    entropy = np.zeros((_POOL, BLOCK), np.uint64)
    entropy[0], entropy[1] = seed, np.arange(block * BLOCK, (block + 1) * BLOCK)
    pool = [_hashed(word, place) for place, word in enumerate(entropy)]
    used = _POOL
    for source in range(_POOL):
        for target in range(_POOL):
            if source != target:
                other = _hashed(pool[source], used)
                value = (pool[target] * _MIX_LEFT - other * _MIX_RIGHT) & MASK
                pool[target] = value ^ (value >> 16)
                used += 1
    constant, factor = _OUT[0]
    word = (pool[0] ^ constant) * factor & MASK
    words: list[int] = (word ^ (word >> 16)).tolist()
    return words


def _hashed(value: Array, place: int) -> Array:
    constant, factor = _IN[place]
    value = (value ^ constant) * factor & MASK
    return np.asarray(value ^ (value >> 16))
