"""The verb `reference`: agents are trained, one is chosen, and estimated on other seeds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sojourn.envs import EpisodeRecord, read_reference, task_stream
from sojourn.experiments import report
from sojourn.experiments.command import main
from sojourn.experiments.folder import read_json
from sojourn.experiments.references.play import sample_of

from .conftest import AGENT

ID = "{id: CartPole-v1, max_episode_steps: 20}"
SMALL = [
    *AGENT,
    "num_lifetimes=4",
    "slice_steps=8",
    "num_steps=64",
    "runs=2",
    "episodes=20",
    "selection_episodes=20",
]
TASK = {"id": "CartPole-v1", "max_episode_steps": 20}


def test_a_reference_is_made_used_and_carried(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report, "draw_regret", lambda _: None)
    assert main(["reference", ID, *SMALL]) == 0
    out = capsys.readouterr().out
    assert "ceiling" in out and "written to references/CartPole-v1.yaml" in out
    file = workplace / "references" / "CartPole-v1.yaml"
    found = read_reference(file, TASK)
    evidence = found.evidence
    assert evidence is not None and found.kind == "trained"
    assert (evidence.num_ceiling, evidence.num_floor) == (20, 20)
    seeds = [evidence.selection_seeds, evidence.estimation_seeds, evidence.floor_seeds]
    assert len({*seeds, evidence.training_seeds}) == 4 and len(evidence.config_hash) == 16
    assert 0 < found.floor <= 20 and 0 < found.ceiling <= 20

    before = file.read_text()
    trained = sorted(workplace.glob("runs/references/CartPole-v1/seed*/checkpoints/*"))
    assert main(["reference", ID, *SMALL]) == 0, "finished runs are kept"
    assert file.read_text() == before
    assert trained == sorted(workplace.glob("runs/references/CartPole-v1/seed*/checkpoints/*"))

    task = f"stream.tasks=[{{id: CartPole-v1, max_episode_steps: 20, reference: {file}}}]"
    few = [word for word in SMALL if word.split("=")[0] not in ("runs", "episodes")][:-1]
    assert main(["train", task, *few, "folder=run", "quiet=true"]) == 0
    row = read_json(workplace / "run" / "summary.json")["references"]["CartPole-v1"]
    assert row["evidence"]["estimation_seeds"] == list(evidence.estimation_seeds)
    assert row["ceiling"] == found.ceiling and "provisional" in row


def test_runs_of_other_settings_are_not_mixed(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, refuse: Callable[..., str]
) -> None:
    monkeypatch.setattr(report, "draw_regret", lambda _: None)
    assert main(["reference", ID, *SMALL, "runs=1"]) == 0
    assert "other settings" in refuse("reference", ID, *SMALL, "slice_steps=4")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "expected an id first"),
        (["runs=3"], "expected an id first"),
        (["CartPol-v1"], "Did you mean: `CartPole`"),
        (["CartPole-v1", "runs=0"], "runs=0: expected a whole number, 1 or more"),
        (["CartPole-v1", "Acrobot-v1"], "one id at a time"),
        (["CartPole-v1", "stream=bandit"], "not read here"),
        (["CartPole-v1", "num_stepz=3"], "did you mean num_steps"),
        (["{id: CartPole-v1, reference: {floor: 0, ceiling: 1}}"], "has a reference already"),
        (["{id: [}"], "not readable as YAML"),
    ],
)
def test_a_wrong_request_is_one_line(
    refuse: Callable[..., str], words: list[str], told: str
) -> None:
    assert told in refuse("reference", *words)


def test_episodes_that_do_not_end_are_told(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, refuse: Callable[..., str]
) -> None:
    monkeypatch.setattr(report, "draw_regret", lambda _: None)
    words = [ID, *SMALL, "most_steps=20", "runs=1"]
    assert "set max_episode_steps or most_steps" in refuse("reference", *words, code=1)


def test_a_rough_ceiling_is_called_provisional() -> None:
    rough = {"floor": 0, "ceiling": 10, "ceiling_error": 1.5}
    tasks = [{"id": "Acrobot-v1", "reference": rough}, "CartPole-v1"]
    kinds = report.comparators(task_stream(tasks, seed=0))
    assert kinds == {"Acrobot-v1": "user (provisional)", "CartPole-v1": "controller"}
    caption = report.regret_scale([{"comparators": kinds}])
    assert "comparator: controller, user (provisional)" in caption


def record(lifetime: int, total: float, steps: int, unit: str) -> EpisodeRecord:
    return EpisodeRecord(
        lifetime,
        0,
        "a",
        0,
        unit,
        0,
        0,
        steps,
        total,
        np.nan,
        np.nan,
        np.nan,
        "terminated",  # type: ignore[arg-type]
    )


def test_a_sample_is_a_mean_over_lifetimes_in_the_unit_of_the_task() -> None:
    lived = [(0, 1.0, 10), (0, 3.0, 30), (1, 4.0, 10)]
    sample = sample_of([record(*one, "return") for one in lived])
    assert (sample.mean, sample.error, sample.num_episodes) == (3.0, 1.0, 3)
    sample = sample_of([record(*one, "rate") for one in lived])
    assert sample.mean == pytest.approx((0.1 + 0.4) / 2)
