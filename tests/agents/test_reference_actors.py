"""Laws of actors with knowledge: the oracle, players of bandits, a memory for every task."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from sojourn.agents import (
    BanditPlayer,
    Ending,
    OraclePolicy,
    RandomPolicy,
    Rollout,
    Separated,
    SharedLuck,
)
from sojourn.envs import (
    BernoulliBandit,
    Crowd,
    DarkRoom,
    Independent,
    Length,
    MovingBandit,
    NeverRepeating,
    Oracle,
    Player,
    Recurring,
    Stream,
    players,
    reference_plays,
    task_stream,
)

from .conftest import bandit_stream, make_agent
from .test_interventions import live, loud

MakeRollout = Callable[..., Rollout]


def lived(rollout: Rollout, steps: int) -> list[Ending]:
    return rollout.live(steps, SharedLuck(3))


def test_the_oracle_is_lived_like_an_agent_and_loses_nothing() -> None:
    stream = Stream(Recurring([DarkRoom(3, 6)], num_tasks=2), Length(2), seed=4)
    crowd = Crowd(stream, 3)
    endings = lived(Rollout(OraclePolicy(crowd), crowd), 30)
    assert len(endings) == 15
    for record, _ in endings:
        assert record.total_return == pytest.approx(record.optimal_return)


def test_the_oracle_plays_reals_and_guesses_where_nobody_knows() -> None:
    tasks = ["Pendulum-v1", "FrozenLake-v1", "Blackjack-v1"]
    stream = task_stream([{"id": id, "max_episode_steps": 6, "length": 1} for id in tasks], seed=0)
    crowd = Crowd(stream, 2)
    policy, oracle, guesser = OraclePolicy(crowd), Oracle(stream, 2), RandomPolicy(crowd.interface)
    seen: set[tuple[str, bool]] = set()
    for step in range(30):
        at, names = crowd.state_dict()["counters"], crowd.task_names
        starts = np.equal(at["episode_step"], 0)
        best = oracle.actions(at["lifetime"], at["segment"], at["episode"], starts)
        luck = torch.rand(2, *policy.actions.luck_shape, generator=torch.manual_seed(step))
        observation = {name: torch.from_numpy(part) for name, part in crowd.observation.items()}
        state = policy.init_state(2)
        action = policy.act(observation, state, uniform=luck).action.numpy()
        guess = guesser.act(observation, state, uniform=luck).action.numpy()
        for row, name in enumerate(names):
            is_known = bool(best[row, 0] >= 0)
            np.testing.assert_array_equal(action[row], (best if is_known else guess)[row])
            seen.add((name, is_known))
        crowd.step(action)
    policy.close()
    oracle.close()
    assert seen == {("Pendulum-v1", True), ("FrozenLake-v1", False), ("Blackjack-v1", True)}


@pytest.mark.parametrize("family", [BernoulliBandit(4, 40), MovingBandit(4, 40)])
def test_players_lose_what_they_lose_as_references(family: BernoulliBandit | MovingBandit) -> None:
    references = reference_plays(family, 2000, seed=1)
    for name, player in players(family).items():
        crowd = Crowd(Stream(NeverRepeating([family]), Length(1), seed=2), 120)
        actor = BanditPlayer(player, crowd.interface)
        endings = lived(Rollout(actor, crowd, memory_reset="task"), 40)
        mine = np.array([e.record.optimal_return - e.record.expected_return for e in endings])
        theirs = references[name].regret
        error = mine.std(ddof=1) / np.sqrt(120) + theirs.std(ddof=1) / np.sqrt(2000)
        assert abs(mine.mean() - theirs.mean()) < 4.5 * error, name


@pytest.mark.parametrize(("window", "discount"), [(None, 1.0), (None, 0.9), (5, 1.0)])
def test_players_count_what_a_slow_recount_counts(window: int | None, discount: float) -> None:
    crowd = Crowd(bandit_stream(pulls=8), 3)
    player = Player(lambda s, f, t, rng: rng.random(s.shape), discount, window)
    rollout = Rollout(BanditPlayer(player, crowd.interface), crowd, memory_reset="task")
    pulls: list[list[tuple[int, float]]] = [[] for _ in range(3)]
    for _ in range(15):
        lived(rollout, 1)
        seen = rollout.observation
        for row in range(3):
            pulls[row].append((seen["previous_action"][row], seen["previous_reward"][row]))
    lived(rollout, 1)  # the player counts a pull when it acts again
    for row in range(3):
        expected = np.zeros((2, 3))
        for age, (arm, reward) in enumerate(reversed(pulls[row])):
            if window is None or age < window:
                expected[int(reward), int(arm)] += discount**age
        counts = np.stack([rollout.state[name][row] for name in ("failures", "successes")])
        np.testing.assert_allclose(counts, expected, atol=1e-9)


def test_equal_luck_gives_equal_play_in_any_crowd() -> None:
    family = BernoulliBandit(3, 10)
    stream = Stream(NeverRepeating([family]), Length(1), seed=2)
    player = players(family)["thompson"]

    def play(num: int, first: int) -> list[Ending]:
        crowd = Crowd(stream, num, first_lifetime=first)
        return lived(Rollout(BanditPlayer(player, crowd.interface), crowd, "task"), 20)

    last = [e.record for e in play(4, 0) if e.record.lifetime == 3]
    assert repr(last) == repr([e.record for e in play(1, 3)])


def test_where_no_task_returns_its_own_memory_is_the_reset_twins(
    make_rollout: MakeRollout,
) -> None:
    twin = loud(make_rollout(memory_reset="task"))
    apart = loud(make_rollout(memory_reset="task"))
    treatment = Separated(apart.crowd.stream)
    assert repr(live(twin, 33)) == repr(live(apart, 33, treatment))


def test_a_task_that_returns_finds_its_own_memory_as_it_was_left() -> None:
    schedule = Independent([BernoulliBandit(3, 5)], num_tasks=2)
    stream = Stream(schedule, Length(1), seed=1, lifetime_segments=6)
    crowd = Crowd(stream, 2)
    rollout = loud(Rollout(make_agent(crowd.interface), crowd, "task"))
    treatment = Separated(stream)
    kept: dict[tuple[int, int], object] = {}
    revisits = 0
    for age in range(12):
        lifetimes = [row + 2 * (age // 6) for row in range(2)]
        keys = [(b, stream.segment(b, age % 6).task_index) for b in lifetimes]
        started = treatment_at_start(rollout, treatment)
        for row, key in enumerate(keys):
            fresh = rollout.agent.init_state(1)
            expected = kept.get(key, fresh[0])
            revisits += key in kept
            for name in fresh.keys(True, True):
                assert torch.equal(started[row][name], expected[name]), (age, row, name)  # type: ignore[index]
        rollout.live(4, SharedLuck(7), treatment)
        kept |= {key: rollout.state[row].clone() for row, key in enumerate(keys)}
    assert revisits >= 8


def treatment_at_start(rollout: Rollout, treatment: Separated):  # type: ignore[no-untyped-def]
    """The memories that the first step of a task goes out from; lives that step."""
    seen = []
    act = rollout.agent.act

    def watch(observation, state, reset, *rest):  # type: ignore[no-untyped-def]
        fresh = rollout.agent.init_state(len(state))
        starts = torch.zeros(len(state), dtype=torch.bool) if reset is None else reset
        seen.append([fresh[row] if starts[row] else state[row] for row in range(len(state))])
        return act(observation, state, reset, *rest)

    rollout.agent.act = watch  # type: ignore[method-assign, assignment]
    rollout.live(1, SharedLuck(7), treatment)
    rollout.agent.act = act  # type: ignore[method-assign]
    return seen[0]
