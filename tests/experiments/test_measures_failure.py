"""The regret of tasks that pay for success alone is what failing costs plus what slowness costs."""

import numpy as np
import pytest

from sojourn.agents import RandomPolicy, SharedLuck
from sojourn.envs import (
    BernoulliBandit,
    Length,
    MinigridFamily,
    NeverRepeating,
    Stream,
    failure_and_slowness,
)
from sojourn.experiments.evaluations.frozen_lives import Budget, Condition, ending_row, lives
from sojourn.experiments.evaluations.measures import condition_rows
from sojourn.experiments.measures.lifetimes import failure_split, mean_regret
from sojourn.experiments.measures.lives import Lives
from sojourn.experiments.report import success_tasks

from .test_measures import columns_of, lives_of

LIMIT, FEWEST, FLOOR = 40, 4, 0.3
BEST = 1.0 - 0.9 * FEWEST / LIMIT


def grid() -> MinigridFamily:
    return MinigridFamily("MiniGrid-Empty-Random-5x5-v0", {"max_steps": LIMIT})


def test_it_is_the_split_of_the_environment_room() -> None:
    success, steps = np.array([1, 0, 1, 1, 0, 1]), np.array([4, 40, 10, 25, 40, 39])
    columns = columns_of([[[0.0] * 6]], tasks=(0,), floor=FLOOR, best=BEST)
    columns["total_return"] = success * (1.0 - 0.9 * steps / LIMIT)
    found = failure_split(Lives.from_columns(columns), ["task 0"])
    split = failure_and_slowness(success, steps, FEWEST, LIMIT, FLOOR)
    assert found["failure"].tolist() == pytest.approx([split.failure.mean()])
    assert found["slowness"].tolist() == pytest.approx([split.slowness.mean()])


def test_a_return_below_zero_is_a_failure_and_other_tasks_count_nowhere() -> None:
    columns = columns_of([[[0.0, 0.0], [0.0, 0.0]]], tasks=(0, 1), floor=0.0, best=1.0)
    columns["total_return"] = np.array([-1.0, 0.75, 0.0, 0.0])
    found = failure_split(Lives.from_columns(columns), ["task 0"])
    assert found["failure"].tolist() == [2.0 / 2] and found["slowness"].tolist() == [0.25 / 2]


def test_the_parts_of_lived_episodes_add_up_to_their_regret() -> None:
    stream = Stream(NeverRepeating([grid()]), Length(3), seed=5)
    policy, luck = RandomPolicy(stream.interface), SharedLuck(0)
    lived = lives(Condition(policy), stream, Budget(4, 200, 2), luck)
    rows = [ending_row(ending, 0) for _, endings in lived for ending in endings]
    table = Lives.from_columns({name: np.array([row[name] for row in rows]) for name in rows[0]})
    parts = failure_split(table, success_tasks(stream))
    assert (parts["failure"] > 0).any() and (parts["slowness"] > 0).any()
    np.testing.assert_allclose(parts["failure"] + parts["slowness"], mean_regret(table), atol=1e-12)


def test_only_streams_with_such_tasks_have_the_rows() -> None:
    bandit = Stream(NeverRepeating([BernoulliBandit(num_arms=2, num_pulls=4)]), Length(1), seed=0)
    mixed = Stream(NeverRepeating([grid()]), Length(1), seed=0)
    assert not success_tasks(bandit) and success_tasks(mixed) == {grid().name}
    names = [row.measure for row in condition_rows("carried", lives_of(), None, {"task 0"})]
    assert "failure regret" in names and "slowness regret" in names
    assert not any("failure" in row.measure for row in condition_rows("carried", lives_of()))
