"""The steps between a cue and its use, as tasks declare them, against best play."""

import numpy as np
import pytest

from sojourn.envs import BernoulliBandit, Family, MinigridFamily, RepeatPrevious, TMaze
from sojourn.envs.best_play import best_actions


def task_of(family: Family):  # type: ignore[no-untyped-def]
    return family.draw(np.random.default_rng(0))


@pytest.mark.parametrize("corridor", [0, 3, 10])
def test_the_sign_of_a_t_maze_is_used_one_step_after_the_corridor(corridor: int) -> None:
    task = task_of(TMaze(corridor, corridor + 5))
    env = task.make_env()
    env.reset(seed=0)
    for step in range(task.lag):
        _, reward, ended, _, _ = env.step(best_actions(task, env)[0])
        assert reward == 0 and not ended, step
    assert env.step(best_actions(task, env)[0])[2], "the turn"


def test_a_card_is_used_k_minus_one_steps_later() -> None:
    assert task_of(RepeatPrevious(1, 4)).lag == 3
    assert task_of(BernoulliBandit(2, 4)).lag is None


@pytest.mark.parametrize("size", [7, 11])
def test_memory_begun_beside_the_cue_has_its_lag_within_the_shortest_plan(size: int) -> None:
    family = MinigridFamily("Sojourn-Memory-v0", {"size": size}, num_actions=3)
    task = task_of(family)
    env = task.make_env()
    env.reset(seed=1)
    assert task.lag == size - 1
    assert task.lag <= len(best_actions(task, env)) <= task.lag + 3
    assert task_of(MinigridFamily("MiniGrid-Empty-5x5-v0")).lag is None
