"""A checkpoint that meets other spaces says which, key by key, before anything is touched."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sojourn.experiments import report, resume
from sojourn.experiments.build import build_agent, build_stream
from sojourn.experiments.command import main
from sojourn.experiments.errors import UsageError
from sojourn.experiments.loading import load
from sojourn.experiments.spaces import check_spaces

CODE = """
import json
from pathlib import Path
import gymnasium
import numpy as np
from gymnasium import spaces

class Shown(gymnasium.Env):
    def __init__(self):
        told = json.loads(Path("spaces.json").read_text())
        image = spaces.Box(0, 255, told["image"], np.dtype(told["dtype"]))
        parts = {"image": image, "place": spaces.Discrete(told["places"])}
        if told["compass"]:
            parts["compass"] = spaces.Box(-1, 1, (2,))
        self.observation_space = spaces.Dict(parts)
        self.action_space = spaces.Discrete(told["actions"])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.count = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.count += 1
        return self.observation_space.sample(), 1.0, False, self.count == 5, {}
"""
SPACES = {"image": [7, 7, 3], "dtype": "uint8", "places": 4, "compass": True, "actions": 3}
WORDS = ["stream=tasks", "stream.tasks=[shown_envs:Shown]", "num_lifetimes=2", "slice_steps=8"]
SIZE = ["num_steps=32", "agent.width=8", "folder=run", "quiet=true"]

Refuse = Callable[..., str]


def now(**changes: Any) -> None:
    Path("spaces.json").write_text(json.dumps(SPACES | changes))


@pytest.fixture
def run(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("sys.path", [*sys.path, str(workplace)])
    monkeypatch.setattr(report, "draw_regret", lambda _: None)
    (workplace / "shown_envs.py").write_text(CODE)
    now()
    assert main(["train", *WORDS, *SIZE]) == 0
    return workplace / "run"


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "size": ({"image": [9, 9, 3]}, ["image: expected uint8 [7, 7, 3], found uint8 [9, 9, 3]"]),
    "key": ({"compass": False}, ["compass: expected float32 [2], found nothing"]),
    "dtype": (
        {"dtype": "float32"},
        ["image: expected uint8 [7, 7, 3], found float32 [147]"],
    ),
    "actions": ({"actions": 4}, ["action_mask: expected bool [3], found bool [4]"]),
    "values": (
        {"places": 6},
        ["place: expected int64 [] of 4 values, found int64 [] of 6 values"],
    ),
    "several": (
        {"compass": False, "actions": 2},
        [
            "action_mask: expected bool [3], found bool [2]",
            "compass: expected float32 [2], found nothing",
        ],
    ),
}


def told(run: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """The lines of error of a command that must fail, the run as it was."""
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert main(list(words)) == 2
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()} == before
    first, *lines = capsys.readouterr().err.splitlines()
    assert first.startswith("sojourn: the checkpoint is of another space")
    return [line.strip() for line in lines]


def test_every_key_that_differs_has_its_line(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for changes, lines in CASES.values():
        now(**changes)
        assert told(run, capsys, "train", "resume=run", "num_steps=64") == lines, changes
    now(image=[9, 9, 3])
    assert told(run, capsys, "record", "run", "steps=5") == CASES["size"][1]
    assert told(run, capsys, "evaluate", "run", "num_lifetimes=2") == CASES["size"][1]
    assert told(run, capsys, "live", "run", "folder=life", "num_steps=64") == CASES["size"][1]
    assert not Path("life").exists()
    with pytest.raises(UsageError, match=r"image: expected uint8 \[7, 7, 3\]"):
        load(run)
    now()
    assert main(["train", "resume=run", "num_steps=64", "quiet=true"]) == 0


def test_of_an_older_checkpoint_the_parameters_tell(run: Path) -> None:
    content = resume.find("run").content
    del content["num_values"]
    config = resume.saved_config(content)
    now(places=6)
    stream = build_stream(config, 0)
    with pytest.raises(UsageError, match=r"encoder\..*: expected \[.*\], found \["):
        check_spaces(build_agent(config, stream), stream.interface, content)
