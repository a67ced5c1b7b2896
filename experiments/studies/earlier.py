"""Rows that an earlier version left: the same question, asked before some of its keys existed.

A row answers for a member when the words are the same, every setting that it knew has the same
value (but for speed only), and every setting that is new since has the default of its group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from omegaconf import OmegaConf

from ..config import compose_config, parse
from ..speed_only import without_speed_only

PRESETS = "experiment"  # not a group of defaults: it sets keys of the others


def answers(row: Mapping[str, Any], words: Sequence[str], settings: Mapping[str, Any]) -> bool:
    """Whether a row's numbers are those of `settings`; False for rows without settings."""
    if "settings" not in row or set(row["words"]) != set(words):
        return False
    groups = {k: v for k, v in settings["choices"].items() if v is not None and k != PRESETS}
    compared = row["settings"], settings, _defaults(tuple(groups.items()))
    return _agrees(*map(without_speed_only, compared))


def _agrees(known: Any, now: Any, default: Any) -> bool:
    known_parts, parts, defaults = _parts(known), _parts(now), _parts(default) or {}
    if known_parts is None or parts is None:
        return bool(known == now)
    added = parts.keys() - known_parts.keys()
    return (
        known_parts.keys() <= parts.keys()
        and all(_agrees(known_parts[k], parts[k], defaults.get(k)) for k in known_parts)
        and all(k in defaults and parts[k] == defaults[k] for k in added)
    )


def _parts(value: Any) -> dict[Any, Any] | None:
    """What a mapping or a list is made of; None for anything else."""
    if isinstance(value, Mapping):
        return dict(value)
    return dict(enumerate(value)) if isinstance(value, list) else None


@cache
def _defaults(choices: tuple[tuple[str, str], ...]) -> Any:
    """The settings under these choices when nothing else is said."""
    config = compose_config(parse([f"{group}={name}" for group, name in choices]))
    return OmegaConf.to_container(config, resolve=True)
