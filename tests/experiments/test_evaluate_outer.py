"""Laws of the matrix of outer parameters: each checkpoint on each task, and what it says."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from sojourn.agents import Agent
from sojourn.envs import (
    BernoulliBandit,
    DarkRoom,
    Family,
    Length,
    NeverRepeating,
    Recurring,
    Stream,
)
from sojourn.experiments.command import main
from sojourn.experiments.evaluations.frozen_lives import ending_row, frozen_copy
from sojourn.experiments.evaluations.matrix import outer_rows
from sojourn.experiments.evaluations.measures import Row
from sojourn.experiments.evaluations.outer import (
    OuterTasks,
    chosen_checkpoints,
    probe_checkpoint,
)
from sojourn.experiments.measures.forgetting import Matrix
from sojourn.experiments.measures.lives import Lives
from sojourn.experiments.tables import read_table, write_table
from sojourn.memory import GRU, Stack

from .conftest import TINY


def stream_of(*families: Family, num_tasks: int | None = None) -> Stream:
    return Stream(Recurring(families, num_tasks=num_tasks), Length(2), seed=3)


def agent_of(stream: Stream, seed: int) -> Agent:
    torch.manual_seed(seed)
    return frozen_copy(Agent(stream.interface, Stack([GRU(8)])))


def test_tasks_are_names_where_a_stream_has_several() -> None:
    tasks = OuterTasks.of(stream_of(DarkRoom(3, 4), DarkRoom(5, 4)), 2)
    assert tasks.names == ["dark-room-3x3", "dark-room-5x5"] and tasks.by_name
    assert tasks.places == [(0, 0), (1, 0), (0, 1), (1, 1)] and tasks.num_lives == 2


def test_tasks_of_one_name_are_told_apart_by_what_they_hide() -> None:
    stream = Stream(NeverRepeating([DarkRoom(3, 4)]), Length(1), seed=3)
    tasks = OuterTasks.of(stream, 2)
    assert len(tasks.names) == 8 and not tasks.by_name, "a goal in every other cell"
    for number, name in enumerate(tasks.names):
        goals = set()
        for life in range(2):
            segment = stream.segment(*tasks.places[number * 2 + life])
            assert tasks.label(segment) == name
            goals.add(int(np.argmax(segment.task.model.rewards.sum((1, 2)))))  # type: ignore[attr-defined]
        assert len(goals) == 1


def test_tasks_that_never_come_again_are_one_column() -> None:
    tasks = OuterTasks.of(stream_of(BernoulliBandit(2, 4)), 3)
    assert tasks.names == ["bandit-2x4"]
    assert tasks.places == [(0, 0), (1, 0), (2, 0)]


def test_scores_go_to_their_checkpoint_and_task() -> None:
    stream = stream_of(DarkRoom(3, 6), DarkRoom(5, 6))
    tasks = OuterTasks.of(stream, 2)
    agents = [agent_of(stream, seed) for seed in (0, 1)]
    rows = [
        ending_row(ending, lived)
        for row, agent in enumerate(agents)
        for lived, part in probe_checkpoint(tasks, row, agent, 2, seed=9)
        for ending in part
    ]
    table = Lives.from_columns({name: np.array([row[name] for row in rows]) for name in rows[0]})
    matrix = tasks.matrix(table, np.array([[True, False]]))
    assert matrix.scores.shape == (2, 2, 2) and matrix.played.shape == (2, 1, 2)
    number = 1 * 4 + 1 * 2 + 0  # checkpoint 1, second task, first life
    expected = 1.0 - table.regret()[table.lifetime == number].mean()
    assert matrix.scores[0, 1, 1] == pytest.approx(expected)
    assert set(table.task[table.lifetime == number]) == {"dark-room-5x5"}
    optimal = [table.optimal[table.lifetime == n].tolist() for n in (number, number - 4)]
    assert optimal[0] == optimal[1], "checkpoints are asked on the same instances"


def test_what_was_trained_on_is_read_off_the_table_of_episodes(tmp_path: Path) -> None:
    stream = stream_of(DarkRoom(3, 4), DarkRoom(5, 4))
    path = tmp_path / "episodes.csv"
    lived = [("dark-room-3x3", 10, 50), ("dark-room-5x5", 20, 1), ("dark-room-5x5", 30, 50)]
    write_table(
        path,
        {
            "step": [step for _, step, _ in lived],
            "lifetime": [0, 0, 0],
            "segment": [0, 1, 1],
            "episode": [0, 0, 1],
            "task": [name for name, _, _ in lived],
            "num_steps": [steps for _, _, steps in lived],
        },
    )
    tasks = OuterTasks.of(stream, 1)
    found = tasks.played(path, [0, 20, 40, 60])
    assert found.tolist() == [[True, False], [False, True], [False, False]]
    hidden = OuterTasks(stream, [tasks.label(stream.segment(0, 0))], [(0, 0)], False)
    renamed = OuterTasks(stream, [hidden.label(stream.segment(0, 1))], [(0, 1)], False)
    assert renamed.played(path, [0, 20, 40]).tolist() == [[False], [True]]


def value(rows: list[Row], measure: str) -> float:
    return next(row.value.mean for row in rows if row.measure == f"{measure}, outer parameters")


def test_outer_forgetting_and_plasticity_by_hand() -> None:
    scores = np.array([[[0.0, 0.1, 0.0], [0.9, 0.2, 0.0], [0.5, 0.7, 0.0], [0.4, 0.6, 0.5]]] * 2)
    rows = list(outer_rows(Matrix.in_order(scores, np.array([[0, 1, 2]] * 2))))
    assert value(rows, "ACC, score on all tasks met") == pytest.approx(0.5)
    assert value(rows, "BWT, backward transfer") == pytest.approx((-0.5 - 0.1) / 2)
    assert value(rows, "FWT, zero-shot minus untrained") == pytest.approx(0.1 / 2)
    assert value(rows, "forgetting at a boundary") == pytest.approx((0.4 + 0.1 + 0.1) / 3)
    assert value(rows, "score right after training") == pytest.approx((0.9 + 0.7 + 0.5) / 3)
    trend = value(rows, "trend of score right after training")
    assert trend == pytest.approx(-0.2), "plasticity is lost"
    assert {row.condition for row in rows} == {"checkpoints"}


def test_checkpoints_are_evenly_chosen(tmp_path: Path) -> None:
    for step in range(0, 70, 10):
        (tmp_path / f"step_{step:012d}.pt").touch()
    names = [int(path.stem[5:]) for path in chosen_checkpoints(tmp_path, 3)]
    assert names == [0, 30, 60]
    assert [path.stem[-2:] for path in chosen_checkpoints(tmp_path, 1)] == ["60"]
    assert len(chosen_checkpoints(tmp_path, None)) == len(chosen_checkpoints(tmp_path, 9)) == 7


def test_the_command_draws_the_matrix_of_all_checkpoints(
    workplace: Path, refuse: Callable[..., str]
) -> None:
    words = ["stream.lifetime_segments=null", "keep_checkpoints=9", "folder=run", "quiet=true"]
    assert main(["train", *TINY, *words]) == 0
    asked = ["conditions=carried", "num_lifetimes=2", "segments=2", "probe_lifetimes=2"]
    assert main(["evaluate", "run", *asked, "checkpoints=all", "output=all"]) == 0
    table = read_table(workplace / "all" / "outer_matrix.csv")
    assert table["environment_step"].tolist() == [0, 96, 192, 288, 320]
    assert np.isfinite(table["task_1"]).all()
    assert (workplace / "all" / "outer_matrix.svg").exists()
    page = (workplace / "all" / "report.html").read_text()
    assert "2 lifetimes of the training stream" in page
    assert "n = 2 lifetimes of the training stream, that this matrix alone has" in page
    assert "What the outer parameters know" in page and "What the memory knows" in page
    for file in (workplace / "run" / "checkpoints").glob("step_*[1-9]*.pt"):
        file.unlink()
    line = refuse("evaluate", "run", "checkpoints=all", "output=none")
    assert "keeps none but that of the untrained agent" in line
    assert not (workplace / "none").exists()
