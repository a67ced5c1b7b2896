"""A crowd may live a share of the lifetimes of a larger one: the same lives, the same numbers."""

import numpy as np
import pytest

from sojourn.envs import BernoulliBandit, Crowd, Length, NeverRepeating, Stream


def stream() -> Stream:
    return Stream(NeverRepeating([BernoulliBandit(3, 4)]), Length(1), seed=7, lifetime_segments=2)


def test_shares_live_what_the_whole_lives() -> None:
    whole = Crowd(stream(), 6)
    shares = [Crowd(stream(), 2, first_lifetime=2 * part, stride=6) for part in range(3)]
    luck, lifetimes = np.random.default_rng(0), []
    for _ in range(30):  # three lives of eight steps, and more
        actions = luck.integers(3, size=6)
        step = whole.step(actions)
        parts = [share.step(actions[2 * i : 2 * i + 2]) for i, share in enumerate(shares)]
        for name in ("reward", "expected_reward", "lifetime_end"):
            together = np.concatenate([getattr(part, name) for part in parts])
            np.testing.assert_array_equal(together, getattr(step, name))
        assert [e for part in parts for e in part.episodes] == step.episodes
        lifetimes += [episode.lifetime for episode in step.episodes]
    assert set(lifetimes) == set(range(18)) | set(range(18, 24))


def test_rows_that_would_meet_are_refused() -> None:
    with pytest.raises(ValueError, match=r"stride: expected at least 3 \(all rows\), got 2"):
        Crowd(stream(), 3, stride=2)
