"""A lower bound for several clauses: every one has a place that has to be faced, in some order.

    bound = min over orders of (way to the first place + ways from place to place) + handling

A thing that is to be taken, put or gone to has to be faced where it lies now, before anything else
can become of it; a door that is to be opened stays where it is, so it comes after what has to be
done first. Handling counts once where places are shared. No success does without any of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise, permutations
from typing import NamedTuple

from .planner_distances import Distances, Post
from .planner_model import State, World


class Visit(NamedTuple):
    """One of some cells has to be faced, and `handling` actions follow; `place` is its clause.

    `after` are the clauses that must be done before.
    """

    place: int
    cells: frozenset[int]
    handling: int
    after: frozenset[int]


class Tour:
    """The shortest way round visits."""

    def __init__(self, world: World) -> None:
        self._distances = Distances(world)
        self._posts: dict[frozenset[int], Post] = {}

    def length(self, visits: Sequence[Visit], state: State) -> int:
        """Actions that all visits from a state take at least."""
        orders = [order for order in permutations(visits) if _is_allowed(order)]
        shared = any(one.cells & other.cells for one, other in combinations(visits, 2))
        handling = [visit.handling for visit in visits]
        ways = min((self._way(order, state) for order in orders), default=0)
        return ways + (max(handling, default=0) if shared else sum(handling))

    def _way(self, order: Sequence[Visit], state: State) -> int:
        posts = [self._post(visit.cells) for visit in order]
        way = self._distances.to(posts[0], state.doors)[state.pose] if posts else 0
        for start, end in pairwise(posts):
            way += self._distances.between(start, end)
        return way

    def _post(self, cells: frozenset[int]) -> Post:
        if cells not in self._posts:
            self._posts[cells] = tuple(
                pose for cell in sorted(cells) for pose in self._distances.facing(cell)
            )
        return self._posts[cells]


def _is_allowed(order: Iterable[Visit]) -> bool:
    """Whether no visit comes before one that has to be done first."""
    later: set[int] = set()
    for visit in reversed(list(order)):
        if visit.after & later:
            return False
        later.add(visit.place)
    return True
