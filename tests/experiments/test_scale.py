"""`scale`: files are made smaller, what a person gives stands, and the smallest scale runs."""

from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf

from sojourn.experiments import catalog, report
from sojourn.experiments.build import build_agent, build_stream
from sojourn.experiments.command import main
from sojourn.experiments.config import compose_config, parse
from sojourn.experiments.folder import read_json
from sojourn.experiments.scale import read_scale
from sojourn.experiments.studies.plan import plan

PRESETS = catalog.options("experiment")
SCALES = catalog.options("scale")


def composed(*words: str) -> DictConfig:
    return compose_config(parse(words))


@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_key_is_the_smaller_of_file_and_scale(preset: str, name: str) -> None:
    whole, reduced = (composed(f"experiment={preset}", *w) for w in ([], [f"scale={name}"]))
    for key, most in read_scale(name).most.items():
        value = OmegaConf.select(whole, key)
        assert OmegaConf.select(reduced, key) == min(value, most), key
    for one in (whole, reduced):
        for key in ("scale", *read_scale(name).most):
            OmegaConf.update(one, key, None)
    assert whole == reduced, "nothing else changes"


@pytest.mark.parametrize("first", [True, False])
def test_what_is_given_stands_before_and_after_the_dial(first: bool) -> None:
    words = ["num_steps=3_000_000", "scale=tiny"]
    config = composed("experiment=bandit", *(words if first else reversed(words)))
    assert config.num_steps == 3_000_000
    assert config.num_lifetimes == read_scale("tiny").most["num_lifetimes"]


def test_an_endless_file_gets_an_end(tmp_path: Path) -> None:
    file = tmp_path / "endless.yaml"
    file.write_text("# @package _global_\n# Endless\nnum_steps: null\n")
    assert composed(f"experiment={file}").num_steps is None
    assert composed(f"experiment={file}", "scale=tiny").num_steps == 20_480


def test_scales_are_ordered() -> None:
    tiny, small = (read_scale(name).most for name in ("tiny", "small"))
    assert small.keys() <= tiny.keys()
    assert all(tiny[key] < small[key] for key in small)
    assert not read_scale("full").most


def test_the_page_names_every_most() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "configuration.md").read_text()
    tiny, small = (read_scale(name).most for name in ("tiny", "small"))
    for key in tiny:
        assert f"| {key} | {tiny[key]} | {small.get(key, '')}".rstrip() in page


@pytest.mark.parametrize("memory", catalog.options("memory"))
def test_every_memory_fits_the_smallest_scale(memory: str) -> None:
    config = composed(f"memory={memory}", "stream=bandit", "scale=tiny")
    assert build_agent(config, build_stream(config, 0)).memory.width == 32


def seeds(*words: str) -> set[str]:
    return {member.choices["seed"] for member in plan(words).members}


def test_a_study_has_the_seeds_of_its_scale_or_those_it_is_given(tmp_path: Path) -> None:
    assert seeds("memory=gru", "scale=small") == {"1", "2", "3"}
    assert seeds("memory=gru", "scale=tiny", "seed=4..7") == {"4", "5", "6", "7"}
    file = tmp_path / "mine.yaml"
    file.write_text("words: [num_steps=40_000_000, num_lifetimes=2, memory=gru, seed=7..9]\n")
    assert seeds(f"study={file}") == {"7", "8", "9"}
    (member,) = plan([f"study={file}", "scale=tiny"]).members
    assert {"num_steps=20480", "num_lifetimes=2", "seed=7"} <= set(member.words)


def test_the_scale_alone_makes_no_other_member() -> None:
    own = [f"{key}={value}" for key, value in read_scale("tiny").most.items()]
    first = plan(["memory=gru", "seed=1", "scale=tiny", *own]).members[0]
    assert first.digest == plan(["memory=gru", "seed=1", *own]).members[0].digest


def test_a_wrong_scale_and_a_later_one_are_refused(
    refuse: Callable[..., str], train: Callable[..., Path]
) -> None:
    assert "did you mean tiny?" in refuse("train", "scale=tinny")
    run = train("run", "num_steps=32")
    assert "chosen when a run begins" in refuse("train", f"resume={run}", "scale=tiny")


def test_the_smallest_scale_of_the_quickstart_runs(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "draw_regret", lambda _: None)
    words = ["experiment=quickstart", "scale=tiny", "num_steps=1_024", "quiet=true", "folder=run"]
    assert main(["train", *words]) == 0
    assert read_json(Path("run/summary.json"))["steps"] == 1_024
