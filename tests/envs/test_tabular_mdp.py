"""Random decision processes, and the players that know they face one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sojourn.envs import Crowd, Length, NeverRepeating, Stream, TabularMDP, tabular_totals
from sojourn.envs.tabular_mdp import draw_processes, random_return
from sojourn.envs.tabular_references import _most_hopeful


def test_pooled_reference_is_the_mean_of_the_instances() -> None:
    family = TabularMDP(4, 3, 5)
    tasks = [family.draw(np.random.default_rng(seed)) for seed in range(800)]
    best = np.array([task.values.optimal[0] for task in tasks])
    floor = np.array([task.values.floor[0] for task in tasks])
    noise = np.hypot(best.std() / np.sqrt(800), family.reference.ceiling_error)
    assert abs(best.mean() - family.reference.ceiling) < 4.5 * noise
    assert abs(floor.mean() - family.reference.floor) < 4.5 * floor.std() / np.sqrt(800)


def test_processes_follow_their_law() -> None:
    model = TabularMDP(10, 5).draw(np.random.default_rng(0)).model
    assert model.chances.shape == (10, 5, 10) and model.reward_noise == 1.0
    np.testing.assert_allclose(model.chances.sum(2), 1.0)
    assert abs(model.chances.std() - np.sqrt(0.09 / 11)) < 0.01  # Dirichlet(1): p (1 - p) / 11
    assert abs(model.mean_rewards().mean() - 1.0) < 4.5 / np.sqrt(50)


def test_random_play_earns_what_is_known() -> None:
    """Duan et al. 2016 print 100.1 for 10 episodes; within 1 % before anything is compared."""
    exact = random_return(*draw_processes(np.random.default_rng(0), 20_000, 10, 5), horizon=10)
    assert abs(10 * exact.mean() - 100.1) < 1.0
    played = Crowd(Stream(NeverRepeating([TabularMDP()]), Length(10), 0), 200)
    rng = np.random.default_rng(0)
    steps = [played.step(rng.integers(5, size=200)).reward for _ in range(400)]
    assert abs(np.sum(steps) / 800 - 100.1) < 2.5  # 800 lifetimes of s.d. 15


def test_references_are_ordered() -> None:
    """Published at n = 10: random 100.1, PSRL 138.1, UCRL2 146.6; PSRL here has the exact prior."""
    totals = tabular_totals(TabularMDP(), num_episodes=10, num=300, seed=1)
    mean = {name: float(total.mean()) for name, total in totals.items()}
    assert sorted(mean, key=lambda name: mean[name]) == [
        "random", "psrl", "optimistic", "greedy", "oracle",
    ]  # fmt: skip
    assert abs(mean["psrl"] - 133.5) < 7.0 and abs(mean["optimistic"] - 152.0) < 7.0


def test_most_hopeful_chances_are_those_of_a_linear_programme() -> None:
    rng = np.random.default_rng(0)
    frequencies = rng.dirichlet(np.ones(3), (1, 1, 1))
    after = rng.normal(size=(1, 3))
    for radius in (0.0, 0.3, 5.0):
        found = _most_hopeful(frequencies, np.full((1, 1, 1), radius), after)[0, 0, 0]
        tried = rng.dirichlet(np.ones(3), 20_000)
        near = tried[np.abs(tried - frequencies[0, 0, 0]).sum(1) <= radius]
        limit = (near @ after[0]).max(initial=float(frequencies[0, 0, 0] @ after[0]))
        assert limit - 1e-9 <= found <= limit + 0.05
    assert found == pytest.approx(after.max())


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: TabularMDP(1), "num_states: expected at least 2, got 1"),
        (lambda: TabularMDP(num_actions=1), "num_actions: expected at least 2, got 1"),
        (lambda: TabularMDP(horizon=0), "horizon: expected at least 1, got 0"),
    ],
)
def test_invalid_arguments_are_named(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
