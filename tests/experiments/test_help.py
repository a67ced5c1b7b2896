"""What the command says of itself: every verb, every option, with its default and its choices."""

import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

import pytest
from omegaconf import OmegaConf

from sojourn.experiments import catalog, compare
from sojourn.experiments.command import VERBS, main
from sojourn.experiments.completion import option_meanings
from sojourn.experiments.config import compose_config, parse
from sojourn.experiments.evaluations.request import OPTIONS as EVALUATE
from sojourn.experiments.manual.help import TEXTS, chosen_meanings, key_meanings, key_rows
from sojourn.experiments.probes.plan import DEFAULTS as PROBE
from sojourn.experiments.recordings.request import OPTIONS as RECORD
from sojourn.experiments.references.request import OPTIONS as REFERENCE
from sojourn.experiments.references.request import PATHS
from sojourn.experiments.studies.options import DEFAULTS as STUDY

OPTIONS: Mapping[str, Iterable[str]] = {
    "evaluate": EVALUATE,
    "compare": compare.OPTIONS,
    "record": RECORD,
    "check-env": ("steps", "seed"),
    "reference": (*REFERENCE, *PATHS),
    "study": (*STUDY, "resume"),
    "probe": PROBE,
    "list": ("pictures",),
    "explain": ("output",),
}
GROUPS = ("memory", "stream", "agent", "trainer", "probe")
FILES = [(group, name) for group in GROUPS for name in catalog.options(group)]


def test_every_verb_has_a_text_and_a_function() -> None:
    assert set(TEXTS) == set(VERBS)
    for name, verb in VERBS.items():
        assert callable(getattr(import_module(f"sojourn.experiments.{verb.module}"), verb.function))
        assert TEXTS[name].startswith(f"sojourn {name}")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    assert f"sojourn {verb}" in capsys.readouterr().out


@pytest.mark.parametrize("verb", OPTIONS)
def test_every_option_is_explained_with_its_default(verb: str) -> None:
    told = option_meanings(verb)
    assert set(told) >= set(OPTIONS[verb])
    for name, meaning in told.items():
        assert re.search("default", whole(verb, name)), f"{name}: {meaning}"


def whole(verb: str, name: str) -> str:
    """All lines that explain an option."""
    text = TEXTS[verb]
    start = re.search(rf"^  {name} +", text, re.MULTILINE)
    assert start is not None
    rest = text[start.end() :]
    end = re.search(r"\n(?!   )", rest)
    return rest[: end.start()] if end else rest


@pytest.mark.parametrize(("group", "name"), FILES)
def test_every_key_of_every_file_has_a_default_and_a_meaning(group: str, name: str) -> None:
    config = OmegaConf.create(catalog.text_of(group, name))
    values = OmegaConf.to_container(config)
    found = list(key_rows(values, key_meanings(group, name), ("defaults",)))
    assert found
    for key, default, meaning in found:
        assert meaning or default.endswith("(...)"), key


@pytest.mark.parametrize("root", ["train", "live"])
def test_every_root_key_has_a_meaning(root: str) -> None:
    values: Any = OmegaConf.to_container(OmegaConf.create(catalog.text_of(None, root)))
    skipped = ("defaults", *catalog.GROUPS)
    for key, _, meaning in key_rows(values, key_meanings(None, root), skipped):
        assert meaning, key


@pytest.mark.parametrize("preset", catalog.options("experiment"))
def test_every_key_that_a_preset_adds_has_a_meaning(preset: str) -> None:
    config = compose_config(parse([f"experiment={preset}"]))
    for group in catalog.GROUPS[:-1]:
        chosen = config[group]
        meanings = chosen_meanings(group, config.choices[group], chosen)
        for key, default, meaning in key_rows(OmegaConf.to_container(chosen), meanings):
            assert meaning or default.endswith("(...)"), f"{group}.{key}"


def test_help_lists_keys_defaults_and_choices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "experiment=bandit", "--help"]) == 0
    out = capsys.readouterr().out
    for expected in ("slice_steps", "steps of every lifetime", "trainer.num_epochs", "delta_net"):
        assert expected in out
    assert "memory.views.conv_width" in out
    assert "heads, each with a memory of its own" in out, (
        "what a file leaves out is in the glossary"
    )


def test_lists_of_plain_values_are_one_key() -> None:
    values = {"a": [1, 2], "b": [{"c": None}], "d": {"_target_": "x.Y", "e": 1}}
    assert list(key_rows(values, {"b": "said"})) == [
        ("a", "[1, 2]", ""),
        ("b", "", "said"),
        ("b.0.c", "null", ""),
        ("d", "Y(...)", ""),
        ("d.e", "1", ""),
    ]


@pytest.mark.parametrize("group", catalog.ALL_GROUPS)
def test_list_names_every_option(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", group]) == 0
    out = capsys.readouterr().out
    for name in catalog.options(group):
        assert name in out


def test_a_misspelt_verb_of_help_is_refused(refuse: Callable[..., str]) -> None:
    assert "did you mean study?" in refuse("studdy", "--help")
