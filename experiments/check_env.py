"""The verb `check-env`: what an environment is like before a run lives in it, line by line."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import yaml  # type: ignore[import-untyped]
from rich.text import Text

from sojourn.envs import (
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
)

from .errors import EXIT_FAILURE, EXIT_OK, UsageError, hint
from .progress import plain_console

COLOURS = {"fine": "green", "note": "cyan", "warning": "yellow", "broken": "red"}
OPTIONS = {"steps": 2_000}
ROWS = 4


def check_env(words: Sequence[str]) -> int:
    """Run `sojourn check-env ID ... [steps=N]`; exit code 1 where a law is broken."""
    names = [word for word in words if "=" not in word.split("{")[0]]
    options = OPTIONS | _options([word for word in words if word not in names])
    if not names:
        raise UsageError("check-env: expected an id, for example sojourn check-env CartPole-v1")
    console = plain_console()
    broken = False
    for name in names:
        console.print(Text(name, style="bold"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what packages warn of when made is no finding
            findings = findings_of(name, options["steps"])
        for finding in findings:
            broken |= finding.level == "broken"
            line = Text(f"  {finding.level:8s}", style=COLOURS[finding.level])
            console.print(line.append(f"{finding.law}: {finding.text}", style="default"))
    return EXIT_FAILURE if broken else EXIT_OK


def findings_of(name: str, num_steps: int) -> list[Finding]:
    """All there is to say of an id; raises UsageError for one that cannot be played."""
    try:
        family = family_of(spec_of(_spec(name)))
    except (TypeError, ValueError) as error:
        raise UsageError(f"check-env {name}: {error}") from error
    findings = list(check_family(family))
    if any(finding.level == "broken" for finding in findings):
        return findings
    return findings + measure(family, num_steps)


def measure(family: Family, num_steps: int) -> list[Finding]:
    """What the uniformly random policy earns, and how fast the environment is, over `num_steps`."""
    crowd = Crowd(Stream(NeverRepeating([family]), Length(10**9), 0), ROWS)
    rng = np.random.default_rng(0)
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
    error = np.std(returns, ddof=1) / np.sqrt(len(returns))
    text = f"return {np.mean(returns):.4g} ± {error:.2g} (s.e.) over {len(returns)} episodes"
    return [*findings, Finding("fine", "random floor", text)]


def _spec(name: str) -> Any:
    """An id, or a mapping written as in a YAML file."""
    if not name.startswith("{"):
        return name
    try:
        return yaml.safe_load(name)
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[-1].strip()
        raise UsageError(f"check-env {name}: not readable as YAML ({reason})") from error


def _options(words: Sequence[str]) -> dict[str, int]:
    found = {}
    for word in words:
        key, _, value = word.partition("=")
        if key not in OPTIONS:
            raise UsageError(f"check-env {word}: no such option; {hint(key, OPTIONS)}")
        if not value.isdigit() or int(value) < 1:
            raise UsageError(f"check-env {word}: expected a whole number of at least 1")
        found[key] = int(value)
    return found
