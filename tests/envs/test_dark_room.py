"""Dark rooms: closed forms against tables, simulation and known numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sojourn.envs import Crowd, DarkRoom, KeyDoor, Length, NeverRepeating, Stream, sweep_returns


@pytest.mark.parametrize("family", [DarkRoom(3, 1), DarkRoom(5, 16), KeyDoor(3, 4), KeyDoor(5, 9)])
def test_closed_forms_are_backward_induction(family: Any) -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        task = family.draw(rng)
        start = task.model.starts
        assert task.values.optimal == pytest.approx(task.action_values[0].max(1)[start])
        assert task.values.floor == pytest.approx(task.model.random_values()[start])


@pytest.mark.parametrize("family", [DarkRoom(5, 16), KeyDoor(3, 6)])
def test_pooled_reference_is_the_mean_of_the_instances(family: Any) -> None:
    tasks = [family.draw(np.random.default_rng(seed)) for seed in range(3000)]
    scale = family.horizon if tasks[0].unit == "rate" else 1
    best = np.array([task.values.optimal[0] for task in tasks]) / scale
    floor = np.array([task.values.floor[0] for task in tasks]) / scale
    error = 4.5 / np.sqrt(3000)
    assert best.mean() == pytest.approx(family.reference.ceiling, abs=error * best.std() + 1e-9)
    assert floor.mean() == pytest.approx(family.reference.floor, abs=error * floor.std())


def test_known_numbers_of_the_room() -> None:
    """Goals are uniform over all cells but the centre: best 14.5 in 5x5, 16.5 in 9x9."""
    small, large = DarkRoom(5, 16), DarkRoom(9, 20)
    assert small.reference.ceiling * 16 == pytest.approx(14.5)
    assert small.reference.floor * 16 == pytest.approx(0.617, abs=5e-4)
    assert large.reference.ceiling * 20 == pytest.approx(16.5)
    assert large.reference.floor * 20 == pytest.approx(0.24, abs=5e-3)


def test_sweep_earns_what_can_be_counted_by_hand() -> None:
    first = sum(range(1, 17)) / 24
    np.testing.assert_allclose(sweep_returns(DarkRoom(5, 16), 4), [first, 40 / 3, 14.5, 14.5])
    assert sweep_returns(DarkRoom(9, 20), 6)[0] == pytest.approx(sum(range(1, 21)) / 80)
    assert sweep_returns(DarkRoom(9, 20), 6)[-1] == pytest.approx(16.5)
    assert len(sweep_returns(DarkRoom(3, 2), 0)) == 0


def test_rooms_share_a_stream_with_rooms_of_another_size() -> None:
    stream = Stream(NeverRepeating([DarkRoom(3, 4), KeyDoor(9, 5)]), Length(1), 0)
    assert stream.interface.channels["discrete"].num_values == 81
    crowd = Crowd(stream, 2)
    assert crowd.observation["discrete"].tolist() == [4, 4]
    for _ in range(4):
        crowd.step(np.array([1, 4]))
    assert crowd.observation["discrete"].tolist() == [40, 40]


def test_key_comes_before_the_door() -> None:
    task = KeyDoor(3, 9).task(key=1, door=7)
    assert not task.model.shown[:9].max() > 8 and task.values.optimal[0] == 2.0
    env: Any = task.make_env()
    env.reset(seed=0)
    rewards = [env.step(move)[1:3] for move in (1, 0, 0, 0, 1, 1)]  # door, back, key, wall, back
    assert rewards == [(0, False), (0, False), (1, False), (0, False), (0, False), (1, True)]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: DarkRoom(4), "size: expected an odd number >= 3, got 4; nearest is 5"),
        (lambda: KeyDoor(1), "size: expected an odd number >= 3, got 1; nearest is 3"),
        (lambda: DarkRoom(5, 0), "horizon: expected at least 1, got 0"),
    ],
)
def test_invalid_arguments_are_named(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
