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

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFTS = tuple(np.uint64(bits) for bits in (30, 27, 31, 11))


def uniforms(seeds: ArrayLike, steps: ArrayLike, draw: int) -> Array:
    """Float64 in [0, 1), one per entry of the integer arrays `seeds` and `steps` `[B]`.

    `draw` numbers the independent draws of one step.
    """
    address = np.atleast_1d(np.asarray(seeds)).astype(np.uint64)
    for part in (np.atleast_1d(np.asarray(steps)).astype(np.uint64), np.array([draw], np.uint64)):
        address = _mixed(address + (part + np.uint64(1)) * _GOLDEN)
    return np.asarray((address >> _SHIFTS[3]) * 2.0**-53)


def normals(seeds: ArrayLike, steps: ArrayLike, draw: int) -> Array:
    """Float64 standard normals, one per entry; uses the draws `draw` and `draw + 1`."""
    radius = np.sqrt(-2.0 * np.log1p(-uniforms(seeds, steps, draw)))
    return np.asarray(radius * np.cos(2.0 * np.pi * uniforms(seeds, steps, draw + 1)))


def _mixed(address: Array) -> Array:
    """The finaliser of splitmix64: every bit of the result depends on every bit of the address."""
    address = (address ^ (address >> _SHIFTS[0])) * _MIX_1
    address = (address ^ (address >> _SHIFTS[1])) * _MIX_2
    return np.asarray(address ^ (address >> _SHIFTS[2]))
