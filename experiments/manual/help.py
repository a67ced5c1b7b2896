"""`sojourn VERB --help`: every key with its default and meaning, and the choices of every group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml  # type: ignore[import-untyped]
from omegaconf import DictConfig, OmegaConf
from rich.table import Table
from rich.text import Text

from .. import catalog
from ..config import ROOT, compose_config, parse
from ..errors import EXIT_OK
from ..lives.settings import ROOT as LIVE_ROOT
from ..lives.settings import default_config
from ..progress import plain_console
from ..schema import HYDRA_KEYS
from .environments import CHECK_ENV, REFERENCE
from .evaluation import EVALUATE, EXPLAIN
from .live import LIVE
from .reports import COMPARE, RECORD
from .training import CHECK_CORE, COMPLETION, LIST, PROBE, STUDY, TRAIN

# What is said before the keys; lines of two spaces and a name explain options.
TEXTS: Mapping[str, str] = {
    "train": TRAIN,
    "evaluate": EVALUATE,
    "live": LIVE,
    "explain": EXPLAIN,
    "compare": COMPARE,
    "check-core": CHECK_CORE,
    "probe": PROBE,
    "study": STUDY,
    "check-env": CHECK_ENV,
    "reference": REFERENCE,
    "record": RECORD,
    "list": LIST,
    "completion": COMPLETION,
}
GLOSSARY = "meanings"  # of keys that many files have and none explains again


def show(words: Sequence[str]) -> int:
    """Print the help of a verb, `words[0]`, and its keys under the choices in the others."""
    verb, *given = words
    console = plain_console()
    console.print(TEXTS[verb], markup=False, highlight=False)
    tables = {"train": _of_training, "live": _of_a_life, "probe": _of_a_probe}
    for table in tables.get(verb, _nothing)(given):
        console.print(table)
    return EXIT_OK


def _nothing(words: Sequence[str]) -> Iterator[Table]:
    del words
    return iter(())


def _of_training(words: Sequence[str]) -> Iterator[Table]:
    config = compose_config(parse(words))
    yield _choices(config)
    yield _keys("run", config, key_meanings(None, ROOT), "")
    for group in catalog.GROUPS[:-1]:
        name, chosen = config.choices[group], config[group]
        yield _keys(f"{group}={name}", chosen, chosen_meanings(group, name, chosen), f"{group}.")


def _of_a_life(words: Sequence[str]) -> Iterator[Table]:
    del words
    yield _keys("life", default_config(), live_meanings(), "")


def _of_a_probe(words: Sequence[str]) -> Iterator[Table]:
    name = probe_named(dict(word.split("=", 1) for word in words if "=" in word).get("probe", ""))
    yield _keys(f"probe={name}", probe_keys(name), key_meanings("probe", name), "")


def probe_named(names: str) -> str:
    """The first of a comma list of probes; one that exists where it does not."""
    known, name = catalog.options("probe"), names.split(",")[0]
    return name if name in known else "mqar"


def probe_keys(name: str) -> DictConfig:
    """The keys of a probe with their defaults."""
    config = OmegaConf.create(catalog.text_of("probe", name))
    assert isinstance(config, DictConfig)
    return config


def live_meanings() -> dict[str, str]:
    """Key of a life -> meaning."""
    return key_meanings(None, LIVE_ROOT)


def key_meanings(group: str | None, name: str) -> dict[str, str]:
    """Dotted key -> what its file, the file it builds upon, or else the glossary says of it."""
    text = catalog.text_of(group, name)
    own = catalog.key_comments(text)
    for parent in catalog.parents(text):
        inherited = key_meanings(group, parent)
        own = inherited | {key: said for key, said in own.items() if said or key not in inherited}
    known = _glossary(group)
    return {key: said or _from_glossary(key, known) for key, said in own.items()}


def chosen_meanings(group: str, name: str, chosen: DictConfig) -> dict[str, str]:
    """`key_meanings`, and what the glossary says of keys that a preset or the user added."""
    known, meanings = _glossary(group), key_meanings(group, name)
    rows = key_rows(OmegaConf.to_container(chosen), meanings)
    added = {key: _from_glossary(key, known) for key, _, said in rows if not said}
    return meanings | added


def key_rows(
    values: Any, meanings: Mapping[str, str], skipped: Sequence[str] = ()
) -> Iterator[tuple[str, str, str]]:
    """(key, default, meaning) of every leaf, and of every node that is explained or has a class;
    a list of plain values is a leaf.
    """

    def visit(node: Any, path: str) -> Iterator[tuple[str, str, str]]:
        for name, value in node.items() if isinstance(node, dict) else enumerate(node):
            child = f"{path}.{name}" if path else str(name)
            if name in HYDRA_KEYS or child in skipped:
                continue
            if _is_node(value):
                kind = value.get("_target_", "") if isinstance(value, dict) else ""
                shown = f"{kind.rpartition('.')[2]}(...)" if kind else ""
                if shown or meanings.get(child):
                    yield child, shown, meanings.get(child, "")
                yield from visit(value, child)
            else:
                yield child, "null" if value is None else str(value), meanings.get(child, "")

    yield from visit(values, "")


def _is_node(value: Any) -> bool:
    if isinstance(value, dict):
        return bool(value)
    return isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value)


def _glossary(group: str | None) -> dict[str, str]:
    found: dict[str, str] = yaml.safe_load(catalog.text_of(None, GLOSSARY)).get(group, {})
    return found


def _from_glossary(key: str, known: Mapping[str, str]) -> str:
    """What is said of the key, else of the nearest mapping around it that takes any key."""
    *around, last = key.split(".")
    return known.get(last) or next((known[p] for p in reversed(around) if p in known), "")


def _choices(config: DictConfig) -> Table:
    table = Table(title="Choices", title_justify="left")
    for column in ("group", "chosen", "of"):
        table.add_column(column)
    for group in catalog.GROUPS:
        table.add_row(group, str(config.choices[group]), ", ".join(catalog.options(group)))
    return table


def _keys(title: str, config: DictConfig, meanings: Mapping[str, str], prefix: str) -> Table:
    """A row for every key; keys that are groups have a table of their own."""
    table = Table(title=title, title_justify="left")
    for column in ("key", "default", "meaning"):
        table.add_column(column, overflow="fold")
    skipped = () if prefix else (*catalog.GROUPS, "choices")
    for key, default, meaning in key_rows(OmegaConf.to_container(config), meanings, skipped):
        table.add_row(prefix + key, Text(default), Text(meaning))
    return table
