"""Seeds of the episodes of a segment, fast: the words that NumPy's `SeedSequence` would give.

    seed_e = SeedSequence([seed, e]).generate_state(1)[0]

NumPy's objects cost more to make than the step of a simulator. The first few seeds of a segment,
which may be all it has, are made from integers one by one, the others 64 at once. Source: O'Neill
(2015), "Developing a seed_seq alternative"; `numpy.random.SeedSequence`, whose numbers are
reproduced bit for bit.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from .interface import Array

SINGLES, BLOCK = 8, 64
MAX_BLOCKS = 4096
MASK = 2**32 - 1

POOL = 4
"""Words that a `SeedSequence` keeps."""

_MIX_LEFT, _MIX_RIGHT = 0xCA01F9DD, 0x4973F715
# NumPy takes over arrays without dimensions fastest.
_LEFT, _RIGHT, _HALF = (np.array(word, np.uint32) for word in (_MIX_LEFT, _MIX_RIGHT, 16))


def _constants(start: int, factor: int, num: int) -> list[tuple[int, int]]:
    """What a word is combined with and multiplied by in the 1st, 2nd ... hash."""
    chain = [start * pow(factor, power, 2**32) & MASK for power in range(num + 1)]
    return list(pairwise(chain))


_IN = _constants(0x43B0D7E5, 0x931E8875, POOL * POOL)
_OUT = _constants(0x8B51F9DD, 0x58F38DED, 2 * POOL)
_PAIRS = [(a, b) for a in range(POOL) for b in range(POOL) if a != b]
_MIXES = [(*pair, *constants) for pair, constants in zip(_PAIRS, _IN[POOL:], strict=True)]
# What goes into a word that was read before never reaches the first one.
_MIXES_OF_FIRST = [mix for mix in _MIXES if mix[1] == 0 or mix[0] < mix[1]]

_FIRST, _LAST = (tuple(np.array(table, np.uint32).T[..., None]) for table in (_IN[:POOL], _OUT))


def _round(source: int) -> tuple[Array, Array]:
    """The constants of one word that is mixed into the others, one for itself that counts not."""
    chosen = _IN[POOL + source * (POOL - 1) :][: POOL - 1]
    flip, factor = np.array([*chosen[:source], (0, 0), *chosen[source:]], np.uint32).T[..., None]
    return flip, factor


_ROUNDS = [_round(source) for source in range(POOL)]


def episode_seed(seed: int, episode: int) -> int:
    """The seed of an episode; raises ValueError for negative numbers."""
    if not (0 <= seed <= MASK and 0 <= episode <= MASK):
        return int(np.random.SeedSequence([seed, episode]).generate_state(1)[0])
    if episode < SINGLES:
        return _single(seed, episode)
    block, place = divmod(episode, BLOCK)
    return _block(seed, block)[place]


def hashed_words(entropy: Array) -> Array:
    """`SeedSequence(entropy[:, i]).generate_state(8)` of every i, uint32 `[8, n]`.

    `entropy` uint32 `[k, n]` with k of 1 to 4.
    """
    padded = np.zeros((POOL, entropy.shape[1]), np.uint32)
    padded[: len(entropy)] = entropy
    pool = _hashed(padded, *_FIRST)
    for source, constants in enumerate(_ROUNDS):
        word = pool[source]
        mixed: Array = pool * _LEFT - _hashed(word, *constants) * _RIGHT
        pool = mixed ^ mixed >> _HALF
        pool[source] = word
    return _hashed(np.concatenate([pool, pool]), *_LAST)


def _hashed(words: Array, flip: Array, factor: Array) -> Array:
    words = (words ^ flip) * factor
    return np.asarray(words ^ words >> _HALF)


def _single(seed: int, episode: int) -> int:
    pool = []
    for word, (flip, factor) in zip((seed, episode, 0, 0), _IN, strict=False):
        value = (word ^ flip) * factor & MASK
        pool.append(value ^ value >> 16)
    for source, target, flip, factor in _MIXES_OF_FIRST:
        other = (pool[source] ^ flip) * factor & MASK
        value = (pool[target] * _MIX_LEFT - (other ^ other >> 16) * _MIX_RIGHT) & MASK
        pool[target] = value ^ value >> 16
    flip, factor = _OUT[0]
    value = (pool[0] ^ flip) * factor & MASK
    return value ^ value >> 16


@lru_cache(maxsize=MAX_BLOCKS)
def _block(seed: int, block: int) -> list[int]:
    entropy = np.empty((2, BLOCK), np.uint32)
    entropy[0], entropy[1] = seed, np.arange(block * BLOCK, (block + 1) * BLOCK)
    words: list[int] = hashed_words(entropy)[0].tolist()
    return words
