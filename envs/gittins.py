"""Gittins indices of a Bernoulli arm, calibrated against a standard arm.

The index of a posterior Beta(a, b) is the known rate lambda at which going on with the arm and
retiring to lambda for ever are worth the same:

    V(a, b; lambda) = max( lambda / (1 - gamma),
                           p (1 + gamma V(a + 1, b)) + (1 - p) gamma V(a, b + 1) ),  p = a / (a + b)

solved backwards from a + b = N, where the posterior mean counts as known.
Source: Gittins (1979); calibration as in Gittins, Glazebrook and Weber (2011), chapter 8.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .interface import Array

NUM_RATES = 401
LOOK_AHEAD = 200


@lru_cache(maxsize=4)
def gittins_indices(num_pulls: int) -> Array:
    """Indices `[num_pulls + 2, num_pulls + 2]` at [a, b] of Beta(a, b), a, b >= 1; read-only.

    Discounts by gamma = 1 - 1 / n, at least 0.9, a close stand-in for the horizon of n pulls.
    """
    gamma = max(1.0 - 1.0 / num_pulls, 0.9)
    rates = np.linspace(0.0, 1.0, NUM_RATES)
    retire = rates / (1.0 - gamma)
    indices = np.zeros((num_pulls + 2, num_pulls + 2))
    depth = num_pulls + LOOK_AHEAD
    mean = np.arange(1, depth) / depth
    value = np.maximum(mean[:, None] / (1.0 - gamma), retire)
    for total in range(depth - 1, 1, -1):
        a = np.arange(1, total)
        p = (a / total)[:, None]
        go_on = p * (1.0 + gamma * value[1:total]) + (1.0 - p) * gamma * value[: total - 1]
        if total <= num_pulls + 2:
            indices[a, total - a] = _crossing(go_on - retire, rates)
        value = np.maximum(go_on, retire)
    indices.setflags(write=False)
    return indices


def _crossing(advantage: Array, rates: Array) -> Array:
    """Where each row, decreasing in the rate, crosses zero, by linear interpolation."""
    right = (advantage > 0).sum(1).clip(1, len(rates) - 1)
    rows = np.arange(len(advantage))
    above, below = advantage[rows, right - 1], advantage[rows, right]
    share = above / np.maximum(above - below, 1e-12)
    return np.asarray(rates[right - 1] + (rates[right] - rates[right - 1]) * share)
