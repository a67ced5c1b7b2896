"""Rule rooms: every draw can be solved, the model is the room, and its plans are shortest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sojourn.envs.minigrid import HiddenReactions, RuleRoom, plan, planner
from sojourn.envs.minigrid.planner_families import goal_of
from sojourn.envs.minigrid.planner_goals import Outcome
from sojourn.envs.minigrid.planner_model import NOTHING, State, World, successors
from sojourn.envs.minigrid.production import Condition, Item, Puzzle, Rule, draw_puzzle
from sojourn.envs.minigrid.rule_room import NUM_ACTIONS, looks


def room(seed: int, num_distractors: int = 1) -> RuleRoom:
    env = RuleRoom(size=6, max_steps=60)
    env.puzzle = draw_puzzle(np.random.default_rng(seed), 2, num_distractors)
    env.reset(seed=seed)
    return env


def test_draws_make_all_that_is_needed_and_nothing_twice() -> None:
    rng, seen = np.random.default_rng(0), set()
    for _ in range(300):
        goal, rules, lying = draw_puzzle(rng, 2, 1)
        seen.add((goal.predicate, *(rule.condition.predicate for rule in rules)))
        products = [rule.product for rule in rules]
        used = [item for c in (goal, *(rule.condition for rule in rules)) for item in c.items]
        assert len(set(used)) == len(used), "no thing has two parts"
        assert set(products) < set(used) and set(lying).isdisjoint(products)
        assert set(used) - set(products) == set(lying[:-1]) and lying[-1] not in used
    assert len(seen) == 2 + 4 + 8 - 1, "all shapes but the one that begins with four things"


def shown(env: RuleRoom) -> tuple[Any, ...]:
    """What a room holds: pose, hand, things by place."""
    carried = None if env.carrying is None else looks(env.carrying)
    things = {
        (n % env.width, n // env.width): looks(thing)
        for n, thing in enumerate(env.grid.grid)
        if thing is not None and thing.type != "wall"
    }
    return (*map(int, env.agent_pos), int(env.agent_dir)), carried, things


def told(world: World, state: State) -> tuple[Any, ...]:
    """The same of a state of the model."""
    things = [Item(thing.kind, thing.colour) for thing in world.things]
    y, x = divmod(state.pose >> 2, world.width)
    lying = {
        (place % world.width, place // world.width): things[n]
        for n, place in enumerate(state.places)
        if place >= 0
    }
    return (
        (x, y, state.pose & 3),
        None if state.carried == NOTHING else things[state.carried],
        lying,
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_model_is_the_room_at_every_step_of_a_random_walk(seed: int) -> None:
    env, rng = room(seed), np.random.default_rng(seed)
    world = World(env)
    goal = goal_of(world, env)
    state = world.start
    for _ in range(60):
        action = int(rng.integers(NUM_ACTIONS))
        moves = dict(successors(world, state, {action}))
        after = goal.settled(action, state, moves.get(action, state))
        success = action in moves and goal.outcome(action, state, after) is Outcome.SUCCESS
        _, reward, terminated, _, _ = env.step(action)
        assert (terminated, reward > 0) == (success, success)
        assert shown(env) == told(world, after)
        state = after
        if terminated:
            break


@pytest.mark.parametrize("seed", range(25))
def test_plans_succeed_in_the_room_with_the_promised_return(seed: int) -> None:
    env = room(seed)
    found = plan(env, range(NUM_ACTIONS))
    assert found is not None and found.is_exact and found.actions
    for number, action in enumerate(found.actions, start=1):
        image, reward, terminated, _, _ = env.step(action)
        assert terminated == (number == len(found.actions))
        np.testing.assert_array_equal(image["image"], env.gen_obs()["image"])
    assert reward == pytest.approx(found.return_bounds[0])


def no_bound(*_: object) -> Callable[[State], int]:
    return lambda state: 0


@pytest.mark.parametrize("seed", range(200, 225))
def test_no_plan_is_shorter(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the search without any bound, where that ends."""
    env = room(seed, num_distractors=0)
    found = plan(env, range(NUM_ACTIONS))
    assert found is not None and found.actions
    if len(found.actions) > 12:
        pytest.skip("too long to search blindly")
    monkeypatch.setattr(planner, "RuleBound", no_bound)
    blind = plan(env, range(NUM_ACTIONS), max_nodes=200_000)
    assert blind is not None and blind.is_exact and blind.actions
    assert len(blind.actions) == len(found.actions)


def test_a_chain_of_reactions_by_hand() -> None:
    """Pick up the key: it is a ball; drop it beside the other ball: they are what is wanted."""
    key, ball, other, wanted = (
        Item("key", "red"),
        Item("ball", "red"),
        Item("ball", "blue"),
        Item("key", "green"),
    )
    chain = (
        Rule(Condition("beside", (ball, other)), wanted),
        Rule(Condition("hold", (key,)), ball),
    )
    env = RuleRoom(size=6)
    env.puzzle = Puzzle(Condition("hold", (wanted,)), chain, (key, other))
    env.reset(seed=4)
    found = plan(env, range(NUM_ACTIONS))
    assert found is not None and found.actions
    hands = []
    for action in found.actions:
        env.step(action)
        hands.append(None if env.carrying is None else looks(env.carrying))
    assert [hand for n, hand in enumerate(hands) if n == 0 or hand != hands[n - 1]][-3:] == [
        ball,
        None,
        wanted,
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"size": 5}, "at least 6"),
        ({"max_rules": 3}, "0 to 2"),
        ({"num_distractors": -1}, "0 to 3"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments: dict[str, int], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        HiddenReactions(**arguments)
