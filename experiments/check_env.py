"""The verb `check-env`: what an environment is like before a run lives in it, line by line."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import yaml  # type: ignore[import-untyped]
from rich.text import Text

from sojourn.envs import (
    TASK_KEYS,
    Crowd,
    Family,
    Finding,
    Length,
    NeverRepeating,
    Stream,
    check_family,
    family_of,
    random_actions,
    spec_of,
    standard_error,
)

from .errors import EXIT_FAILURE, EXIT_OK, UsageError, hint
from .option_values import whole
from .progress import plain_console

COLOURS = {"fine": "green", "note": "cyan", "warning": "yellow", "broken": "red"}
NUMBERS = {"steps": 1, "seed": 0}
"""Options that are whole numbers, and the least of each."""

NESTED = ("kwargs", "attributes")
CHANGES = tuple(key for key in TASK_KEYS if key not in ("id", "length", "weight", "name"))
ROWS = 4


@dataclass(frozen=True)
class Request:
    """`names` are tasks, `changes` keys of a task that all of them are given."""

    names: Sequence[str]
    steps: int = 2_000
    seed: int = 0
    changes: dict[str, Any] | None = None


def check_env(words: Sequence[str]) -> int:
    """Run `sojourn check-env ID ... [key=value ...]`; exit code 1 where a law is broken."""
    wanted = parse_request(words)
    console = plain_console()
    broken = False
    for name in wanted.names:
        console.print(Text(name, style="bold"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what packages warn of when made is no finding
            findings = findings_of(name, wanted)
        for finding in findings:
            broken |= finding.level == "broken"
            line = Text(f"  {finding.level:8s}", style=COLOURS[finding.level])
            console.print(line.append(f"{finding.law}: {finding.text}", style="default"))
    return EXIT_FAILURE if broken else EXIT_OK


def parse_request(words: Sequence[str]) -> Request:
    """Read the words of the verb; raises UsageError for a wrong one."""
    names = [word for word in words if "=" not in word.split("{")[0]]
    if not names:
        raise UsageError("check-env: expected an id, for example sojourn check-env CartPole-v1")
    numbers: dict[str, int] = {}
    changes: dict[str, Any] = {}
    for word in words:
        if word in names:
            continue
        key, _, text = word.partition("=")
        group, _, inner = key.partition(".")
        if key in NUMBERS:
            numbers[key] = whole(f"check-env {key}", text, NUMBERS[key])
        elif group in NESTED and inner:
            changes.setdefault(group, {})[inner] = _value(word, text)
        elif key in CHANGES:
            changes[key] = _value(word, text)
        else:
            raise UsageError(f"check-env {word}: no such option; {hint(key, _known())}")
    return Request(names, **numbers, changes=changes)


def findings_of(name: str, wanted: Request) -> list[Finding]:
    """All there is to say of an id; raises UsageError for one that cannot be played."""
    try:
        family = family_of(spec_of(_task(name, wanted.changes or {})))
    except (TypeError, ValueError) as error:
        raise UsageError(f"check-env {name}: {error}") from error
    findings = list(check_family(family, wanted.seed))
    if any(finding.level == "broken" for finding in findings):
        return findings
    return findings + measure(family, wanted.steps, wanted.seed)


def measure(family: Family, num_steps: int, seed: int) -> list[Finding]:
    """What the uniformly random policy earns, and how fast the environment is, over `num_steps`."""
    crowd = Crowd(Stream(NeverRepeating([family]), Length(10**9), seed), ROWS)
    rng = np.random.default_rng(seed)
    returns: list[float] = []
    begin = time.perf_counter()
    for _ in range(max(1, num_steps // ROWS)):
        actions = random_actions(crowd.interface, crowd.observation["action_mask"], rng)
        returns += [record.total_return for record in crowd.step(actions).episodes]
    speed = num_steps / (time.perf_counter() - begin)
    running = [record.total_return for record in crowd.running_episodes()]
    crowd.close()
    findings = [Finding("fine", "speed", f"{speed:,.0f} steps/s with the adapter, one process")]
    if len(returns) < 2:
        text = f"fewer than two episodes ended in {num_steps:,} steps; reward so far {running}"
        return [*findings, Finding("note", "random floor", text)]
    error = standard_error(np.array(returns))
    text = f"return {np.mean(returns):.4g} ± {error:.2g} (s.e.) over {len(returns)} episodes"
    return [*findings, Finding("fine", "random floor", text)]


def _task(name: str, changes: dict[str, Any]) -> Any:
    """An id, or a mapping written as in a YAML file, with the keys that were given beside it."""
    task = _value(f"check-env {name}", name) if name.startswith("{") else name
    if not changes:
        return task
    task = dict(task) if isinstance(task, dict) else {"id": task}
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(task.get(key), dict)
        task[key] = task[key] | value if both else value
    return task


def _value(word: str, text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[-1].strip()
        raise UsageError(f"{word}: not readable as YAML ({reason})") from error


def _known() -> list[str]:
    return [*NUMBERS, *CHANGES, *(f"{group}.NAME" for group in NESTED)]
