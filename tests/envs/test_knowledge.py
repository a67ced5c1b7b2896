"""What a privileged critic is told: the truth, constant within an episode, zeros where unknown."""

import numpy as np
import pytest

from sojourn.envs import (
    BernoulliBandit,
    CartPole,
    Crowd,
    DarkRoom,
    Family,
    KeyDoor,
    Length,
    MinigridFamily,
    MovingBandit,
    NeverRepeating,
    Stream,
    knowledge_width,
)
from sojourn.envs.knowledge import NUM_COMMON
from sojourn.envs.minigrid.family import MinigridTask

EMPTY = "MiniGrid-Empty-5x5-v0"
FAMILIES: list[Family] = [
    BernoulliBandit(3, 6),
    MovingBandit(4, 8),
    DarkRoom(3, 5),
    KeyDoor(3, 6),
    CartPole(20),
    MinigridFamily(EMPTY, {"max_steps": 9}, "permuted", 3),
    MinigridFamily(EMPTY, {"max_steps": 9}, num_actions=3),
]


def crowd_of(*families: Family, rows: int = 3, length: Length | None = None) -> Crowd:
    stream = Stream(NeverRepeating(list(families)), length or Length(2), seed=4)
    return Crowd(stream, rows)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_knowledge_stays_for_an_episode_and_fits(family: Family) -> None:
    crowd, luck = crowd_of(family), np.random.default_rng(0)
    known = crowd.knowledge()
    assert known.shape == (3, knowledge_width(crowd.interface))
    assert known.dtype == np.float32
    assert len(crowd.segments[0].task.descriptor()) == crowd.interface.descriptor_width
    for _ in range(12):
        step = crowd.step(luck.integers(crowd.interface.num_actions, size=3))
        now, ended = crowd.knowledge(), step.terminated | step.truncated
        np.testing.assert_array_equal(now[~ended], known[~ended])
        assert np.isfinite(now).all()
        known = now


def test_a_bandit_is_known_by_its_arms() -> None:
    crowd = crowd_of(BernoulliBandit(3, 6))
    task = crowd.segments[1].task
    known = crowd.knowledge()[1]
    means = task.before  # type: ignore[attr-defined]
    np.testing.assert_allclose(known[NUM_COMMON:], [*means, *means, 1.0], rtol=1e-6)
    np.testing.assert_allclose(known[:4], [1.0, 0.75 / 0.25, 0.5 / 0.25, 0.0], rtol=1e-6)


def test_hidden_actions_are_known_one_hot() -> None:
    crowd = crowd_of(MinigridFamily(EMPTY, None, "permuted", 3), rows=6)
    for row, segment in enumerate(crowd.segments):
        assert isinstance(segment.task, MinigridTask)
        table = crowd.knowledge()[row, NUM_COMMON:].reshape(3, 3)
        assert tuple(table.argmax(0)) == segment.task.permutation
        np.testing.assert_array_equal(table.sum(0), np.ones(3))


def test_the_share_of_a_segment_is_that_at_the_start_of_the_episode() -> None:
    in_episodes, in_steps = (
        crowd_of(DarkRoom(3, 5)),
        crowd_of(DarkRoom(3, 5), length=Length(20, "steps")),
    )
    shares: list[list[float]] = [[], []]
    for _ in range(12):
        for crowd, share in zip((in_episodes, in_steps), shares, strict=True):
            share.append(round(float(crowd.knowledge()[0, 3]), 6))
            crowd.step(np.zeros(3, np.int64))
    assert shares[0] == [0.0] * 5 + [0.5] * 5 + [0.0] * 2
    assert shares[1] == [0.0] * 5 + [0.25] * 5 + [0.5] * 2


def test_tasks_that_share_a_stream_are_padded() -> None:
    crowd = crowd_of(BernoulliBandit(2, 6), BernoulliBandit(5, 6))
    assert crowd.interface.descriptor_width == 11
    for _ in range(25):
        crowd.step(np.zeros(3, np.int64))
        size = len(crowd.segments[0].task.descriptor())
        assert not crowd.knowledge()[0, NUM_COMMON + size :].any()
