"""`sojourn live`: an endless life is resumed exactly, bounded in all it holds, and guarded."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from sojourn.experiments import checkpoint
from sojourn.experiments.command import main
from sojourn.experiments.lives import life as living
from sojourn.experiments.lives.parts import build_parts
from sojourn.experiments.lives.request import prepare
from sojourn.experiments.loading import load
from sojourn.experiments.progress import Quiet
from sojourn.experiments.tables import read_table

from .conftest import LIFE, TINY, Live, assert_same_life, content, same, start_life

STREAMS = {
    "vectorised": [],
    "regretless": ["stream=autoencode"],
}


@pytest.mark.parametrize("by", ["replay", "recent", "none"])
def test_a_life_in_two_parts_is_the_unbroken_one(by: str, live: Live) -> None:
    words = [f"guard.by={by}", "guard.windows=2", "learning_rate=0.01", "num_lifetimes=2"]
    whole = live("whole", *words, "num_steps=320")
    parts = live("parts", *words, "num_steps=160")
    assert main(["live", f"resume={parts}", "num_steps=320", "quiet=true"]) == 0
    assert_same_life(whole, parts)
    assert content(whole)["step"] == 320


def test_a_killed_life_goes_on_bit_for_bit(tiny_run: Path, live: Live) -> None:
    words = ["learning_rate=0.01", "num_lifetimes=2"]
    process = start_life(tiny_run, "folder=killed", *words)
    wait_for_windows(Path("killed"), 5, process)
    process.kill()
    process.communicate()
    last = int(read_table(Path("killed/windows.csv"))["step"][-1])
    assert main(["live", "resume=killed", f"num_steps={last + 128}", "quiet=true"]) == 0
    assert_same_life(live("whole", *words, f"num_steps={last + 128}"), Path("killed"))


def test_an_interrupt_says_how_to_go_on(tiny_run: Path, workplace: Path) -> None:
    process = start_life(tiny_run, "folder=endless", "quiet=false")
    wait_for_windows(Path("endless"), 2, process)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "resume with: sojourn live resume=endless" in out.decode()
    assert json.loads(Path("endless/status.json").read_text())["status"] == "interrupted"
    step = content(Path("endless"))["step"]
    assert main(["live", "resume=endless", f"num_steps={step}", "quiet=true"]) == 0


def wait_for_windows(life: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 600
    while len(read_table(life / "windows.csv").get("step", ())) < count:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("stream", STREAMS)
def test_without_learning_the_life_is_its_twin(
    stream: str, tiny_run: Path, live: Live, workplace: Path
) -> None:
    base = tiny_run
    if stream != "vectorised":
        base = workplace / "other"
        small = [w for w in TINY if not w.startswith(("stream", "num_steps"))]
        words = [*small, "num_steps=64", *STREAMS[stream], f"folder={base}", "quiet=true"]
        assert main(["train", *words]) == 0
    words = ["folder=still", *LIFE, "learning_rate=0", "num_steps=512", "num_lifetimes=2"]
    assert main(["live", str(base), *words]) == 0
    life = workplace / "still"
    windows = read_table(life / "windows.csv")
    np.testing.assert_array_equal(windows["loss"], windows["twin_loss"])
    assert (windows["distance"] == 0.0).all()
    known = np.isfinite(windows["worsening"])
    assert (windows["worsening"][known] == 0.0).all()
    same(content(life)["twin"], content(life)["rollout"], "rollout")
    found = json.loads((life / "life.json").read_text())
    assert found["known_windows"] > 0
    assert found["value_of_learning"]["life"]["mean"] == 0.0


def test_the_twin_changes_nothing_of_the_life(live: Live) -> None:
    words = ["num_steps=320", "learning_rate=0.01"]
    alone = live("alone", *words, "frozen_twin=false")
    beside = live("beside", *words)
    for name in ("agent", "trainer", "rollout", "guard"):
        same(content(alone)[name], content(beside)[name], name)
    assert np.isnan(read_table(alone / "windows.csv")["twin_loss"]).all()


def test_the_twin_keeps_the_parameters_of_the_start(tiny_run: Path, live: Live) -> None:
    life = live("life", "num_steps=320", "learning_rate=0.01", "guard.by=none")
    trained = checkpoint.load_newest(tiny_run / "checkpoints")[1]["agent"]
    same(content(life)["begin"], trained, "begin")
    request = prepare([f"resume={life}"])
    parts = build_parts(request)
    folder = request.open_folder()
    resumed = living.Life(request, parts, folder, Quiet())
    same(dict(parts.twin_agent.state_dict()), dict(trained), "twin")
    with pytest.raises(AssertionError):
        same(dict(parts.agent.state_dict()), dict(trained), "agent")
    resumed.tables.close()
    folder.close()


def test_learning_that_ruins_the_policy_is_taken_back(live: Live) -> None:
    words = ["num_steps=320", "num_lifetimes=4", "learning_rate=1.0", "guard.tolerance=0.001"]
    life = live("ruined", *words)
    windows = read_table(life / "windows.csv")
    back = windows["verdict"] == "rolled_back"
    assert back.any()
    assert (windows["worsening"][back] > 0.001).all()
    assert (windows["worsening"][windows["verdict"] == "accepted"] <= 0.001).all()


def test_a_window_taken_back_leaves_parameters_and_trainer_of_before(
    tiny_run: Path, live: Live
) -> None:
    trained = checkpoint.load_newest(tiny_run / "checkpoints")[1]
    words = ["num_steps=16", "learning_rate=0.01", "guard.tolerance=0"]
    life = live("one", *words)
    verdict = read_table(life / "windows.csv")["verdict"].tolist()
    found = content(life)
    assert verdict in (["accepted"], ["rolled_back"], ["unknown"])
    guard = found["guard"]
    assert isinstance(guard, dict)
    same(guard["accepted"] if verdict == ["accepted"] else trained["agent"], found["agent"], "")


def test_gradients_that_are_not_finite_are_survived(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls = torch.nn.utils.clip_grad_norm_, iter(range(10**6))

    def sometimes(parameters: Iterator[torch.Tensor], most: float) -> torch.Tensor:
        norm = original(parameters, most)
        return norm * torch.nan if next(calls) == 4 else norm

    monkeypatch.setattr("sojourn.agents.meta_trainer.nn.utils.clip_grad_norm_", sometimes)
    life = live("broken", "num_steps=320")
    found = json.loads((life / "life.json").read_text())
    assert found["verdicts"]["broken"] == 1
    assert found["windows"] == 20
    assert found["step"] == 320


def test_tables_stay_small_and_spread_over_the_life(live: Live) -> None:
    life = live("long", "num_steps=512", "checkpoint_every=160")
    windows, episodes = (read_table(life / name) for name in ("windows.csv", "episodes.csv"))
    assert len(windows["number"]) <= 8
    assert len(episodes["number"]) <= 8
    stride = np.unique(np.diff(windows["number"]))
    assert stride.tolist() == [4.0]  # 32 windows, at most 8 rows
    assert windows["number"][0] == 0
    assert np.diff(episodes["number"]).tolist() == [1.0] * (len(episodes["number"]) - 1)
    assert len(list((life / "checkpoints").glob("step_*.pt"))) == 2
    assert {path.suffix for path in life.iterdir()} <= {"", ".csv", ".json", ".yaml", ".txt"}


def test_a_life_can_be_loaded_and_begun_from(tiny_run: Path, live: Live) -> None:
    life = live("first", "num_steps=160", "learning_rate=0.01", "guard.by=none")
    same(dict(load(life).agent.state_dict()), dict(content(life)["agent"]), "agent")  # type: ignore[call-overload]
    assert main(["live", str(life), "folder=second", *LIFE, "num_steps=32"]) == 0
    same(content(Path("second"))["begin"], content(life)["agent"], "begin")


def test_wrong_requests_are_refused_in_one_line(
    tiny_run: Path, live: Live, refuse: Callable[..., str]
) -> None:
    assert "expected one run" in refuse("live")
    assert "did you mean learning_rate" in refuse("live", str(tiny_run), "learning_rat=1")
    assert "guard.by: expected one of" in refuse("live", str(tiny_run), "guard.by=luck")
    assert "guard.slices: expected at least 1" in refuse("live", str(tiny_run), "guard.slices=0")
    assert "trained on this root seed" in refuse("live", str(tiny_run), "seed=1")
    assert "give trainer=ppo" in refuse("live", str(tiny_run), "trainer=evolution")
    assert "cannot live there" in refuse("live", str(tiny_run), "stream=dark_room")
    assert "not a life" in refuse("live", f"resume={tiny_run}")
    life = live("life", "num_steps=32")
    assert "changes num_steps" in refuse("live", f"resume={life}", "num_lifetimes=2")
    assert "sojourn live resume=" in refuse("train", f"resume={life}")
    assert "num_steps=16: the life has reached step 32" in refuse(
        "live", f"resume={life}", "num_steps=16"
    )
    assert "exists already" in refuse("live", str(tiny_run), "folder=life")
