"""The verb evaluate: held-out lives beside their controls, and nothing of the run is touched."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from sojourn.agents import Rollout
from sojourn.experiments import checkpoint
from sojourn.experiments import evaluate as verb
from sojourn.experiments.build import build_stream
from sojourn.experiments.command import main
from sojourn.experiments.config import compose_config, parse
from sojourn.experiments.errors import UsageError
from sojourn.experiments.evaluations.conditions import CONDITIONS, LEARNERS, checked_conditions
from sojourn.experiments.evaluations.living import inheritance
from sojourn.experiments.evaluations.request import held_out_config, request
from sojourn.experiments.evaluations.split import seen_note, share_seen
from sojourn.experiments.measures.lifetimes import mean_regret
from sojourn.experiments.measures.lives import Lives
from sojourn.experiments.tables import read_table

from .conftest import TINY

Refuse = Callable[..., str]
TWO_EPISODES = ["stream.length.amount=2", "stream.lifetime_segments=null"]
LIVES = ["num_lifetimes=3", "segments=3", "probe_lifetimes=2", "probe_episodes=2"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a trained `run` and its evaluation `all` under all conditions."""
    folder = tmp_path_factory.mktemp("evaluate")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        words = [*TINY, *TWO_EPISODES, "num_steps=96", "folder=run", "quiet=true"]
        assert main(["train", *words]) == 0
        assert main(["evaluate", "run", *LIVES, "output=all"]) == 0
        yield folder


@pytest.fixture
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing is most of the time of a small evaluation."""
    monkeypatch.setattr(verb, "draw_figures", lambda *_: None)


def measures(folder: Path) -> dict[tuple[str, str], dict[str, float]]:
    rows = json.loads((folder / "measures.json").read_text())["measures"]
    known = [row for row in rows if row["code"] != "M14" or row["condition"] == "carried"]
    found = {(row["measure"], row["condition"]): row for row in known}
    for clock in ("steps per second", "CPU microseconds per step"):
        del found[clock, "carried"]  # no two evaluations take the same time
    return found


def test_an_evaluation_leaves_tables_and_figures(here: Path) -> None:
    left = {path.name for path in (here / "all").iterdir()}
    assert left >= {f"episodes_{name}.csv" for name in CONDITIONS}
    assert left >= {"measures.csv", "measures.json", "evaluation.md", "probes.csv"}
    drawn = ("regret_by_episode", "regret_by_task", "regret_split", "utility", "memory_matrix")
    assert left >= {f"{name}.{ending}" for name in drawn for ending in ("png", "svg", "csv")}
    assert left >= {"memory_horizon.png", "report.html"} and "outer_matrix.png" not in left
    page = (here / "all" / "evaluation.md").read_text()
    for words in ("carried life; half of a life: segment 3", "of one agent", "root seed", "M15"):
        assert words in page


def test_all_conditions_live_the_same_segments(here: Path) -> None:
    tables = [read_table(here / "all" / f"episodes_{name}.csv") for name in CONDITIONS]
    for table in tables:
        np.testing.assert_array_equal(table["optimal_return"], tables[0]["optimal_return"])
        assert table["ends_segment"].tolist() == [float(e == 1) for e in table["episode"]]
        assert set(zip(table["lifetime"], table["segment"], strict=True)) == {
            (float(b), float(k)) for b in range(3) for k in range(3)
        }
    carried, twin = (tables[list(CONDITIONS).index(name)] for name in ("carried", "reset_task"))
    first = carried["segment"] == 0
    np.testing.assert_array_equal(carried["total_return"][first], twin["total_return"][first])
    trained_on = read_table(here / "run" / "episodes.csv")["optimal_return"]
    assert not np.isin(carried["optimal_return"], trained_on).any(), "held out"


def test_the_numbers_are_those_of_the_tables(here: Path) -> None:
    found = measures(here / "all")
    for name in CONDITIONS:
        lives = Lives.from_table(here / "all" / f"episodes_{name}.csv")
        row = found["regret, all episodes", name]
        assert row["mean"] == pytest.approx(float(mean_regret(lives).mean()))
        assert row["low"] <= row["mean"] <= row["high"]
        assert row["num_lifetimes"] == 3
    for part in ("transient", "residual"):
        assert found[f"{part} regret", "carried"]["num_lifetimes"] == 3
    total = sum(found[f"{part} regret", "carried"]["mean"] for part in ("transient", "residual"))
    assert total == pytest.approx(found["regret, all episodes", "carried"]["mean"])


def test_the_oracle_loses_nothing_and_players_know_their_bandit(here: Path) -> None:
    found = measures(here / "all")
    assert found["regret, all episodes", "oracle"]["mean"] == pytest.approx(0.0, abs=1e-6)
    players = {name for name in LEARNERS if ("regret, all episodes", name) in found}
    assert players == {"thompson", "posterior_mean", "ucb"}, "tasks of two episodes have no Gittins"


def test_heirs_begin_with_the_memories_of_the_run(here: Path) -> None:
    content = checkpoint.load_newest(here / "run" / "checkpoints")[1]
    memories = inheritance(content)["0", "weights"]
    assert len(memories) == 4 and memories.abs().sum() > 0
    assert torch.equal(memories, content["rollout"]["memory"]["0"]["weights"])


def test_every_condition_says_what_it_costs(here: Path) -> None:
    rows = json.loads((here / "all" / "measures.json").read_text())["measures"]
    cost = {(row["measure"], row["condition"]): row["mean"] for row in rows if row["code"] == "M14"}
    for name in CONDITIONS:
        assert cost["steps per second", name] > 0 and cost["CPU microseconds per step", name] > 0
    content = checkpoint.load_newest(here / "run" / "checkpoints")[1]
    numbers = sum(leaf.numel() for leaf in content["agent"].values())
    assert cost["parameters", "carried"] == numbers
    assert cost["FLOPs per step", "carried"] > 2 * 8 * 8


@pytest.mark.usefixtures("no_figures")
def test_fewer_conditions_change_no_number_and_a_repetition_none_at_all(here: Path) -> None:
    words = ["conditions=reset_task,carried", "output=two"]
    assert main(["evaluate", "run", *LIVES, *words]) == 0
    every, two = measures(here / "all"), measures(here / "two")
    assert {condition for _, condition in two} == {"carried", "reset_task", "training"}
    assert all(every[key] == row for key, row in two.items())


@pytest.mark.usefixtures("no_figures")
def test_the_run_is_not_touched(here: Path) -> None:
    def content() -> dict[str, bytes]:
        files = [path for path in (here / "run").rglob("*") if path.is_file()]
        return {str(path): path.read_bytes() for path in files}

    before = content()
    words = ["num_lifetimes=1", "steps=15", "conditions=carried", "greedy=true", "output=one"]
    assert main(["evaluate", "run", *words]) == 0
    assert content() == before
    newest = checkpoint.newest_first(here / "run" / "checkpoints")[0]
    assert main(["evaluate", str(newest), *words, "output=file"]) == 0
    assert measures(here / "one") == measures(here / "file")


def test_an_interrupted_evaluation_keeps_what_was_lived(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    live = Rollout.live

    def live_and_signal(self: Rollout, num_steps: int, *arguments: Any) -> object:
        os.kill(os.getpid(), signal.SIGINT)
        return live(self, num_steps, *arguments)

    monkeypatch.setattr(Rollout, "live", live_and_signal)
    assert main(["evaluate", "run", "num_lifetimes=2", "steps=30", "output=stopped"]) == 130
    assert "stopped; what was lived is in stopped" in capsys.readouterr().out
    assert len(read_table(here / "stopped" / "episodes_carried.csv")["episode"]) > 0
    assert not (here / "stopped" / "measures.csv").exists()


def test_by_default_the_folder_lies_in_the_run(here: Path) -> None:
    wanted = request(["run"])
    assert wanted.output.parent == Path("run/evaluations")
    assert wanted.budget.num_lifetimes == 32 and wanted.budget.steps == 1000
    assert request(["run", "segments=3"]).budget.steps == 100_000
    assert request(["run", "segments=3", "steps=50"]).budget.steps == 50
    assert wanted.conditions == () and wanted.checkpoints == 0, "all that the stream has"
    assert wanted.seed != wanted.trained.seed


@pytest.mark.usefixtures("no_figures")
def test_the_stream_can_be_changed(here: Path) -> None:
    words = ["conditions=carried", "probe_lifetimes=0", "output=longer", "stream.length.amount=3"]
    assert main(["evaluate", "run", "num_lifetimes=2", "segments=2", *words]) == 0
    assert read_table(here / "longer" / "episodes_carried.csv")["episode"].max() == 2
    config = OmegaConf.load(here / "longer" / "config.yaml")
    assert config.stream.length.amount == 3


REFUSALS = {
    "no run": ([], "evaluate: expected one run"),
    "two runs": (["run", "all"], "evaluate: expected one run"),
    "no such folder": (["nowhere"], "nowhere: no such folder or file"),
    "unknown option": (["run", "lifetimes=3"], "lifetimes: no such option of evaluate; did you"),
    "unknown condition": (["run", "conditions=carried,resettask"], "did you mean reset_task"),
    "nothing to compare": (["run", "conditions=frozen"], "conditions: carried is missing"),
    "no such checkpoints": (["run", "checkpoints=some"], "checkpoints=some: expected a whole"),
    "trained seed": (["run", "seed=1"], "seed=1: the run was trained on this root seed"),
    "not a number": (["run", "steps=many"], "steps=many: expected a whole number, 1 or more"),
    "not a truth": (["run", "greedy=yes"], "greedy=yes: expected true or false"),
    "unknown writes": (["run", "probe_writes=no"], "probe_writes=no: expected episode or frozen"),
    "existing output": (["run", "output=all"], "output=all: exists already"),
    "unknown key": (["run", "stream.lenght=3"], "stream.lenght: no such key"),
    "unknown stream": (["run", "stream=bandits"], "stream=bandits: no such stream"),
    "another interface": (["run", "stream.schedule.families.0.num_arms=3"], "cannot live there"),
    "another world": (["run", "stream=dark_room"], "stream=dark_room: the agent cannot live"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_wrong_request_gets_one_line(place: Path, refuse: Refuse, case: str) -> None:
    words, expected = REFUSALS[case]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        assert expected in refuse("evaluate", *words)


def test_only_the_stream_is_changed_for_an_evaluation(here: Path) -> None:
    trained = request(["run"]).trained
    with pytest.raises(UsageError, match="seed: an evaluation changes the stream only"):
        held_out_config(trained, ["seed=3"])
    assert held_out_config(trained, []) == trained


def test_what_is_held_out_is_never_trained_on() -> None:
    config = compose_config(parse(["experiment=held_out_rules"]))
    trained = build_stream(config, 1)
    declared = held_out_config(config, list(config.evaluation.stream))
    assert share_seen(trained, build_stream(declared, 1)) == 0.0
    plain = build_stream(compose_config(parse(["stream=hidden_rules"])), 1)
    assert share_seen(plain, build_stream(config, 2)) == 1.0
    assert "no task of it" in seen_note(0.0) and "100% of its tasks" in seen_note(1.0)


def test_conditions_come_in_one_order() -> None:
    assert checked_conditions(["random", "carried"]) == ("carried", "random")


def test_a_single_task_for_life_has_no_utility(here: Path) -> None:
    words = ["stream.lifetime_segments=1", "num_lifetimes=2", "output=single"]
    assert main(["evaluate", "run", *words]) == 0
    found = measures(here / "single")
    assert found["utility U of having lived", "reset_task"]["mean"] is None
    assert not {"utility.png", "memory_matrix.png"} & {p.name for p in (here / "single").iterdir()}
    assert "at most 1 segment each" in (here / "single" / "evaluation.md").read_text()
