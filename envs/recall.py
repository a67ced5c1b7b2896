"""Cards to be repeated from memory: the task and the environment of all recall games.

    reward_t = +scale where a_t = target_t, -scale where not, 0 where nothing is asked for

A game lays out a shuffled deck of N = 52 x decks cards, 13 x decks of each suit, as what is shown
at every step and what is asked for; only suits matter. Perfect memory earns 1, random answers -1/2
in expectation. An episode ends `terminated`: nothing follows the last card.
Source: Morad et al. 2023, POPGym, arXiv:2303.01859.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces

from .interface import Array
from .seeding import draw_seed
from .task import Env, InstanceRule, Reference, Task, Unit

NUM_SUITS = 4
CARDS_PER_SUIT = 13
NOTHING = -1
"""The target of a step at which no answer is asked for."""
REFERENCE = Reference(floor=-0.5, ceiling=1.0, kind="analytic", reward_range=2.0)


class Game(ABC):
    """The rules of a recall game, played with `num_decks` decks."""

    num_shown: int = NUM_SUITS
    num_decks: int

    @property
    def num_cards(self) -> int:
        """N."""
        return NUM_SUITS * CARDS_PER_SUIT * self.num_decks

    @property
    @abstractmethod
    def num_steps(self) -> int:
        """Steps of an episode, T."""

    @property
    @abstractmethod
    def num_answers(self) -> int:
        """At how many steps an answer is asked for; the reward of each is 1 / `num_answers`."""

    @abstractmethod
    def lay_out(self, cards: Array) -> tuple[Array, Array]:
        """What is shown `[T + 1]` and what is asked for `[T]` with the suits `cards` `[N]`."""

    def deal(self, seed: int) -> tuple[Array, Array]:
        """`lay_out` with the cards of one episode."""
        suits = np.repeat(np.arange(NUM_SUITS), CARDS_PER_SUIT * self.num_decks)
        return self.lay_out(np.random.default_rng(seed).permutation(suits))


@dataclass(frozen=True)
class PreviousCard(Game):
    """Answer with the card seen k - 1 steps ago (k = 1: the one that is shown)."""

    num_decks: int
    k: int

    @property
    def num_steps(self) -> int:
        """Every card but the last is answered to."""
        return self.num_cards - 1

    @property
    def num_answers(self) -> int:
        """From the k-th card on."""
        return self.num_cards - self.k

    def lay_out(self, cards: Array) -> tuple[Array, Array]:
        """target_t = card_{t - k + 1}."""
        targets = np.full(self.num_steps, NOTHING)
        targets[self.k - 1 :] = cards[: self.num_answers]
        return cards, targets


@dataclass(frozen=True)
class FirstCard(Game):
    """Answer with the first card at every step."""

    num_decks: int

    @property
    def num_steps(self) -> int:
        """Every card but the last is answered to."""
        return self.num_cards - 1

    @property
    def num_answers(self) -> int:
        """At every step."""
        return self.num_steps

    def lay_out(self, cards: Array) -> tuple[Array, Array]:
        """target_t = card_0."""
        return cards, np.full(self.num_steps, cards[0])


@dataclass(frozen=True)
class CardsBackwards(Game):
    """Watch all cards, then answer with them from the last to the first.

    The observation is suit + 4 x mode: mode 1 from the last card on, with suit 0 once answers are
    given (POPGym shows mode and suit as a pair).
    """

    num_decks: int
    num_shown: int = 2 * NUM_SUITS

    @property
    def num_steps(self) -> int:
        """N - 1 to watch, N to answer."""
        return 2 * self.num_cards - 1

    @property
    def num_answers(self) -> int:
        """One per card."""
        return self.num_cards

    def lay_out(self, cards: Array) -> tuple[Array, Array]:
        """target_{N - 1 + j} = card_{N - 1 - j}."""
        shown = np.full(2 * self.num_cards, NUM_SUITS)
        shown[: self.num_cards] = cards
        shown[self.num_cards - 1] += NUM_SUITS
        watched = np.full(self.num_cards - 1, NOTHING)
        return shown, np.concatenate([watched, cards[::-1]])


class RecallTask(Task):
    """A game; every episode shuffles anew, and nothing else is hidden."""

    unit: Unit = "return"
    instance: InstanceRule = "resampled"
    reference: Reference | None = REFERENCE

    def __init__(self, name: str, game: Game) -> None:
        self.name = name
        self.game = game

    @property
    def env_key(self) -> Hashable:
        """Equal games share an environment."""
        return self.game

    def make_env(self) -> Env:
        """The game as an environment."""
        return RecallEnv(self.game)

    def optimal_return(self, env: Env) -> float:
        """1: every card can be known when it is asked for."""
        del env
        return 1.0

    def floor_return(self, env: Env) -> float:
        """-1/2: a random suit is right one time in four."""
        del env
        return -0.5


class RecallEnv(gymnasium.Env[np.int64, np.int64]):
    """One recall game as a step environment; an action is a suit."""

    def __init__(self, game: Game) -> None:
        self.observation_space = spaces.Discrete(game.num_shown)
        self.action_space = spaces.Discrete(NUM_SUITS)
        self.game = game
        self.num_steps = 0
        self._shown = self._targets = np.zeros(1, np.int64)

    @property
    def target(self) -> int:
        """The answer asked for now; -1 where none is."""
        return int(self._targets[self.num_steps])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Shuffle and show the first card."""
        super().reset(seed=seed, options=options)
        self.num_steps = 0
        deck = draw_seed(self.np_random) if seed is None else seed
        self._shown, self._targets = self.game.deal(deck)
        return np.int64(self._shown[0]), {}

    def step(self, action: np.int64) -> tuple[np.int64, SupportsFloat, bool, bool, dict[str, Any]]:
        """Answer; the next card is shown."""
        target = self.target
        reward = 0.0
        if target != NOTHING:
            reward = (1.0 if action == target else -1.0) / self.game.num_answers
        self.num_steps += 1
        ended = self.num_steps == self.game.num_steps
        shown = np.int64(self._shown[self.num_steps])
        return shown, reward, ended, False, {"expected_reward": reward}
