"""A crowd on environments whose every observation is known in advance."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from sojourn.envs import (
    Crowd,
    CrowdStep,
    Family,
    Interface,
    Length,
    Lifetime,
    NeverRepeating,
    Recurring,
    Reference,
    Stream,
    Task,
    interface_of,
)


class Clock(gymnasium.Env[Any, Any]):
    """Shows 1, 2, 3, ...; ends after `length` steps; always gives the same array object back."""

    def __init__(self, length: float, ending: str, num_actions: int = 2) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)
        self.action_space = spaces.Discrete(num_actions)
        self.length, self.ending = length, ending
        self.shown = np.zeros(1, np.float32)
        self.noise = 0.0
        self.closed = False

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.shown[0] = 1 + self.noise
        self.noise *= 1.5  # with noise, no episode can be repeated
        return self.shown, {}

    def step(self, action: int) -> Any:
        self.shown[0] += 1
        done = self.shown[0] > self.length
        terminated, truncated = self.ending in ("terminated", "both"), self.ending != "terminated"
        return self.shown, int(action), bool(done and terminated), bool(done and truncated), {}

    def close(self) -> None:
        self.closed = True


class ClockTask(Task):
    def __init__(self, family: ClockFamily) -> None:
        self.family = family
        self.name = family.name
        self.reference = family.reference

    @property
    def env_key(self) -> object:
        return self.name

    def make_env(self) -> Clock:
        env = Clock(self.family.length, self.family.ending, self.family.num_actions)
        env.noise = self.family.noise
        self.family.made.append(env)
        return env


class ClockFamily(Family):
    def __init__(
        self,
        length: float,
        ending: str = "terminated",
        num_actions: int = 2,
        noise: float = 0.0,
        reference: Reference | None = None,
    ) -> None:
        self.name = f"clock-{length}-{ending}-{num_actions}"
        self.length, self.ending, self.num_actions = length, ending, num_actions
        self.noise, self.reference = noise, reference
        self.made: list[Clock] = []

    @property
    def interface(self) -> Interface:
        return interface_of(Clock(self.length, self.ending, self.num_actions))

    def draw(self, rng: np.random.Generator) -> Task:
        return ClockTask(self)


def crowd_of(*families: Family, length: Length | None = None, rows: int = 1, **rest: Any) -> Crowd:
    stream = Stream(Recurring(families), length or Length(1), seed=0, **rest)
    return Crowd(stream, rows)


def live(crowd: Crowd, num_steps: int, action: int = 1) -> list[CrowdStep]:
    actions = np.full(crowd.num_lifetimes, action)
    return [crowd.step(actions) for _ in range(num_steps)]


def test_first_observation_of_an_episode_is_never_lost() -> None:
    crowd = crowd_of(ClockFamily(4))
    shown = [crowd.observation["vector"][0, 0]]
    shown += [step.observation["vector"][0, 0] for step in live(crowd, 11)]
    assert shown == [1, 2, 3, 4] * 3


def test_final_observation_is_the_true_one_and_nothing_is_aliased() -> None:
    crowd = crowd_of(ClockFamily(4), ClockFamily(3, "truncated"))
    before = crowd.observation
    steps = live(crowd, 7)
    assert before["vector"][0, 0] == 1
    ends = [step for step in steps if step.final_observation is not None]
    assert [step.final_observation["vector"][0, 0] for step in ends] == [5, 4]  # type: ignore
    assert [step.observation["vector"][0, 0] for step in steps] == [2, 3, 4, 1, 2, 3, 1]
    final = ends[0].final_observation
    assert final is not None
    assert final["previous_action"][0] == 1 and final["previous_reward"][0] == 1
    assert not final["episode_start"][0] and ends[0].observation["episode_start"][0]


def test_same_real_transitions_as_environments_stepped_by_hand() -> None:
    families = ClockFamily(3), ClockFamily(5)
    steps = live(crowd_of(*families, rows=2, length=Length(2)), 20)
    for row in range(2):
        by_hand = []
        for clock in [Clock(3, "terminated"), Clock(5, "terminated")] * 2:
            for _ in range(2):
                clock.reset()
                done = False
                while not done:
                    shown, _, done, _, _ = clock.step(1)
                    by_hand.append((float(shown[0]), done))
        lived = [
            ((step.final_observation or step.observation)["vector"][row, 0], step.terminated[row])
            for step in steps
        ]
        assert lived == by_hand[:20]


@pytest.mark.parametrize("ending", ["terminated", "truncated", "both"])
def test_endings_are_passed_on_as_they_are(ending: str) -> None:
    last = live(crowd_of(ClockFamily(3, ending)), 3)[-1]
    assert last.terminated[0] == (ending != "truncated")
    assert last.truncated[0] == (ending != "terminated")
    assert last.episodes[0].status == ("truncated" if ending == "truncated" else "terminated")
    assert last.observation["episode_start"][0]


def test_a_segment_of_steps_cuts_the_running_episode() -> None:
    steps = live(crowd_of(ClockFamily(4), ClockFamily(np.inf), length=Length(6, "steps")), 12)
    records = [record for step in steps for record in step.episodes]
    facts = [
        (r.task[:9], r.status, r.segment, r.episode, r.start_step, r.num_steps) for r in records
    ]
    assert facts == [
        ("clock-4-t", "terminated", 0, 0, 0, 4),
        ("clock-4-t", "cut", 0, 1, 4, 2),
        ("clock-inf", "cut", 1, 0, 6, 6),
    ]
    assert [bool(step.task_end[0]) for step in steps] == ([False] * 5 + [True]) * 2
    assert steps[5].truncated[0] and not steps[5].terminated[0]


def test_an_episode_that_ends_with_its_segment_is_not_cut() -> None:
    steps = live(crowd_of(ClockFamily(3), length=Length(6, "steps")), 6)
    assert [r.status for step in steps for r in step.episodes] == ["terminated"] * 2


def test_lifetimes_end_and_the_next_ones_follow() -> None:
    crowd = crowd_of(ClockFamily(2), length=Length(2), rows=3, lifetime_segments=2)
    steps = live(crowd, 9)
    assert [bool(step.lifetime_end.all()) for step in steps] == [False] * 7 + [True, False]
    assert steps[7].observation["previous_action"].tolist() == [2, 2, 2]
    assert steps[7].observation["previous_reward"].tolist() == [0, 0, 0]
    assert [r.lifetime for r in crowd.running_episodes()] == [3, 4, 5]
    assert [r.start_step for r in crowd.running_episodes()] == [0, 0, 0]


def test_a_never_ending_episode_is_known_while_it_runs() -> None:
    crowd = crowd_of(ClockFamily(np.inf))
    live(crowd, 1000)
    (record,) = crowd.running_episodes()
    assert (record.num_steps, record.total_return, record.status) == (1000, 1000.0, "running")


def test_reward_scale_belongs_to_the_task_that_gave_the_reward() -> None:
    good = ClockFamily(2, reference=Reference(1.0, 5.0, "user"))
    refused = ClockFamily(3, reference=Reference(1.0, 1.0, "user"))
    steps = live(crowd_of(good, refused, ClockFamily(4)), 9)
    np.testing.assert_equal([s.reward_scale[0] for s in steps], [0.25] * 2 + [np.nan] * 7)
    records = [record for step in steps for record in step.episodes]
    assert (records[0].optimal_return, records[0].floor_return) == (5.0, 1.0)
    assert np.isnan([records[1].floor_return, records[2].floor_return]).all()


def test_tasks_with_fewer_actions_mask_the_others() -> None:
    crowd = crowd_of(ClockFamily(2, num_actions=7), ClockFamily(2, num_actions=3))
    assert crowd.observation["action_mask"].tolist() == [[True] * 7]
    live(crowd, 2)
    assert crowd.observation["action_mask"].tolist() == [[True] * 3 + [False] * 4]
    with pytest.raises(
        ValueError, match=r"row 0 plays 'clock-2-terminated-3', .* 3 actions; got 5"
    ):
        crowd.step(np.array([5]))
    for wrong in (np.array([-1]), np.array([7]), np.array([0, 0]), np.array(0)):
        with pytest.raises(ValueError, match="actions"):
            crowd.step(wrong)


@pytest.mark.parametrize("changed", [{"noise": 0.3}, {"ends": 3}])
def test_an_episode_that_cannot_be_replayed_starts_again(changed: dict[str, float]) -> None:
    crowd = crowd_of(ClockFamily(10), ClockFamily(3), rows=2)
    live(crowd, 4)
    family = ClockFamily(10, noise=changed.get("noise", 0.0))
    family.length = changed.get("ends", 10)
    other = crowd_of(family, ClockFamily(3), rows=2)
    with pytest.warns(UserWarning, match=r"2 of 2 running .*clock-10"):
        other.load_state_dict(crowd.state_dict())
    assert other.observation["episode_start"].all() and other.running_episodes() == []
    live(other, 1)
    assert [record.start_step for record in other.running_episodes()] == [4, 4]


def test_a_state_of_another_crowd_is_refused() -> None:
    state = crowd_of(ClockFamily(3), rows=2).state_dict()
    with pytest.raises(ValueError, match="expected seed 0 and 3 lifetimes, got seed 0 and 2"):
        crowd_of(ClockFamily(3), rows=3).load_state_dict(state)


def test_environments_are_shared_by_tasks_and_closed() -> None:
    family = ClockFamily(2)
    live(crowd := crowd_of(family, rows=2), 50)
    assert len(family.made) == 2
    crowd.close()
    assert all(env.closed for env in family.made)


def test_lifetime_is_a_valid_gymnasium_environment() -> None:
    stream = Stream(NeverRepeating([ClockFamily(3)]), Length(1), 0, lifetime_segments=2)
    check_env(Lifetime(stream), skip_render_check=True)
    lifetime = Lifetime(stream)
    assert [lifetime.reset()[1]["lifetime"] for _ in range(3)] == [0, 1, 2]
    assert lifetime.reset(seed=0)[1]["lifetime"] == 0
    last: Any = [lifetime.step(np.int64(1)) for _ in range(6)][-1]
    assert last[3] and last[0]["vector"][0] == 4 and last[4]["episode_record"].segment == 1
