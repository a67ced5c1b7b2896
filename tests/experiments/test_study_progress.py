"""What a person learns from a study that runs: how many side by side, what is left."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sojourn.envs import GymnasiumFamily, Length, MeasuredCurriculum, Stream, task_stream
from sojourn.experiments import study as verb
from sojourn.experiments.launch import unreferenced
from sojourn.experiments.studies import rows
from sojourn.experiments.studies.member import Member, Places
from sojourn.experiments.studies.options import read_options
from sojourn.experiments.studies.plan import plan
from sojourn.experiments.studies.play import Outcome


@pytest.mark.parametrize(("count", "told"), [(1, False), (3, True)])
def test_the_table_tells_episodes_apart_where_tasks_have_several(
    count: int, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = {"normalised": 0.5}
    end = {"all": one, "by_episode": [one] * count}
    sizes = {"num_parameters": 3, "state_bytes": 4, "steps": 5}
    kinds = {"comparators": {"a": "planner", "b": "search (provisional)"}}
    summary = {"regret_end": end, "evaluation": None, **sizes, **kinds}
    monkeypatch.setattr(rows, "read_row", lambda *_: {"summary": summary})
    member = plan(["experiment=bandit", "memory=none", "seed=1"]).members[0]
    header, (row,) = rows.study_rows(Places(Path()), [member])
    assert row[header.index("comparator")] == "planner, search (provisional)"
    assert [name in header for name in rows.BY_EPISODE] == [told] * 2
    assert "regret, all" in header


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which cores a process has")
def test_auto_counts_the_cores_that_the_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    assert read_options(["seed=1"])[0].jobs_of(100) == 2
    assert read_options(["seed=1", "jobs=7"])[0].jobs_of(100) == 7
    assert read_options(["seed=1", "launcher=ray"])[0].jobs_of(100) == 100


def test_every_member_that_ends_says_how_long_the_rest_will_take(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    clock = iter([0.0, 60.0, 120.0])

    def play(_: object, members: Sequence[Member], __: int, say: Any, *___: object) -> int:
        say(Outcome(members[0], 60))
        say(Outcome(members[1], 60, "boom"))
        say(Outcome(members[2], 60))
        return 2  # as after a Ctrl-C, so that there is nothing to report

    monkeypatch.setattr(verb, "run_members", play)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    words = ["experiment=bandit", "memory=none", "seed=1..3", "scale=tiny", "jobs=2"]
    assert len(plan(words).members) == 3
    assert verb.study(words) == 130
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert lines[0].startswith("3 members, 0 of them done, 2 side by side")
    assert lines[1].endswith("done, 60 s; 2 left, about 2.0 min at the pace so far")
    assert lines[2].endswith("failed: boom, 60 s; 1 left, about 60 s at the pace so far")
    assert lines[3].startswith("[2/3]") and lines[3].endswith("done, 60 s")


def test_tasks_without_a_reference_are_named_before_the_first_step() -> None:
    known, unknown = "CartPole-v1", "FrozenLake-v1"
    for tasks, spoken in (([known, unknown], "of the other tasks alone"), ([unknown], "not known")):
        (line,) = unreferenced(task_stream(tasks, seed=0, length=Length(1)))
        assert unknown in line and known not in line and line.endswith(spoken)
    assert unreferenced(task_stream([known], seed=0, length=Length(1))) == []


def test_a_curriculum_that_follows_the_agent_is_not_asked_for_its_future() -> None:
    schedule = MeasuredCurriculum([GymnasiumFamily("FrozenLake-v1")])
    assert unreferenced(Stream(schedule, Length(1), seed=0)) == []
    assert len(schedule.state_dict()["choices"]) == 0
