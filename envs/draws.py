"""Parameters that are drawn for every task: `{uniform: [8, 12]}` in place of a value.

uniform [a, b]: x ~ U(a, b);  log_uniform [a, b]: log x ~ U(log a, log b)
integers [a, b]: uniform over a .. b;  choice [...]: uniform over the list
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

Rule = Callable[[Sequence[Any], np.random.Generator], Any]

RULES: dict[str, Rule] = {
    "uniform": lambda ends, rng: float(rng.uniform(*ends)),
    "log_uniform": lambda ends, rng: math.exp(rng.uniform(math.log(ends[0]), math.log(ends[1]))),
    "integers": lambda ends, rng: int(rng.integers(ends[0], ends[1] + 1)),
    "choice": lambda values, rng: values[int(rng.integers(len(values)))],
}


def rule_of(value: Any) -> tuple[str, Sequence[Any]] | None:
    """The name of the rule and its numbers; None for what is a value itself."""
    if not (isinstance(value, Mapping) and len(value) == 1):
        return None
    name, given = next(iter(value.items()))
    return (name, given) if name in RULES else None


def check_draws(parameters: Mapping[str, Any], path: str) -> None:
    """Raise ValueError, with the name of the parameter, for a rule that cannot be drawn from."""
    for parameter, value in parameters.items():
        where = f"{path}.{parameter}"
        if isinstance(value, Mapping) and len(value) == 1 and rule_of(value) is None:
            _check_misspelt(next(iter(value)), where)
        found = rule_of(value)
        if found is None:
            continue
        name, given = found
        if not isinstance(given, Sequence) or isinstance(given, str) or not given:
            raise ValueError(f"{where}: {name} expects a list, got {given!r}")
        if name == "choice":
            continue
        numbers = all(isinstance(end, int | float) for end in given)
        if len(given) != 2 or not numbers or not given[0] <= given[1]:
            raise ValueError(f"{where}: {name} expects [lowest, highest], got {list(given)}")
        if name == "log_uniform" and given[0] <= 0:
            raise ValueError(f"{where}: log_uniform expects numbers above 0, got {list(given)}")


def _check_misspelt(name: Any, where: str) -> None:
    near = get_close_matches(str(name), RULES, n=1, cutoff=0.75)
    if near:
        raise ValueError(f"{where}: no rule {name!r}; did you mean {near[0]}?")


def drawn(parameters: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The parameters with every rule replaced by a value; all randomness from `rng`."""
    values = {}
    for name, value in parameters.items():
        found = rule_of(value)
        values[name] = value if found is None else RULES[found[0]](found[1], rng)
    return values


def extremes(parameters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Values that show how far the draws reach: every end and every choice, one after another."""
    reached = {}
    for name, value in parameters.items():
        found = rule_of(value)
        reached[name] = [value] if found is None else list(found[1])
    first = {name: values[0] for name, values in reached.items()}
    yield first
    for name, values in reached.items():
        for value in values[1:]:
            yield first | {name: value}
