"""From the words of `sojourn probe` to the members of a study, checked before the first runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from .. import catalog, keys, schema
from ..build import make
from ..config import compose_config, parse
from ..errors import UsageError, hint
from ..folder import RUNS
from ..option_values import whole
from ..ranges import range_of
from ..sizing import Quantity, match, measure, quantity_of
from .member import CONTROLS, MATCHES, Member
from .task import Task

DEFAULTS = {
    "probe": "mqar",
    "memory": "gated_delta_net",
    "seed": "0",
    "match": "none",
    "control": "none",
    "reference": "gated_delta_net",
    "jobs": "1",
    "output": str(RUNS / "probes"),
}


@dataclass(frozen=True)
class ProbeSettings:
    """The keys of `configs/probe/*.yaml` beside `task`."""

    steps: int
    batch: int
    lr: float
    width: int
    depth: int
    mlp_ratio: float


@dataclass(frozen=True)
class Plan:
    """`left_out`: memories that cannot be matched, and why."""

    members: Sequence[Member]
    output: Path
    jobs: int
    probes: dict[str, DictConfig]
    left_out: Sequence[str]


def plan(words: Sequence[str]) -> Plan:
    """Read the words; raises UsageError naming the first that is wrong."""
    options, probe_words, memory_words = _sort(words)
    names = {
        "probe": _names(options["probe"], "probe", catalog.options("probe")),
        "memory": _memories(options["memory"], "memory"),
        "match": _names(options["match"], "match", MATCHES),
        "control": _names(options["control"], "control", CONTROLS),
    }
    seeds = _seeds(options["seed"])
    references = _memories(options["reference"], "reference")
    if len(references) > 1:
        raise UsageError(f"reference={options['reference']}: expected one memory")
    probes = {name: probe_config(name, probe_words) for name in names["probe"]}
    memories = {
        catalog.title(name): compose_config(parse([f"memory={name}", *memory_words]))
        for name in names["memory"]
    }
    fitted = _Fitted(memories, compose_config(parse([f"memory={references[0]}"])))
    members = []
    for probe, how, control, memory in product(probes, names["match"], names["control"], memories):
        settings = fitted.settings(memory, probes[probe], how)
        if settings is not None:
            found = (Member(probe, memory, seed, how, control, settings) for seed in seeds)
            members += list(found)
    members.sort(key=lambda member: member.seed)  # a stopped study has whole seeds
    return Plan(
        members, Path(options["output"]), whole("jobs", options["jobs"], 1), probes, fitted.left_out
    )


def probe_config(name: str, words: Sequence[str] = ()) -> DictConfig:
    """A shipped probe with keys set; raises UsageError for a key or value that does not fit."""
    config = OmegaConf.create(catalog.text_of("probe", name))
    assert isinstance(config, DictConfig)
    for override in parse(words):
        fault = keys.fault(config, override.key)
        if fault:
            raise UsageError(f"{fault} (of probe={name})")
        try:
            OmegaConf.update(config, override.key, override.value, force_add=True)
        except OmegaConfBaseException as error:
            raise UsageError(f"{override.text!r}: {str(error).splitlines()[0]}") from error
    if not isinstance(config.task, DictConfig):
        raise UsageError(f"task: expected keys, first of all a `_target_`, got {config.task!r}")
    schema.check(config)
    values = {str(key): config[key] for key in config if key != "task"}
    schema.check_against(ProbeSettings, values, "")
    for key in ("steps", "batch", "width", "depth"):
        if values[key] < 1:
            raise UsageError(f"{key}: expected at least 1, got {values[key]}")
    if not 0 < values["lr"] < math.inf:
        raise UsageError(f"lr: expected a number above 0, got {values['lr']}")
    if not 1 / values["width"] <= values["mlp_ratio"] < math.inf:
        least = 1 / values["width"]
        raise UsageError(f"mlp_ratio: expected at least {least:g}, got {values['mlp_ratio']}")
    make_task(config)
    return config


def make_task(config: DictConfig) -> Task:
    """The task of a probe; raises UsageError when its constructor refuses."""
    task: Task = make(config, "task")
    return task


class _Fitted:
    """Memory configurations of the sizes a match asks for, each solved once."""

    def __init__(self, memories: dict[str, DictConfig], reference: DictConfig) -> None:
        self.memories = memories
        self.reference = reference
        self.left_out: list[str] = []
        self._known: dict[tuple[str, str, int], tuple[DictConfig, float] | None] = {}
        self._targets: dict[tuple[int, Quantity], int] = {}

    def settings(self, memory: str, probe: DictConfig, how: str) -> str | None:
        """Settings of a member; None when the memory cannot be matched."""
        key = (memory, how, int(probe.width))
        if key not in self._known:
            self._known[key] = self._fit(*key)
        found = self._known[key]
        if found is None:
            return None
        config, off = found
        return OmegaConf.to_yaml({"probe": probe, "memory": config.memory, "off": off})

    def _fit(self, memory: str, how: str, width: int) -> tuple[DictConfig, float] | None:
        config = self.memories[memory]
        if how == "none":
            measure(config, width)  # a size that the memory refuses is told before anything runs
            return config, 0.0
        quantity: Quantity = "parameters" if how == "parameters" else "state_bytes"
        target = (width, quantity)
        if target not in self._targets:
            self._targets[target] = quantity_of(self.reference, *target)
        try:
            sized = match(config, width, quantity, self._targets[target])
        except UsageError as error:
            self.left_out.append(f"{memory}, match={how}: {error}")
            return None
        return sized.config, round(sized.off, 4)


def _sort(words: Sequence[str]) -> tuple[dict[str, str], list[str], list[str]]:
    """Options of the study, words for the probe, words for the memory."""
    options, probe_words, memory_words = dict(DEFAULTS), [], []
    for word in words:
        name, equals, value = word.partition("=")
        if word.startswith("-") or not equals:
            raise UsageError(f"{word!r}: expected key=value, for example memory=delta_net,gru")
        if name in options:
            options[name] = value
        elif name.startswith("memory."):
            memory_words.append(word)
        else:
            probe_words.append(word)
    return options, probe_words, memory_words


def _names(text: str, key: str, known: Sequence[str], more: Sequence[str] = ()) -> list[str]:
    """A comma list of `known` names or `more`, or `all` of the known; each once."""
    if text == "all":
        return list(known)
    names = list(dict.fromkeys(text.split(",")))
    if "" in names:
        raise UsageError(f"{key}={text}: expected names between commas, as in {key}={known[0]}")
    for name in names:
        if name not in (*known, *more):
            raise UsageError(f"{key}={name}: no such {key}; {hint(name, known)}")
    return names


def _memories(text: str, key: str) -> list[str]:
    """As `_names`, of shipped memories and files of the user's own; each by a title of its own."""
    files = filter(catalog.is_file, text.split(","))
    names = _names(text, key, catalog.options("memory"), [*files])
    titles = [catalog.title(name) for name in names]
    for name, title in zip(names, titles, strict=True):
        catalog.check_option("memory", name)
        if titles.count(title) > 1:
            raise UsageError(f"{key}={name}: another memory is called {title}; rename the file")
    return names


def _seeds(text: str) -> list[int]:
    """`3` is 3, `0,2` is 0 and 2, `0..2` is 0, 1, 2."""
    seeds: set[int] = set()
    for part in text.split(","):
        found = range_of(part) or ([int(part)] if part.isdecimal() else None)
        if found is None:
            raise UsageError(
                f"seed={text}: expected whole numbers such as 0,1 or a range such as 0..2"
            )
        seeds |= set(found)
    return sorted(seeds)
