"""Actions of a crowd as arrays: which are legal, and uniformly random ones.

An action is one integer or, with several parts, a row of numbers (`Interface`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .interface import Array, Interface
from .task import Segment


def checked_actions(
    interface: Interface, actions: Array, mask: Array, segments: Sequence[Segment]
) -> Array:
    """Actions in the type the interface says.

    Raises ValueError for another shape, and for actions that `mask` `[B, mask_width]` rules out,
    with the name of the task that the row plays.
    """
    single = interface.num_parts == 1
    expected = (len(mask),) if single else (len(mask), interface.num_parts)
    actions = np.asarray(actions, np.int64 if single else np.float32)
    if actions.shape != expected:
        raise ValueError(f"actions: expected {list(expected)}, got {actions.shape}")
    legal = _one_choice(actions, mask) if single else _parts(interface, actions, mask)
    if not legal.all():
        row = int(np.flatnonzero(~legal)[0])
        had = f"{int(mask[row].sum())} actions"
        if not single:
            had = f"choices among {interface.choices}, some masked, and reals in [-1, 1]"
        name = segments[row].task.name
        raise ValueError(f"actions: row {row} plays {name!r}, which has {had}; got {actions[row]}")
    return actions


def _one_choice(actions: Array, mask: Array) -> Array:
    """Whether every action is a possible option: bool `[B]`."""
    legal = (actions >= 0) & (actions < mask.shape[1])
    if not legal.all():
        actions = np.where(legal, actions, 0)
    return np.asarray(legal & mask[np.arange(len(mask)), actions])


def _parts(interface: Interface, parts: Array, mask: Array) -> Array:
    """Whether every choice is a possible option and every real lies in [-1, 1]: bool `[B]`."""
    legal = np.ones(len(parts), bool)
    for index, options in enumerate(_options(interface, mask)):
        # A number that is no option (NaN too) becomes one and is compared with what was asked for.
        asked = parts[:, index]
        within = (asked >= 0) & (asked < options.shape[1])
        option = np.where(within, asked, 0).astype(np.int64)
        legal &= within & (option == asked)
        legal &= np.take_along_axis(options, option[:, None], 1)[:, 0]
    reals = parts[:, len(interface.choices) :]
    return np.asarray(legal & (np.abs(reals) <= 1.0).all(axis=1))


def random_actions(interface: Interface, mask: Array, rng: np.random.Generator) -> Array:
    """Uniformly random over the possible options and over [-1, 1]; parts a task lacks are 0."""
    columns = []
    for options in _options(interface, mask):
        rank = rng.random(len(mask)) * options.sum(axis=1)
        columns.append((options.cumsum(axis=1) > rank[:, None]).argmax(axis=1))
    if interface.num_parts == 1:
        return np.asarray(columns[0])
    reals = mask[:, sum(interface.choices) :]
    drawn = np.where(reals, rng.uniform(-1.0, 1.0, reals.shape), 0.0)
    return np.column_stack([*columns, drawn]).astype(np.float32)


def _options(interface: Interface, mask: Array) -> Iterator[Array]:
    """The part of the action mask `[B, options]` of every choice."""
    start = 0
    for size in interface.choices:
        yield mask[:, start : start + size]
        start += size
