"""The verb `check-env` and the list of tasks on the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from sojourn.experiments import listing, report
from sojourn.experiments.command import main
from sojourn.experiments.config import compose_config, parse

BROKEN = """
import random
from gymnasium.envs.classic_control import CartPoleEnv
class Lucky(CartPoleEnv):
    def step(self, action):
        random.random()
        return super().step(action)
"""


@pytest.mark.parametrize("id", ["CartPole-v1", "{id: Pendulum-v1, max_episode_steps: 20}"])
def test_a_sound_environment_is_described(id: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-env", id, "steps=200"]) == 0
    out = capsys.readouterr().out
    for law in ("spaces", "seeding", "generators", "saving", "speed", "random floor: return"):
        assert law in out


def test_keys_of_a_task_hold_for_every_id(capsys: pytest.CaptureFixture[str]) -> None:
    changed = ["max_episode_steps=7", "wrappers=[gymnasium.wrappers:FlattenObservation]"]
    tasks = ["{id: CartPole-v1, attributes: {gravity: 3.0}}", "CartPole-v1"]
    assert main(["check-env", *tasks, *changed, "attributes.length=2.0", "steps=200"]) == 0
    assert capsys.readouterr().out.count("time limit 7") == 2


def test_arguments_reach_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-env", "CartPole-v1", "kwargs.sutton_barto_reward=true", "steps=200"]) == 0
    assert "rewards: float, from -1 to 0" in capsys.readouterr().out


def test_the_seed_decides_what_is_tried(capsys: pytest.CaptureFixture[str]) -> None:
    def floor(seed: int) -> str:
        assert main(["check-env", "CartPole-v1", f"seed={seed}", "steps=400"]) == 0
        return next(x for x in capsys.readouterr().out.splitlines() if "random floor" in x)

    assert floor(1) == floor(1) != floor(2)


def test_a_broken_law_gives_exit_code_one(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.path", list(sys.path))
    (workplace / "lucky_envs.py").write_text(BROKEN)
    assert main(["check-env", "CartPole-v1", "lucky_envs:Lucky", "steps=100"]) == 1
    assert "broken" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "expected an id"),
        (["CartPol-v1"], "Did you mean: `CartPole`"),
        (["nosuchmod:Bar-v0"], "No module named 'nosuchmod'"),
        (["CartPole-v1", "step=3"], "did you mean steps"),
        (["CartPole-v1", "seed=-1"], "seed=-1: expected a whole number, 0 or more"),
        (["CartPole-v1", "wrapers=[a:b]"], "did you mean wrappers"),
        (["CartPole-v1", "kwarg.length=3"], "did you mean kwargs"),
        (["CartPole-v1", "kwargs.sutton=[1"], "not readable as YAML"),
        (["CartPole-v1", "kwargs.suton_reward=true"], "suton_reward"),
        (["CartPole-v1", "weight=2"], "no such option"),
        (["CartPole-v1", "steps=no"], "whole number"),
        (["{id: [}"], "not readable as YAML"),
    ],
)
def test_a_wrong_request_is_one_line(
    refuse: Callable[..., str], words: list[str], told: str
) -> None:
    assert told in refuse("check-env", *words)


def test_a_list_of_tasks_chooses_the_stream_of_a_list() -> None:
    tasks = "stream.tasks=[CartPole-v1,my_pkg.envs:Foo-v0,MiniGrid-DoorKey-5x5-v0]"
    config = compose_config(parse([tasks]))
    assert config.choices.stream == "tasks"
    listed = ["CartPole-v1", "my_pkg.envs:Foo-v0", "MiniGrid-DoorKey-5x5-v0"]
    assert list(config.stream.tasks) == listed
    mixed = compose_config(parse(["stream=mixed", "stream.tasks=[CartPole-v1]"]))
    assert mixed.choices.stream == "mixed" and list(mixed.stream.tasks) == ["CartPole-v1"]


def test_installed_plug_ins_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    point = EntryPoint("my-maze", "my_package.mazes:make_maze", "sojourn.envs")
    monkeypatch.setattr(listing, "plugins", lambda: {"my-maze": point})
    assert main(["list", "streams"]) == 0
    assert "my-maze" in capsys.readouterr().out


@pytest.mark.filterwarnings("default:fault")
def test_faults_are_counted_in_the_table_of_episodes(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", list(sys.path))
    broken = BROKEN.replace("random.random()", "assert self.np_random.random() < 0.9, 'lost'")
    (workplace / "lost_envs.py").write_text(broken)
    tasks = ["stream=tasks", "stream.tasks=[lost_envs:Lucky]", "stream.on_error=skip_episode"]
    shape = ["num_lifetimes=2", "num_steps=512"]
    monkeypatch.setattr(report, "draw_regret", lambda _: None)
    run = workplace / "run"
    assert main(["train", *tasks, *shape, "agent.width=8", "folder=run", "quiet=true"]) == 0
    assert ",failed" in (run / "episodes.csv").read_text()
    assert "fault 1, skip_episode: lost_envs:Lucky" in (run / "log.txt").read_text()
