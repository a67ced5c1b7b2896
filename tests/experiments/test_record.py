"""Recordings: the life that is filmed is the one that is lived, and tables tell the same of it."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from PIL import Image

from sojourn.agents import Moment, RandomPolicy, Rollout, SharedLuck
from sojourn.envs import Crowd, Stream, task_stream
from sojourn.experiments import report
from sojourn.experiments.build import build_stream
from sojourn.experiments.command import main
from sojourn.experiments.config import compose_config, parse
from sojourn.experiments.errors import RunError
from sojourn.experiments.loading import agent_of, load
from sojourn.experiments.recordings import movie
from sojourn.experiments.recordings.camera import Camera, watched
from sojourn.experiments.recordings.film import Plan, film
from sojourn.experiments.recordings.frames import frames
from sojourn.experiments.recordings.request import request

from .conftest import AGENT

Train = Callable[..., Path]
Refuse = Callable[..., str]
MINIGRID = ["stream=hidden_rules", "num_lifetimes=2", "slice_steps=16", "num_steps=64", *AGENT]


@pytest.fixture
def grid(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A short run on MiniGrid that keeps all its checkpoints."""
    monkeypatch.setattr(report, "draw_regret", lambda _: None)
    kept = ["keep_checkpoints=9", "checkpoint_every=32", "folder=grid", "quiet=true"]
    assert main(["train", *MINIGRID, *kept]) == 0
    return workplace / "grid"


def stream_of(name: str, *words: str) -> Stream:
    return build_stream(compose_config(parse([f"stream={name}", *words])), 3)


@pytest.mark.parametrize("name", ["hidden_rules", "bandit"])
def test_a_watched_stream_is_the_same_stream(name: str) -> None:
    """The loop over environments behind a camera and the stream's own simulator live alike."""
    stream = stream_of(name)
    lives = []
    for one in (stream, watched(stream, Camera())):
        crowd = Crowd(one, 1, first_lifetime=2)
        endings = Rollout(RandomPolicy(one.interface), crowd).live(200, SharedLuck(1))
        lives.append([asdict(ending.record) for ending in endings])
    assert len(lives[0]) > 1
    assert len(lives[0]) == len(lives[1])
    for expected, found in zip(*lives, strict=True):
        for key, value in expected.items():
            if isinstance(value, float):
                np.testing.assert_allclose(found[key], value, rtol=1e-6, err_msg=key)
            else:
                assert found[key] == value, key


def test_shots_tell_what_the_crowd_tells(runs: Path) -> None:
    agent = load(runs / "delta-1").agent
    plan = Plan(stream_of("bandit"), 0, 250, "lifetime", SharedLuck(1))
    shots = list(film(agent, plan))
    assert len(shots) == 250 and all(shot.picture is None for shot in shots)
    crowd = Crowd(plan.stream, 1)
    rollout = Rollout(agent, crowd)
    for shot in shots:
        running, moment = crowd.running_episodes(), Moment.of(crowd)
        assert shot.total_return == pytest.approx(running[0].total_return if running else 0.0)
        assert shot.task == crowd.task_names[0]
        assert (shot.segment, shot.episode) == (moment.segment[0], moment.episode[0])
        assert shot.counts.sum() == moment.segment_step[0]
        rollout.live(1, plan.luck)
    assert len(shots[-1].regret) >= 2 and np.isfinite(shots[-1].regret).all()


def test_a_gif_has_both_agents_side_by_side(grid: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in grid.rglob("*")}
    words = ["checkpoint=first,last", "steps=50", "output=out.gif"]
    assert main(["record", str(grid), *words]) == 0
    assert "frames of lifetime 0" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in grid.rglob("*")} == before
    with Image.open("out.gif") as picture:
        assert picture.n_frames > 40  # type: ignore[attr-defined]
        width = picture.width // 2
        middle = np.asarray(picture.convert("RGB"))[30:340]
    assert middle.shape[1] == 2 * width
    for half in (middle[:, :width], middle[:, width:]):
        assert len(np.unique(half.reshape(-1, 3), axis=0)) > 4, "the grid is there"


def test_the_end_of_an_episode_is_seen_before_the_next_begins(grid: Path) -> None:
    plan = Plan(stream_of("hidden_rules"), 0, 90, "lifetime", SharedLuck(1))
    shots = list(film(load(grid).agent, plan))
    ends = [number for number, shot in enumerate(shots) if shot.ends]
    assert ends and len(shots) == 90 + len(ends)
    for end in ends:
        assert shots[end].episode == shots[end - 1].episode
        assert shots[end].step == shots[end - 1].step + 1
    assert all(shot.picture is not None and shot.picture.dtype == np.uint8 for shot in shots)
    drawn = next(frames(["one"], [iter(shots)]))
    assert drawn.width > 300


def test_untrained_is_the_agent_at_the_start_of_the_run(grid: Path) -> None:
    wanted = request(["grid", "checkpoint=first,untrained,last"])
    agents = [agent_of(wanted.config, take.content) for take in wanted.takes]
    first, untrained, last = (agent.state_dict() for agent in agents)
    assert [take.title for take in wanted.takes] == ["step 0", "untrained", "step 64"]
    assert all(torch.equal(value, untrained[name]) for name, value in first.items())
    assert any(not torch.equal(value, last[name]) for name, value in first.items())


class Dark(gymnasium.Env[np.ndarray, np.ndarray]):
    """Continuous actions and no pictures."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(
        self, *, seed: int | None = None, options: object = None
    ) -> tuple[np.ndarray, dict[str, object]]:
        return np.zeros(1, np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, object]]:
        return np.zeros(1, np.float32), 0.0, False, False, {}


def test_what_cannot_be_drawn_is_refused() -> None:
    stream = task_stream([{"id": Dark}], seed=1)
    plan = Plan(stream, 0, 5, "lifetime", SharedLuck(1))
    with pytest.raises(RunError, match="has no pictures"):
        next(film(RandomPolicy(stream.interface), plan))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["checkpoint=frist"], "did you mean first?"),
        (["lifetimes=3"], "did you mean lifetime?"),
        (["steps=0"], "expected a whole number, 1 or more"),
        (["greedy=yes"], "expected true or false"),
        (["output=film.avi"], "ends in .gif or .mp4"),
    ],
)
def test_a_wrong_word_is_refused(
    runs: Path, refuse: Refuse, words: list[str], expected: str
) -> None:
    assert expected in refuse("record", "runs/delta-1", *words)


def test_mp4_without_its_extra_is_refused_by_name(
    runs: Path, refuse: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(movie, "PACKAGE", "no_such_package_anywhere")
    line = refuse("record", "runs/delta-1", "output=film.mp4")
    assert "film.mp4: MP4 needs imageio-ffmpeg (pip install 'sojourn[video]')" in line
    assert not Path("film.mp4").exists()


def test_an_mp4_has_the_frames_of_the_gif(runs: Path) -> None:
    ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="the extra video is not installed")
    words = ["record", "runs/delta-1", "checkpoint=untrained,last", "steps=12", "fps=4"]
    for name in ("life.mp4", "life.gif"):
        assert main([*words, f"output={name}"]) == 0
    count, seconds = ffmpeg.count_frames_and_secs("life.mp4")
    with Image.open("life.gif") as picture:
        shown = np.asarray(picture.convert("RGB")).astype(int)
    assert count >= 12 and seconds == pytest.approx(count / 4, abs=0.3)
    reader = ffmpeg.read_frames("life.mp4")
    width, height = next(reader)["source_size"]
    first = np.frombuffer(next(reader), np.uint8).reshape(height, width, 3).astype(int)
    reader.close()
    assert (height, width) == (shown.shape[0] + shown.shape[0] % 2, shown.shape[1])
    assert np.abs(first[: shown.shape[0]] - shown).mean() < 6, "lossy, but the same picture"


def test_a_run_with_one_checkpoint_has_no_first(train: Train, refuse: Refuse) -> None:
    train("run", "keep_checkpoints=1", "checkpoint_every=1_000_000")
    assert "checkpoint=untrained,last" in refuse("record", "run", "checkpoint=first", code=1)
    assert "expected one run" in refuse("record")
