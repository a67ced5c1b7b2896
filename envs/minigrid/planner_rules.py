"""What the planner knows of rule rooms: how things react, and how far the goal still is.

    bound(bring a to b) = way to a + 1 + way from there to b + 1,  or with a and b exchanged
    bound(make c)       = bound of the condition of the rule that makes c,  0 where c exists

Every success takes these actions, so A* that follows the bound is exact.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .planner_bringing import Bringing
from .planner_goals import MOVES, Goal, Outcome, Target
from .planner_model import DROP, GONE, PICKUP, State, World


class Needed(NamedTuple):
    """A condition on numbered things: one in the hand, or two on cells that share a side."""

    things: tuple[int, ...]


class Reaction(NamedTuple):
    """Where `needed` holds, its first thing becomes `product` and any second one vanishes."""

    needed: Needed
    product: int


class ByRules(Goal):
    """The goal of a rule room and its reactions."""

    actions = MOVES | {PICKUP, DROP}

    def __init__(self, world: World, env: Any) -> None:
        products = [world.add_absent(product) for product in env.products]
        numbers = {(t.kind, t.colour): number for number, t in enumerate(world.things)}
        self.wanted = Needed(tuple(numbers[item] for item in env.puzzle.goal.items))
        self.reactions = [
            Reaction(Needed(tuple(numbers[item] for item in rule.condition.items)), product)
            for rule, product in zip(env.puzzle.rules, products, strict=True)
        ]
        self._world = world

    def settled(self, action: int, before: State, after: State) -> State:
        """The state after everything that can react did."""
        while True:
            ready = [r for r in self.reactions if self.holds(r.needed, after)]
            if not ready:
                return after
            after = _after(ready[0], after)

    def holds(self, needed: Needed, state: State) -> bool:
        """Whether a condition holds."""
        if len(needed.things) == 1:
            return state.carried == needed.things[0]
        one, other = (state.places[thing] for thing in needed.things)
        return one >= 0 and other >= 0 and self._world.are_beside(one, other)

    def outcome(self, action: int, before: State, after: State) -> Outcome:
        return Outcome.SUCCESS if self.holds(self.wanted, after) else Outcome.CONTINUE

    def targets(self, state: State) -> tuple[Target, ...]:
        return ()


class RuleBound:
    """Callable: a number of actions that no success from a state of a rule room can do without."""

    def __init__(self, world: World, goal: ByRules) -> None:
        self._goal = goal
        self._bringing = Bringing(world)
        self._makers = {reaction.product: reaction.needed for reaction in goal.reactions}

    def __call__(self, state: State) -> int:
        return self._until(self._goal.wanted, state)

    def _until(self, needed: Needed, state: State) -> int:
        """Actions until a condition holds."""
        missing = [thing for thing in needed.things if self._is_missing(thing, state)]
        if missing:
            return max(self._until_made(thing, needed, state) for thing in missing)
        if len(needed.things) == 1:
            return self._bringing.taking(needed.things[0], state)
        one, other = needed.things
        return min(self._beside(one, other, state), self._beside(other, one, state))

    def _until_made(self, thing: int, needed: Needed, state: State) -> int:
        """Actions until a thing was made and is in the hand, or lies, as it is needed.

        What a hold makes is in the hand at once and has to be dropped to lie; what two things make
        lies and has to be picked up to be held.
        """
        maker = self._makers[thing]
        moved = len(maker.things) != len(needed.things)
        return self._until(maker, state) + moved

    def _is_missing(self, thing: int, state: State) -> bool:
        return state.places[thing] == GONE and thing in self._makers

    def _beside(self, thing: int, goal: int, state: State) -> int:
        """Actions until a thing was taken and dropped beside another one that lies."""
        place = state.places[goal]
        if place < 0:
            return 1 if state.places[thing] >= 0 else 0
        return self._bringing.bringing(thing, place, state)


def _after(reaction: Reaction, state: State) -> State:
    places, product = list(state.places), reaction.product
    first = reaction.needed.things[0]
    places[product] = places[first]
    for thing in reaction.needed.things:
        places[thing] = GONE
    carried = product if state.carried == first else state.carried
    return State(state.pose, carried, tuple(places), state.doors)
