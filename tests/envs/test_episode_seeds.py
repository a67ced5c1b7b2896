"""Seeds and first draws made without NumPy's objects are the numbers that those give."""

from __future__ import annotations

import numpy as np
import pytest

from sojourn.envs.episode_seeds import BLOCK, SINGLES, episode_seed, hashed_words
from sojourn.envs.first_uniforms import FEW, first_uniforms
from sojourn.envs.seeding import generator

SEEDS = [0, 1, 987_654_321, 2**31 - 1, 2**32 - 1]
EPISODES = [0, SINGLES - 1, SINGLES, BLOCK - 1, BLOCK, BLOCK + 1, 1000, 2**32 - 1, 2**32]


@pytest.mark.parametrize("seed", [*SEEDS, 2**40])
def test_the_words_are_those_of_numpy(seed: int) -> None:
    for episode in EPISODES:
        expected = np.random.SeedSequence([seed, episode]).generate_state(1)[0]
        assert episode_seed(seed, episode) == expected
        assert type(episode_seed(seed, episode)) is int


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(ValueError):
        episode_seed(-1, 20)


@pytest.mark.parametrize("num_words", [1, 2, 3, 4])
def test_all_words_of_many_sequences_are_those_of_numpy(num_words: int) -> None:
    entropy = np.random.default_rng(0).integers(2**32, size=(num_words, 5))
    entropy[:, 0] = 0
    for column, words in zip(entropy.T, hashed_words(entropy).T, strict=True):
        sequence = np.random.SeedSequence(column.astype(np.uint32))
        np.testing.assert_array_equal(words, sequence.generate_state(8))


@pytest.mark.parametrize("num_seeds", [0, 1, FEW, FEW + 1, 500])
@pytest.mark.parametrize("num", [1, 4, 9])
def test_first_uniforms_are_those_of_numpys_generators(num_seeds: int, num: int) -> None:
    drawn = np.random.default_rng(num_seeds).integers(2**32, size=num_seeds)
    seeds = [*SEEDS, *drawn.tolist()][:num_seeds]
    given = first_uniforms(seeds, num)
    assert given.shape == (num_seeds, num)
    for seed, row in zip(seeds, given, strict=True):
        np.testing.assert_array_equal(row, np.random.default_rng(seed).random(num))


def test_seeds_of_more_than_one_word_are_drawn_too() -> None:
    seeds = [2**40, *range(20)]
    np.testing.assert_array_equal(
        first_uniforms(seeds, 2)[0], np.random.default_rng(2**40).random(2)
    )


@pytest.mark.parametrize("seed", [*SEEDS, 2**32, 2**70])
@pytest.mark.parametrize("path", [(), (0,), (1, 2, 3), (2, 0, 2**32 - 1, 7, 9), (5, 2**33)])
def test_generators_are_those_of_numpys_spawned_sequences(seed: int, path: tuple[int, ...]) -> None:
    expected = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=path))
    np.testing.assert_array_equal(generator(seed, *path).random(4), expected.random(4))


@pytest.mark.parametrize("words", [(-1,), (0, -1)])
def test_no_generator_has_a_negative_address(words: tuple[int, ...]) -> None:
    with pytest.raises(ValueError):
        generator(*words)
