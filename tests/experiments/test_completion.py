"""Tab completion: every verb, key and choice can be reached by typing its beginning."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from sojourn.experiments import catalog
from sojourn.experiments.command import VERBS
from sojourn.experiments.completion import choices_in, complete, option_meanings
from sojourn.experiments.keys import all_keys
from sojourn.experiments.manual.help import key_meanings, key_rows


def ends(line: str) -> list[str]:
    """What may stand at the end of `sojourn LINE`."""
    return complete(line.split(" "), VERBS)


def test_every_verb() -> None:
    assert ends("") == [*(f"{verb} " for verb in VERBS), "--help ", "--version "]
    assert ends("check-") == ["check-core ", "check-env "]
    assert ends("nosuch") == ends("nosuch ") == []


@pytest.mark.parametrize("verb", ["train", "check-core", "reference", "study"])
def test_every_key_of_training_is_reached_segment_by_segment(verb: str) -> None:
    chosen = ["memory=gru", "stream=bandit", "trainer=transfer"]
    config = OmegaConf.create({"memory": OmegaConf.create(catalog.text_of("memory", "gru"))})
    before = " ".join([verb, *chosen])
    for key in ("num_steps", "evaluation.every", "trainer.learning_rate.start", *all_keys(config)):  # type: ignore[arg-type]
        typed = ""
        for part in key.split("."):
            typed = f"{typed}.{part}".lstrip(".")
            found = ends(f"{before} {typed}")
            assert any(end.rstrip("=.") == typed for end in found), (typed, found)
    found = ends(f"{before} tr")
    assert "trainer." in found and not any("learning" in end for end in found)


@pytest.mark.parametrize("group", catalog.ALL_GROUPS)
def test_every_choice_of_every_group(group: str) -> None:
    verb = "probe" if group == "probe" else "study"
    expected = [f"{group}={name} " for name in catalog.options(group)]
    assert ends(f"{verb} {group}=")[: len(expected)] == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("train memory_reset=", ["lifetime", "task", "episode", "never"]),
        ("train device=", ["auto", "cpu", "cuda"]),
        ("train scale=t", ["tiny"]),
        ("train debug=", ["true", "false"]),
        ("train trainer.returns.reward=", ["sampled", "expected"]),
        ("train trainer=evolution trainer.returns.reward=", []),
        ("train memory.views.key_norm=", ["l2", "none"]),
        ("live latest guard.by=re", ["replay", "recent"]),
        ("live latest frozen_twin=", ["true", "false"]),
        ("study launcher=", ["local", "joblib", "submitit", "ray"]),
        ("study match=", ["none", "parameters", "state_bytes"]),
        ("probe control=", ["none", "reset_every_step"]),
        ("train resume=", ["latest", "best"]),
        ("study memory=gru,lst", ["gru,lstm"]),
    ],
)
def test_values(line: str, expected: list[str], workplace: Path) -> None:
    key = line.split(" ")[-1].partition("=")[0]
    assert ends(line) == [f"{key}={value} " for value in expected]


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_that_help_explains(verb: str) -> None:
    for option in option_meanings(verb):
        assert f"{option}=" in ends(f"{verb} {option}"), option


def test_words_that_are_no_keys(workplace: Path) -> None:
    (workplace / "runs" / "one").mkdir(parents=True)
    assert ends("evaluate ")[:3] == ["latest ", "best ", "--help "]
    assert ends("compare runs/") == ["runs/one/"]
    assert ends("train folder=ru") == ["folder=runs/"]
    assert ends("list st") == ["stream ", "study "]
    assert ends("completion ") == ["bash ", "zsh ", "fish ", "--help "]


def test_choices_are_read_from_explanations() -> None:
    assert choices_in("of q and k: identity | silu | elu_plus_one") == [
        "identity",
        "silu",
        "elu_plus_one",
    ]
    assert choices_in("auto | cpu; auto takes what there is") == ["auto", "cpu"]
    assert choices_in("batch: over all of them | task: within each") == ["batch", "task"]
    assert choices_in("rotary (of the tokens) | none") == ["rotary", "none"]
    assert choices_in("steps of each of them") == []


@pytest.mark.parametrize("group", ["memory", "stream", "agent", "trainer", None])
def test_a_default_is_one_of_the_choices_that_are_listed(group: str | None) -> None:
    counted = 0
    for name in catalog.options(group) if group else ("train", "live"):
        values = OmegaConf.to_container(OmegaConf.create(catalog.text_of(group, name)))
        for key, default, meaning in key_rows(values, key_meanings(group, name)):
            choices = choices_in(meaning)
            if choices and default.isidentifier() and key != "resume":
                assert default in choices, f"{name}: {key}: {meaning}"
                counted += 1
    assert counted or group == "agent"


def test_no_torch_is_imported() -> None:
    code = (
        "import sys; from sojourn.experiments.command import main\n"
        "main(['completion', 'answer', 'sojourn train trainer.'])\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_an_unknown_shell_is_refused(refuse: Callable[..., str]) -> None:
    assert "did you mean fish?" in refuse("completion", "fisch")
    assert "completion: expected a shell; choose from bash, fish, zsh" in refuse("completion")
