"""Members whose memories are of one size, so that no memory wins by being larger."""

from __future__ import annotations

from typing import get_args

from omegaconf import DictConfig

from .. import catalog
from ..config import compose_config, parse
from ..errors import UsageError, hint
from ..sizing import Quantity, match, quantity_of

MATCHES = ("none", *get_args(Quantity))


class Unmatched(Exception):
    """No size of a memory matches the reference."""


class Sizes:
    """Words that give a member's memory the size of the reference."""

    def __init__(self, how: str, reference: str) -> None:
        if how not in MATCHES:
            raise UsageError(f"match={how}: no such match; {hint(how, MATCHES)}")
        known = catalog.options("memory")
        if reference not in known:
            raise UsageError(f"reference={reference}: no such memory; {hint(reference, known)}")
        self.quantity: Quantity | None = None if how == "none" else how  # type: ignore[assignment]
        self.reference = reference
        self._targets: dict[int, int] = {}

    def words(self, config: DictConfig) -> list[str]:
        """Raises Unmatched when no size fits."""
        if self.quantity is None or config.choices.memory == self.reference:
            return []
        width = int(config.agent.width)
        if width not in self._targets:
            reference = compose_config(parse([f"memory={self.reference}"]))
            self._targets[width] = quantity_of(reference, width, self.quantity)
        try:
            sized = match(config, width, self.quantity, self._targets[width])
        except UsageError as error:
            raise Unmatched(f"{config.choices.memory}: {error}") from error
        return [f"memory.{key}={value}" for key, value in sized.changes.items()]
