"""Sizes of a memory that match another's: as many parameters, or as many bytes of state.

    level* = argmin_level |quantity(sizes at level) - target|

The sizes are the configuration's own keys: `key_width` and `value_width` together, `hidden_width`,
`mlp_ratio`, and for state bytes the `window` of a cache; the number of heads stays. A second search
moves the value width alone. No size exceeds `LARGEST`. Both quantities grow with every size, so
that bisection finds the best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from omegaconf import DictConfig, OmegaConf

from .build import build_memory
from .errors import UsageError

Quantity = Literal["parameters", "state_bytes"]

TOLERANCE = 0.05
LARGEST = 1024  # a recurrent network of that width has millions of weights and little state
WIDTHS = ("key_width", "value_width", "hidden_width", "mlp_ratio")


@dataclass(frozen=True)
class Size:
    """What one memory takes: learned numbers, and bytes of initial state per sequence."""

    parameters: int
    state_bytes: int
    grows: bool


@dataclass(frozen=True)
class Sized:
    """A configuration and how far, relatively, its quantity is from `target`.

    `changes` are the keys set, `memory.` left out.
    """

    config: DictConfig
    size: Size
    target: int
    off: float
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reached(self) -> bool:
        """Whether the target is met within `TOLERANCE`."""
        return abs(self.off) <= TOLERANCE


def measure(config: DictConfig, width: int) -> Size:
    """The size of `config.memory` for tokens of `width` numbers."""
    memory = build_memory(config, width)
    count = sum(parameter.numel() for parameter in memory.parameters())
    return Size(count, memory.state_bytes(), memory.grows)


def quantity_of(reference: DictConfig, width: int, quantity: Quantity) -> int:
    """What a match aims at; raises UsageError when the reference's state has no fixed size."""
    size = measure(reference, width)
    if quantity == "state_bytes" and size.grows:
        raise UsageError(
            "reference: its state grows with every token and has no number of bytes to match; "
            "use match=parameters, or reference=sliding_window"
        )
    return int(getattr(size, quantity))


def match(config: DictConfig, width: int, quantity: Quantity, target: int) -> Sized:
    """The sizes of `config.memory` whose quantity is nearest to `target`.

    Raises UsageError when no size moves the quantity, in a memory without state or one that grows,
    and when the target is nothing.
    """
    if target == 0:
        raise UsageError(f"{quantity}: the reference has none; use reference=gated_delta_net")
    own = measure(config, width)
    if quantity == "state_bytes" and own.grows:
        raise UsageError("state_bytes: this memory's state grows with every token, no size fits it")
    if quantity == "state_bytes" and own.state_bytes == 0:
        raise UsageError("state_bytes: this memory has no state")
    found = [Sized(config, own, target, _off(own, quantity, target))]
    for keys in _knobs(config.memory, quantity):
        found.append(_search(config, width, quantity, target, keys))
    if len(found) == 1:
        raise UsageError(f"{quantity}: this memory has none of the sizes {', '.join(WIDTHS)}")
    best = min(found, key=lambda sized: abs(sized.off))
    values = _paths(best.config.memory, ("value_width",))
    if best.off == 0 or not values:
        return best
    try:
        refined = _search(best.config, width, quantity, target, values)
    except UsageError:  # a memory that adds keys to its reads ties the two widths
        return best
    changes = {**best.changes, **refined.changes}
    refined = Sized(refined.config, refined.size, target, refined.off, changes)
    return min(best, refined, key=lambda sized: abs(sized.off))


def _search(
    config: DictConfig, width: int, quantity: Quantity, target: int, keys: Sequence[str]
) -> Sized:
    """The best level of `keys`, all set to it together."""
    tried: dict[int, Sized] = {}

    def amount(level: int) -> int:
        if level not in tried:
            changes = {key: _value(config.memory, key, level, width) for key in keys}
            changed = config.copy()
            for key, value in changes.items():
                OmegaConf.update(changed, f"memory.{key}", value)
            size = measure(changed, width)
            off = _off(size, quantity, target)
            tried[level] = Sized(changed, size, target, off, changes)
        return int(getattr(tried[level].size, quantity))

    _bisect(amount, target)
    return min(tried.values(), key=lambda sized: abs(sized.off))


def _bisect(amount: Callable[[int], int], target: int) -> None:
    """Ask `amount`, which never falls, on both sides of where it passes the target."""
    low, high = 1, 2
    if amount(low) >= target:
        return
    while amount(high) < target:
        if high >= LARGEST:
            return
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if amount(middle) < target else (low, middle)


def _knobs(memory: DictConfig, quantity: Quantity) -> list[list[str]]:
    """Sets of keys that may be moved together."""
    windows = _paths(memory, ("window",), below="cache") if quantity == "state_bytes" else []
    return [keys for keys in (windows, _paths(memory, WIDTHS)) if keys]


def _paths(memory: Any, names: Sequence[str], below: str = "") -> list[str]:
    """Dotted keys of that name; only directly inside a node called `below`, if given."""
    found: list[str] = []

    def visit(node: Any, path: Sequence[str]) -> None:
        for name, value in node.items():
            if OmegaConf.is_dict(value):
                visit(value, [*path, str(name)])
            elif name in names and (not below or path[-1:] == [below]):
                found.append(".".join([*path, str(name)]))

    visit(memory, [])
    return found


def _value(memory: DictConfig, key: str, level: int, width: int) -> float:
    """What a level means for a key: rotary positions need even keys, ratios count hidden units."""
    name = key.rpartition(".")[2]
    if name == "mlp_ratio":
        return level / width
    if name == "key_width" and "rotary" in OmegaConf.to_yaml(memory):
        return level + level % 2
    return level


def _off(size: Size, quantity: Quantity, target: int) -> float:
    return float(getattr(size, quantity)) / target - 1
