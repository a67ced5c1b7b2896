"""Lower bounds on taking a thing and on bringing it beside a place.

taking    = way to the thing + 1, + 1 with something else in the hand
bringing  = taking + way from there to a neighbour of the place + 1
"""

from __future__ import annotations

from .planner_distances import Distances, Post
from .planner_model import CARRIED, NOTHING, OUTSIDE, State, World


class Bringing:
    """Actions that handling one thing cannot do without, other things ignored."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._distances = Distances(world)
        self._beside: dict[int, Post] = {}

    def taking(self, thing: int, state: State) -> int:
        """Until a thing is in the hand; 0 where nothing can be said."""
        if state.places[thing] < 0:  # in the hand, or used up
            return 0
        grip = self._distances.facing(state.places[thing])
        burdened = state.carried != NOTHING
        return self._distances.to(grip, state.doors)[state.pose] + burdened + 1

    def bringing(self, thing: int, place: int, state: State) -> int:
        """Until a thing was taken and dropped in a cell beside `place`."""
        post = self._post_beside(place)
        if state.places[thing] == CARRIED:
            return self._distances.to(post, state.doors)[state.pose] + 1
        if state.places[thing] < 0:
            return 0
        grip = self._distances.facing(state.places[thing])
        return self.taking(thing, state) + self._distances.between(grip, post) + 1

    def _post_beside(self, cell: int) -> Post:
        """The poses that face a neighbour of a cell."""
        if cell not in self._beside:
            around = self._world.front[4 * cell : 4 * cell + 4]
            cells = [c for c in around if c != OUTSIDE and c not in self._world.walls]
            self._beside[cell] = tuple(pose for c in cells for pose in self._distances.facing(c))
        return self._beside[cell]
