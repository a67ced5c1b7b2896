"""Bandits, and the players that know they face one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from sojourn.envs import (
    BanditEnv,
    BernoulliBandit,
    Crowd,
    Length,
    MovingBandit,
    NeverRepeating,
    Player,
    Stream,
    draw_problems,
    gittins_indices,
    play,
    reference_plays,
)


def test_bandit_is_a_valid_gymnasium_environment() -> None:
    check_env(BanditEnv(3, 10), skip_render_check=True)


def test_moving_arm_follows_its_law() -> None:
    family = MovingBandit(10, 200)
    tasks = [family.draw(np.random.default_rng(seed)) for seed in range(300)]
    for task in tasks:
        assert sorted(task.before) == sorted(task.after)
        assert task.before.max() == task.after.max() == 0.9
        assert task.before.argmax() != task.after.argmax()
        assert sorted(task.before)[-2] < 0.5 and 50 <= task.change < 150
        assert task.optimal_return() == pytest.approx(180.0)
    assert {task.after.argmax() for task in tasks} == set(range(10))
    assert min(task.change for task in tasks) < 55 and max(task.change for task in tasks) > 145


@pytest.mark.parametrize("family", [BernoulliBandit(4, 20), MovingBandit(4, 20)])
def test_pooled_reference_is_the_mean_of_the_instances(family: Any) -> None:
    tasks = [family.draw(np.random.default_rng(seed)) for seed in range(4000)]
    best = np.array([task.optimal_return() for task in tasks]) / 20
    floor = np.array([task.floor_return() for task in tasks]) / 20
    assert best.mean() == pytest.approx(family.reference.ceiling, abs=4.5 * best.std() / 63 + 1e-9)
    assert floor.mean() == pytest.approx(family.reference.floor, abs=4.5 * floor.std() / 63)


def test_rewards_of_an_episode_differ_between_episodes_and_follow_the_arms() -> None:
    stream = Stream(NeverRepeating([BernoulliBandit(2, 500)]), Length(4), seed=0)
    crowd = Crowd(stream, 1)
    task: Any = crowd.segments[0].task
    rewards = np.array([crowd.step(np.array([1])).reward[0] for _ in range(2000)]).reshape(4, 500)
    assert len({episode.tobytes() for episode in rewards}) == 4
    assert abs(rewards.mean() - task.before[1]) < 4.5 * 0.5 / np.sqrt(2000)


REWARDS = {  # random, greedy, Thompson, UCB c = 0.1, Gittins, best arm; 20 000 problems
    (2, 20): (10.04, 12.41, 11.96, 12.35, 12.45, 13.37),
    (5, 10): (5.00, 6.62, 5.83, 5.91, 6.63, 8.32),
    (5, 100): (49.9, 75.7, 74.9, 77.5, 78.5, 83.2),
    (10, 100): (49.9, 79.2, 77.0, 80.5, 83.6, 90.8),
}
NAMES = ("random", "greedy", "thompson", "ucb c=0.1", "gittins", "best arm")


@pytest.mark.parametrize(("size", "rewards"), REWARDS.items(), ids=str)
def test_references_earn_what_is_known(size: tuple[int, int], rewards: tuple[float, ...]) -> None:
    """Duan et al. 2016 print 49.9 / 74.7 / 78.3 for random, Thompson, Gittins at (5, 100)."""
    plays = reference_plays(BernoulliBandit(*size), num=2000, seed=1)
    for name, known in zip(NAMES, rewards, strict=True):
        error = plays[name].reward.std() / np.sqrt(2000)
        assert abs(plays[name].reward.mean() - known) < 4.5 * error, name


def test_pseudo_regret_of_the_references() -> None:
    plays = reference_plays(BernoulliBandit(5, 100), num=4000, seed=0)
    known = {"random": 33.2, "thompson": 8.35, "greedy": 7.57, "ucb c=0.1": 5.74, "gittins": 4.75}
    for name, regret in known.items():
        error = plays[name].regret.std() / np.sqrt(4000)
        assert abs(plays[name].regret.mean() - regret) < 4.5 * error, name
    order = sorted(known, key=lambda name: -plays[name].regret.mean())
    assert order == ["random", "thompson", "greedy", "ucb c=0.1", "gittins"]
    assert not plays["best arm"].regret.any()


def test_a_moving_arm_is_followed_better_by_those_who_forget() -> None:
    plays = reference_plays(MovingBandit(10, 200), num=600, seed=0)
    mean = {name: play.reward.mean() for name, play in plays.items()}
    assert abs(mean["random"] - 63.0) < 1.0 and abs(mean["best arm"] - 180.0) < 1.0
    assert mean["sliding-window ucb c=0.2 w=100"] > mean["ucb c=0.1"] + 5
    assert mean["discounted thompson 0.99"] > mean["thompson"] + 1


def test_window_and_discount_forget() -> None:
    problems = draw_problems(BernoulliBandit(2, 30), 5, seed=0)
    seen: list[float] = []

    def index(s: np.ndarray, f: np.ndarray, t: int, rng: np.random.Generator) -> np.ndarray:
        seen.append(float((s + f).sum(1).max()))
        return rng.random(s.shape)

    play(Player(index, window=8), problems, seed=0)
    assert seen[:10] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 8] and seen[-1] == 8
    seen.clear()
    play(Player(index, discount=0.5), problems, seed=0)
    assert seen[:4] == [0, 1, 1.5, 1.75]


def test_gittins_indices_of_the_literature() -> None:
    """Values of Gittins (1989) at gamma = 0.9; an index exceeds the mean: trying has a value."""
    table = gittins_indices(10)
    for (a, b), index in {(1, 1): 0.7029, (2, 1): 0.8001, (1, 2): 0.5001, (2, 2): 0.6346}.items():
        assert table[a, b] == pytest.approx(index, abs=2e-3)
        assert table[a, b] > a / (a + b)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: BernoulliBandit(1, 10), "num_arms: expected at least 2, got 1"),
        (lambda: BernoulliBandit(2, 0), "num_pulls: expected at least 4, got 0"),
        (lambda: MovingBandit(best=0.4), "expected 0 <= others < best <= 1"),
    ],
)
def test_invalid_arguments_are_named(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
