"""Values that are slow to find, each remembered by all that it depends on."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Remembered(Generic[Key, Value]):
    """At most `most` values by key; one more, and all are forgotten.

    Unlike `functools.lru_cache` it takes keys that the maker of a value is not called with.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[Key, Value] = {}

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value of a key, made now where it is not known."""
        if key not in self._values:
            value = make()
            if len(self._values) >= self._most:
                self._values.clear()
            self._values[key] = value
        return self._values[key]
