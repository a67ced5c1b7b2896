"""Words that sweep: `memory=gru,lstm`, `seed=0..4`, and the product of several of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from .. import catalog
from ..config import PATH_KEYS
from ..errors import UsageError
from ..ranges import range_of


def choose_each(
    words: Sequence[str], chosen_keys: Sequence[str] = ()
) -> Iterator[tuple[dict[str, str], list[str]]]:
    """(choice -> value, words without sweeps) for every combination.

    Choices are the memory, the seed, every key that sweeps and those of `chosen_keys`.
    """
    values = [values_of(word) for word in words]
    swept = [word.partition("=")[0] for word, found in zip(words, values, strict=True) if found]
    for chosen in product(*(found or [word] for word, found in zip(words, values, strict=True))):
        of_key = dict(word.partition("=")[::2] for word in chosen)
        named = dict.fromkeys(("memory", *chosen_keys, *swept))
        named.pop("seed", None)
        yield {key: of_key[key] for key in (*named, "seed") if key in of_key}, list(chosen)


def first_seeds(words: Sequence[str], count: int | None) -> list[str]:
    """The words with the first `count` of their seeds, or with seeds 1 to `count` where they name
    none; None changes nothing.
    """
    others = [word for word in words if not word.startswith("seed=")]
    if count is None:
        return list(words)
    named = [word for word in words if word not in others]
    found = (values_of(named[-1]) or named) if named else [f"seed={n + 1}" for n in range(count)]
    seeds = [word.partition("=")[2] for word in found[:count]]
    return [*others, f"seed={','.join(seeds)}"]


def values_of(word: str) -> list[str] | None:
    """The words that a sweep stands for; None for a word with one value."""
    key, equals, value = word.partition("=")
    if word.startswith("-") or not equals:
        raise UsageError(f"{word!r}: expected key=value, for example memory=delta_net,gru")
    if key in PATH_KEYS:
        raise UsageError(f"{key}: set by the study for every member; its own folder is output=")
    if key == "memory" and value == "all":
        return [f"memory={name}" for name in catalog.options("memory")]
    numbers = range_of(value)
    if numbers is not None:
        return [f"{key}={number}" for number in numbers]
    try:
        parsed = OverridesParser.create().parse_override(word)
    except HydraException as error:
        raise UsageError(f"{word!r}: cannot read the value") from error
    if not parsed.is_sweep_override():
        return None
    return [f"{key}={one}" for one in parsed.sweep_string_iterator()]
