"""Recall games: POPGym's lags, lengths and rewards, by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from sojourn.envs import (
    Autoencode,
    Crowd,
    Length,
    NeverRepeating,
    RecallEnv,
    RepeatFirst,
    RepeatPrevious,
    Stream,
)

FAMILIES = [RepeatPrevious(), RepeatPrevious(2, 32), RepeatFirst(2), Autoencode(), Autoencode(2)]


def score(family: Any, answer: Callable[[list[int]], int], seed: int = 0) -> tuple[float, int]:
    """Return and length of an episode; `answer` sees all that was shown."""
    env = RecallEnv(family.game)
    shown, _ = env.reset(seed=seed)
    seen, total, ended = [int(shown)], 0.0, False
    while not ended:
        shown, reward, ended, _, _ = env.step(np.int64(answer(seen)))
        seen.append(int(shown))
        total += float(reward)
    return total, len(seen) - 1


@pytest.mark.parametrize(("decks", "k"), [(1, 4), (2, 32), (3, 64), (1, 1), (1, 51)])
def test_copying_the_card_of_k_minus_1_steps_ago_scores_one(decks: int, k: int) -> None:
    family = RepeatPrevious(decks, k)
    total, length = score(family, lambda seen: seen[-k] if len(seen) >= k else 0)
    assert total == pytest.approx(1.0) and length == 52 * decks - 1
    total, _ = score(family, lambda seen: seen[-k - 1] if len(seen) > k else 0)
    assert total < 0.2


def test_repeating_the_first_card_scores_one() -> None:
    total, length = score(RepeatFirst(8), lambda seen: seen[0])
    assert total == pytest.approx(1.0) and length == 8 * 52 - 1
    assert score(RepeatFirst(), lambda seen: seen[-1])[0] < 0.0


def test_reciting_backwards_scores_one() -> None:
    def recite(seen: list[int]) -> int:
        watched = seen.index(next((s for s in seen if s >= 4), -1)) if seen[-1] >= 4 else 0
        return seen[2 * watched - len(seen) + 1] % 4

    for decks in (1, 2):
        total, length = score(Autoencode(decks), recite)
        assert total == pytest.approx(1.0) and length == 2 * 52 * decks - 1


def test_what_autoencode_shows() -> None:
    shown, targets = Autoencode().game.deal(3)
    assert (shown[:51] < 4).all() and shown[51] >= 4 and (shown[52:] == 4).all()
    assert (targets[:51] == -1).all() and (targets[51:] == (shown[:52] % 4)[::-1]).all()


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_one_suit_earns_minus_a_half_on_average(family: Any) -> None:
    """The deck holds every suit equally often, so exactly where every card is asked for."""
    scores = np.array([score(family, lambda seen: 2, seed)[0] for seed in range(200)])
    assert abs(scores.mean() + 0.5) <= 4.5 * scores.std() / np.sqrt(200) + 1e-9
    check_env(RecallEnv(family.game), skip_render_check=True)


def test_games_of_different_length_share_a_stream() -> None:
    crowd = Crowd(Stream(NeverRepeating(FAMILIES), Length(1), 0), 3)
    ends = [step for step in range(51 + 103) if crowd.step(np.zeros(3, int)).task_end[0]]
    assert ends == [50, 153] and crowd.interface.channels["discrete"].num_values == 8


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: RepeatPrevious(1, 52), "k: expected 1 to 51, got 52"),
        (lambda: RepeatPrevious(1, 0), "k: expected 1 to 51, got 0"),
        (lambda: RepeatFirst(0), "num_decks: expected at least 1, got 0"),
    ],
)
def test_invalid_arguments_are_named(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
