"""A grammar of hidden rules: what a task wants, and what becomes of things that meet.

    goal  ::=  hold(x)  |  beside(x, y)
    rule  ::=  hold(a) -> c  |  beside(a, b) -> c
    x, y, a, b, c  ::=  a ball or a key of one of five colours

`hold(a) -> c`: a thing a that is picked up becomes c in the hand. `beside(a, b) -> c`: where a and
b lie on cells that share a side, a becomes c and b vanishes. Rules are drawn backwards from the
goal, each making a thing that is still needed, and what no rule makes lies in the room: so every
draw can be solved. No thing has two parts in a task, so no rule undoes another.

Source: the goals and production rules of XLand (Open-Ended Learning Team et al. 2021,
arXiv:2107.12808) and XLand-MiniGrid (Nikulin et al. 2023, arXiv:2312.12044), reduced to these two.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

KINDS = ("ball", "key")
COLOURS = ("red", "green", "blue", "purple", "yellow")
MAX_LYING = 3  # things that are needed from the start; with more of them planning gets slow

Predicate = Literal["hold", "beside"]


class Item(NamedTuple):
    """What a thing looks like."""

    kind: str
    colour: str


class Condition(NamedTuple):
    """`hold` of one item, or `beside` of two."""

    predicate: Predicate
    items: tuple[Item, ...]

    def words(self) -> str:
        """The condition as a mission."""
        named = [f"the {item.colour} {item.kind}" for item in self.items]
        if self.predicate == "hold":
            return f"pick up {named[0]}"
        return f"put {named[0]} next to {named[1]}"


class Rule(NamedTuple):
    """Where `condition` holds, its first item becomes `product` and any second one vanishes."""

    condition: Condition
    product: Item


class Puzzle(NamedTuple):
    """A goal, its rules, and the items that lie in the room at the start, distractors included."""

    goal: Condition
    rules: tuple[Rule, ...]
    lying: tuple[Item, ...]


def draw_puzzle(rng: np.random.Generator, max_rules: int, num_distractors: int) -> Puzzle:
    """A puzzle with 0 to `max_rules` rules, all of which are needed."""
    items = [Item(kind, colour) for kind in KINDS for colour in COLOURS]
    unused = [items[place] for place in rng.permutation(len(items))]
    goal = _condition(rng, unused, room=2)
    lying, rules = list(goal.items), []
    for _ in range(int(rng.integers(max_rules + 1))):
        product = lying.pop(int(rng.integers(len(lying))))
        condition = _condition(rng, unused, room=MAX_LYING - len(lying))
        rules.append(Rule(condition, product))
        lying += condition.items
    lying += unused[:num_distractors]
    return Puzzle(goal, tuple(rules), tuple(lying))


def _condition(rng: np.random.Generator, unused: list[Item], room: int) -> Condition:
    """A condition on new items, of at most `room` of them."""
    num_items = int(rng.integers(1, min(2, room) + 1))
    items = tuple(unused.pop() for _ in range(num_items))
    return Condition("hold" if num_items == 1 else "beside", items)
