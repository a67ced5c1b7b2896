"""Blackjack with an endless deck: the best play and what it and random play are worth, exactly.

    V(hand, shown) = max(stick, sum_c p(c) V(hand + c, shown)),   -1 beyond 21
    stick = P(dealer loses) - P(dealer wins),  who draws up to 17;  of an ace and a ten
    stick = P(dealer has no ace and ten)

A hand is its sum with aces as 1, whether it has an ace, which counts 11 where that does not exceed
21, and how many cards it has. Source: Sutton and Barto, Reinforcement Learning, example 5.1;
`gymnasium.envs.toy_text.blackjack` with the rules of Blackjack-v1 (`sab=True`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import NamedTuple

CHANCES = {card: (4 if card == 10 else 1) / 13 for card in range(1, 11)}
STICK, HIT = 0, 1
LIMIT, STANDS_AT = 21, 17


class Hand(NamedTuple):
    """Cards on the table: their sum with aces as 1, whether there is an ace, how many (3: more)."""

    hard: int
    has_ace: bool
    num_cards: int

    @property
    def total(self) -> int:
        """What the hand is worth."""
        return self.hard + (10 if self.has_ace and self.hard + 10 <= LIMIT else 0)

    @property
    def is_natural(self) -> bool:
        """Whether it is an ace and a ten."""
        return self.num_cards == 2 and self.total == LIMIT

    def with_card(self, card: int) -> Hand:
        """The hand after one more card."""
        return Hand(self.hard + card, self.has_ace or card == 1, min(self.num_cards + 1, 3))


EMPTY = Hand(0, False, 0)


def hand_of(cards: list[int]) -> Hand:
    """The hand of some cards, aces as 1."""
    return Hand(sum(cards), 1 in cards, min(len(cards), 3))


def best_option(player: Hand, shown: int) -> int:
    """Whether to stick or to hit, against the card that the dealer shows."""
    return HIT if hit_value(player, shown) > stick_value(player, shown) else STICK


def best_value() -> float:
    """Expected return of best play before the cards are dealt."""
    return _dealt(best_hand_value)


def random_value() -> float:
    """Expected return of sticking and hitting at random."""
    return _dealt(_random_hand_value)


@cache
def best_hand_value(player: Hand, shown: int) -> float:
    """Expected return of best play from here."""
    return max(stick_value(player, shown), hit_value(player, shown))


@cache
def hit_value(player: Hand, shown: int) -> float:
    """Expected return of one more card and best play after it."""
    drawn = ((chance, player.with_card(card)) for card, chance in CHANCES.items())
    return sum(p * (best_hand_value(h, shown) if h.total <= LIMIT else -1.0) for p, h in drawn)


@cache
def stick_value(player: Hand, shown: int) -> float:
    """Expected return of letting the dealer draw."""
    if player.is_natural:
        dealt = ((chance, EMPTY.with_card(shown).with_card(c)) for c, chance in CHANCES.items())
        return sum(chance for chance, hand in dealt if not hand.is_natural)
    ends = dealer_totals(EMPTY.with_card(shown))
    signs = ((p, (player.total > total) - (player.total < total)) for total, p in ends.items())
    return sum(p * sign for p, sign in signs)


@cache
def dealer_totals(dealer: Hand) -> dict[int, float]:
    """Chances of what the dealer's hand is worth in the end; 0 beyond the limit."""
    if dealer.total >= STANDS_AT:
        return {dealer.total if dealer.total <= LIMIT else 0: 1.0}
    chances: dict[int, float] = {}
    for card, chance in CHANCES.items():
        for total, further in dealer_totals(dealer.with_card(card)).items():
            chances[total] = chances.get(total, 0.0) + chance * further
    return chances


@cache
def _random_hand_value(player: Hand, shown: int) -> float:
    drawn = ((chance, player.with_card(card)) for card, chance in CHANCES.items())
    hit = sum(p * (_random_hand_value(h, shown) if h.total <= LIMIT else -1.0) for p, h in drawn)
    return 0.5 * (stick_value(player, shown) + hit)


def _dealt(value: Callable[[Hand, int], float]) -> float:
    """Mean over the first two cards and the card that the dealer shows."""
    deals = product(CHANCES.items(), repeat=3)
    return sum(
        p * q * r * value(EMPTY.with_card(one).with_card(other), shown)
        for (one, p), (other, q), (shown, r) in deals
    )
