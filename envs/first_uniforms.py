"""The first random numbers of many seeds at once, as NumPy's generators would give them.

    s_k = A^(k+1) (s + i) + (A^k + ... + A + 1) i   mod 2^128,     u_k = xsl_rr(s_k) / 2^64

with s and the odd increment i from the seed. A generator costs several times what its first four
numbers do. Source: O'Neill (2014), "PCG: a family of simple fast space-efficient statistically good
algorithms" (PCG64 XSL RR); Brown (1994), "Random number generation with arbitrary strides";
`numpy.random.PCG64`, whose numbers are reproduced bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from .episode_seeds import MASK, hashed_words
from .interface import Array

FEW = 7
"""So many generators cost no more than this."""

_A = 0x2360ED051FC65DA44385DF649FCCF645
_WORD, _LOW_WORD = np.array(32, np.uint64), np.array(MASK, np.uint64)


def first_uniforms(seeds: Sequence[int], num: int) -> Array:
    """`default_rng(seed).random(num)` of every seed: float64 `[n, num]`."""
    if len(seeds) <= FEW or max(seeds) > MASK:
        drawn = [np.random.default_rng(seed).random(num) for seed in seeds]
        return np.array(drawn).reshape(len(seeds), num)
    words = hashed_words(np.array([seeds], np.uint32)).astype(np.uint64)
    halves = words[1::2] << _WORD | words[::2]
    high, low = halves[::2], halves[1::2]  # each of s and of what i is made from
    high[1] = high[1] << 1 | low[1] >> 63
    low[1] = low[1] << 1 | 1
    high[0], low[0] = _sum(high[0], low[0], high[1], low[1])
    high, low = _product(high[..., None], low[..., None], _strides(num))
    high, low = _sum(high[0], low[0], high[1], low[1])
    folded, turn = high ^ low, high >> 58
    # Turned right by `turn` bits of 64; a shift by 64 is not defined.
    turned = folded >> turn | folded << (64 - turn & 63)
    return np.asarray((turned >> 11) * 2.0**-53)


@cache
def _strides(num: int) -> Array:
    """A^(k+1) and its sum to the left, k = 1 .. num: uint64 `[4, 2, 1, num]`.

    Four words of 64 bits: the upper and the lower half, and the lower one's upper and lower half.
    """
    powers = [pow(_A, k, 2**128) for k in range(num + 2)]
    sums = [sum(powers[: k + 1]) % 2**128 for k in range(1, num + 1)]
    numbers = np.array([powers[2:], sums], object)[:, None]
    low = numbers & (2**64 - 1)
    parts = [numbers >> 64, low, low >> 32, low & MASK]
    return np.stack([part.astype(np.uint64) for part in parts])


def _product(high: Array, low: Array, factor: Array) -> tuple[Array, Array]:
    """High and low words of the product of two numbers of 128 bits, mod 2^128."""
    factor_high, factor_low, upper, lower = factor
    left, right = low >> _WORD, low & _LOW_WORD
    middle = left * lower + (right * lower >> _WORD)
    other = right * upper + (middle & _LOW_WORD)
    carried = left * upper + (middle >> _WORD) + (other >> _WORD)
    return carried + high * factor_low + low * factor_high, low * factor_low


def _sum(high: Array, low: Array, other_high: Array, other_low: Array) -> tuple[Array, Array]:
    """High and low words of the sum of two numbers of 128 bits, mod 2^128."""
    total = low + other_low
    return high + other_high + (total < low), total
