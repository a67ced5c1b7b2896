"""Configuration: the constructors are the schema, and the files explain themselves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Literal, Protocol

import pytest
from omegaconf import OmegaConf

from sojourn.experiments import catalog
from sojourn.experiments.config import compose_config, parse
from sojourn.experiments.schema import accepts
from sojourn.experiments.settings import Settings


class Piece(Protocol):
    """A class that only a `_target_` node can give."""


@pytest.mark.parametrize(
    ("annotation", "good", "bad"),
    [
        (int, 3, 3.0),
        (int, 3, True),
        (float, 3, "3"),
        (bool, True, 1),
        (str, "a", 1),
        (int | None, None, "a"),
        (Literal["a", "b"], "b", "c"),
        (Sequence[int], [1], 1),
        (Mapping[str, int], {"a": 1}, [1]),
        (Piece, {"_target_": "x"}, "x"),
        (float | Piece, {"_target_": "x"}, "x"),
        (Callable[[int], int], {"_target_": "x"}, 3),
    ],
)
def test_values_are_checked_against_annotations(
    annotation: object, good: object, bad: object
) -> None:
    assert accepts(annotation, good)
    assert not accepts(annotation, bad)


def test_a_parameter_that_the_file_does_not_list_may_be_set() -> None:
    words = ["stream=bandit", "trainer.learning_rate.until=0.5"]
    assert "until" not in compose_config(parse(words[:1])).trainer.learning_rate
    assert compose_config(parse(words)).trainer.learning_rate.until == 0.5


def test_a_class_takes_the_place_of_a_class() -> None:
    word = "trainer.learning_rate={_target_: sojourn.agents.Constant, value: 0.1}"
    config = compose_config(parse(["stream=bandit", word]))
    assert dict(config.trainer.learning_rate) == {
        "_target_": "sojourn.agents.Constant",
        "value": 0.1,
    }


def test_a_fresh_seed_is_drawn_and_recorded() -> None:
    first, second = (compose_config(parse(["stream=bandit", "seed=null"])) for _ in range(2))
    assert isinstance(first.seed, int)
    assert first.seed != second.seed
    assert first.trainer.seed == first.seed
    assert compose_config(parse(["stream=bandit", "seed=0"])).seed == 0


def test_the_root_file_and_its_types_agree() -> None:
    keys = set(OmegaConf.create(catalog.text_of(None, "train"))) - {"defaults"}
    assert keys == {field.name for field in fields(Settings)}


def test_every_root_key_is_explained() -> None:
    text = catalog.text_of(None, "train")
    comments = catalog.key_comments(text)
    for key in comments:
        if not key.startswith("defaults") and key != "evaluation":
            assert comments[key], f"{key} has no comment"


@pytest.mark.parametrize("group", catalog.GROUPS)
def test_every_option_has_a_title(group: str) -> None:
    assert catalog.options(group)
    for name in catalog.options(group):
        assert catalog.header(catalog.text_of(group, name)).get("title"), f"{group}={name}"


@pytest.mark.parametrize("name", catalog.options("experiment"))
def test_every_preset_composes(name: str) -> None:
    config = compose_config(parse([f"experiment={name}"]))
    assert config.choices.experiment == name
    Settings.from_config(config)


def test_comments_are_read_from_the_line_and_from_above() -> None:
    text = "# file\n\na: 1  # on the line\n# above\n# it\nb:\n  c: '# no'   # yes\n  d: 2\n"
    assert catalog.key_comments(text) == {
        "a": "on the line",
        "b": "above it",
        "b.c": "yes",
        "b.d": "",
    }


def test_headers_join_their_lines() -> None:
    text = "# @package _global_\n# First words\n# paper: A\n#   and B\nx: 1\n# cost: no\n"
    assert catalog.header(text) == {"title": "First words", "paper": "A and B"}
