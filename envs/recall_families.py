"""POPGym's recall games as families: by name, with the decks and lags of their three levels.

    level    RepeatPrevious (decks, k)   RepeatFirst (decks)   Autoencode (decks)
    easy     1, 4                        1                     1
    medium   2, 32                       8                     2
    hard     3, 64                       16                    3

Source: Morad et al. 2023, POPGym, arXiv:2303.01859; `popgym.envs`.
"""

from __future__ import annotations

import numpy as np

from .interface import Channel, Interface
from .recall import NUM_SUITS, CardsBackwards, FirstCard, Game, PreviousCard, RecallTask
from .recall_simulator import RecallSimulator
from .simulator import Simulator
from .task import Family


class _RecallFamily(Family):
    """One game, always the same; its episodes differ by their cards."""

    def __init__(self, name: str, game: Game) -> None:
        if game.num_decks < 1:
            raise ValueError(f"num_decks: expected at least 1, got {game.num_decks}")
        self.name = name
        self.game = game
        self._task = RecallTask(name, game)

    @property
    def interface(self) -> Interface:
        """What is shown, and an action per suit."""
        return Interface({"discrete": Channel("discrete", (), self.game.num_shown)}, NUM_SUITS)

    def draw(self, rng: np.random.Generator) -> RecallTask:
        """The game."""
        del rng
        return self._task

    def simulator_type(self) -> type[Simulator] | None:
        """All recall games play in one vectorised simulator."""
        return RecallSimulator


class RepeatPrevious(_RecallFamily):
    """Answer with the card seen k - 1 steps ago; `k` counts the shown card as 1."""

    def __init__(self, num_decks: int = 1, k: int = 4) -> None:
        game = PreviousCard(num_decks, k)
        if num_decks >= 1 and not 1 <= k < game.num_cards:
            raise ValueError(f"k: expected 1 to {game.num_cards - 1}, got {k}")
        super().__init__(f"repeat-previous-{num_decks}x{k}", game)
        self._task.lag = k - 1


class RepeatFirst(_RecallFamily):
    """Answer with the first card at every step."""

    def __init__(self, num_decks: int = 1) -> None:
        super().__init__(f"repeat-first-{num_decks}", FirstCard(num_decks))


class Autoencode(_RecallFamily):
    """Watch all cards, then answer with them from the last to the first."""

    def __init__(self, num_decks: int = 1) -> None:
        super().__init__(f"autoencode-{num_decks}", CardsBackwards(num_decks))
