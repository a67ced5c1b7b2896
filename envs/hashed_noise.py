"""Noise by address: random numbers that are functions of (episode seed, step, draw) alone.

    u = splitmix64(seed, step, draw) / 2^64,   normal = sqrt(-2 ln(1 - u_1)) cos(2 pi u_2)

Rows of a simulator draw theirs at once and an episode costs nothing to seed. Not for cryptography.
Source: Steele, Lea and Flood (2014), "Fast splittable pseudorandom number generators"; Box and
Muller (1958).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .interface import Array

# NumPy takes over arrays without dimensions fastest.
_GOLDEN, _MIX_1, _MIX_2 = (
    np.array(word, np.uint64)
    for word in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
_SHIFTS = tuple(np.array(bits, np.uint64) for bits in (30, 27, 31, 11))
_ONE = np.array(1, np.uint64)


def uniforms(seeds: ArrayLike, steps: ArrayLike, draw: ArrayLike) -> Array:
    """Float64 in [0, 1), one per entry of the integer arrays `seeds` and `steps` `[B]`.

    `draw` numbers the independent draws of one step; a column `[n, 1]` of numbers gives `[n, B]`.
    """
    address = np.atleast_1d(seeds).astype(np.uint64)
    for part in (steps, draw):
        number = np.atleast_1d(part).astype(np.uint64)
        address = _mixed(address + (number + _ONE) * _GOLDEN)
    return np.asarray((address >> _SHIFTS[3]) * 2.0**-53)


def normals(seeds: ArrayLike, steps: ArrayLike, draw: int) -> Array:
    """Float64 standard normals, one per entry; uses the draws `draw` and `draw + 1`."""
    first, second = uniforms(seeds, steps, [[draw], [draw + 1]])
    return np.asarray(np.sqrt(-2.0 * np.log1p(-first)) * np.cos(2.0 * np.pi * second))


def _mixed(address: Array) -> Array:
    """The finaliser of splitmix64: every bit of the result depends on every bit of the address."""
    address = (address ^ (address >> _SHIFTS[0])) * _MIX_1
    address = (address ^ (address >> _SHIFTS[1])) * _MIX_2
    return np.asarray(address ^ (address >> _SHIFTS[2]))
