"""From `key=value` words to a checked configuration, composed by Hydra, refused in our words."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hydra import compose, initialize_config_module
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import InterpolationResolutionError, OmegaConfBaseException

from . import catalog, keys, schema
from .errors import UsageError
from .scale import GROUP, read_scale
from .settings import Settings

ROOT = "train"
# Keys whose value is a path: all that follows the first `=` belongs to it, whatever it contains.
PATH_KEYS = ("resume", "folder")
# What a user's file is called while Hydra composes: no shipped option has this name.
GIVEN = "given_file"


@dataclass(frozen=True)
class Override:
    """One `key=value` word: `text` as given, `value` parsed; `is_group` when it chooses a file."""

    key: str
    value: Any
    text: str
    is_group: bool


def parse(words: Sequence[str]) -> list[Override]:
    """Read `key=value` words; raises UsageError for anything else."""
    return [_parse_word(word) for word in words]


def _parse_word(word: str) -> Override:
    name, equals, raw = word.partition("=")
    if word.startswith("-"):
        raise UsageError(f"{word!r}: expected key=value without dashes, for example seed=2")
    name = name.lstrip("+")
    if not equals:
        raise UsageError(f"{word!r}: expected key=value, for example seed=2")
    if name in PATH_KEYS:
        path = _unquoted(raw)
        return Override(name, None if path in ("", "null") else path, word, is_group=False)
    if name in catalog.GROUPS and catalog.is_file(_unquoted(raw)):
        return Override(name, _unquoted(raw), word, is_group=True)
    if name == "hydra" or name.startswith("hydra."):
        raise UsageError(
            f"{name}: no hydra.* key is read here; the run folder is set by folder=PATH"
        )
    try:
        parsed = OverridesParser.create().parse_override(word)
    except HydraException as error:
        raise UsageError(
            f"{word!r}: cannot read the value; quote special characters twice, as in "
            f"'{name}=\"{raw}\"'"
        ) from error
    if parsed.is_delete() or parsed.package is not None:
        raise UsageError(f"{word!r}: expected key=value, for example seed=2")
    if parsed.is_sweep_override():
        raise UsageError(
            f"{word!r}: one value at a time, a list is written {name}=[a,b]; "
            "start one run for each value"
        )
    key: str = parsed.key_or_group
    return Override(key, parsed.value(), word, is_group=key in catalog.GROUPS)


def compose_config(overrides: Sequence[Override]) -> DictConfig:
    """The configuration of a new run; `choices` holds the chosen option of every group.

    Raises UsageError when a key, a group's option or a value does not exist or does not fit.
    """
    chosen = [override for override in overrides if override.is_group]
    for override in chosen:
        catalog.check_option(override.key, override.value)
    if _lists_tasks(overrides):
        chosen.append(Override("stream", "tasks", "stream=tasks", is_group=True))
    config = compose_choices({override.key: override.value for override in chosen})
    scales = [str(override.value) for override in overrides if override.key == GROUP]
    read_scale(scales[-1] if scales else config.scale).reduce(config)
    return set_values(config, [override for override in overrides if not override.is_group])


def _lists_tasks(overrides: Sequence[Override]) -> bool:
    """Whether tasks are listed without a stream being chosen: then it is the stream of a list."""
    keys = {override.key for override in overrides}
    return "stream" not in keys and any(key.startswith("stream.tasks") for key in keys)


def set_values(config: DictConfig, overrides: Sequence[Override]) -> DictConfig:
    """A copy of a configuration with plain keys set, checked key by key and then as a whole."""
    config = config.copy()
    for override in overrides:
        if override.key == "choices" or override.key.startswith("choices."):
            raise UsageError(f"{override.key}: set by the run, not by hand")
        fault = keys.fault(config, override.key)
        if fault:
            raise UsageError(fault)
        # A value that names its own class replaces the old one; merging would mix their arguments.
        merge = not (isinstance(override.value, dict) and "_target_" in override.value)
        try:
            OmegaConf.update(config, override.key, override.value, merge=merge, force_add=True)
        except OmegaConfBaseException as error:
            raise UsageError(f"{override.text!r}: {str(error).splitlines()[0]}") from error
    if config.seed is None:
        config.seed = secrets.randbelow(2**31)  # fresh luck, recorded with the configuration
    try:
        Settings.from_config(config)
        schema.check(config)
    except InterpolationResolutionError as error:
        raise UsageError(str(error).splitlines()[0]) from error
    return config


def group_of(choices: Sequence[Override], group: str) -> DictConfig:
    """The part of the configuration that belongs to a group, under other choices."""
    config = compose_config(choices)
    part: DictConfig = config[group]
    return part


def compose_choices(options: Mapping[str, str | None]) -> DictConfig:
    """The files of these choices as they are, unchecked, without importing a class of them."""
    words = []
    for group, name in options.items():
        if catalog.is_file(name):
            package = "_global_" if group == "experiment" else group
            node = catalog.read_file(group, str(name))
            ConfigStore.instance().store(group=group, name=GIVEN, node=node, package=package)
        words.append(f"{group}={GIVEN if catalog.is_file(name) else name or 'null'}")
    with initialize_config_module("sojourn.configs", version_base="1.3"):
        composed = compose(ROOT, overrides=words, return_hydra_config=True)
    chosen = composed.hydra.runtime.choices
    with open_dict(composed):
        del composed["hydra"]
        composed["choices"] = {
            group: options.get(group, chosen.get(group)) for group in catalog.GROUPS
        }
    OmegaConf.set_struct(composed, False)
    return composed


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text
