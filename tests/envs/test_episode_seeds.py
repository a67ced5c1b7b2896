"""Episode seeds made many at once are the words of NumPy's SeedSequence."""

from __future__ import annotations

import numpy as np
import pytest

from sojourn.envs.episode_seeds import BLOCK, SINGLES, episode_seed

EPISODES = [0, SINGLES - 1, SINGLES, BLOCK - 1, BLOCK, BLOCK + 1, 1000, 2**32 - 1, 2**32]


@pytest.mark.parametrize("seed", [0, 1, 987_654_321, 2**31 - 1, 2**32 - 1, 2**40])
def test_the_words_are_those_of_numpy(seed: int) -> None:
    for episode in EPISODES:
        expected = np.random.SeedSequence([seed, episode]).generate_state(1)[0]
        assert episode_seed(seed, episode) == expected
        assert type(episode_seed(seed, episode)) is int


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(ValueError):
        episode_seed(-1, 20)
