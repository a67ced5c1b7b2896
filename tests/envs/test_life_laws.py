"""What a life shows and what it counts, for every stream there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sojourn.envs import (
    Crowd,
    CrowdStep,
    EpisodeRecord,
    FiniteTask,
    Length,
    Lifetime,
    Oracle,
    Reference,
    Stream,
    Task,
    pooled_regret,
    reference_gap,
)
from sojourn.envs.gymnasium_family import GymnasiumTask

Build = Callable[..., Stream]
Live = Callable[..., list[tuple[np.ndarray, CrowdStep]]]


def test_inputs_tell_what_the_agent_did_and_nothing_else(build: Build, live: Live) -> None:
    """The inputs follow from actions, rewards and episode ends alone: no switch can be read off."""
    stream = build(seed=1, announce="hidden")
    crowd = Crowd(stream, 3)
    first = crowd.observation
    num_actions = stream.interface.num_actions
    assert (first["previous_action"] == num_actions).all() and first["episode_start"].all()
    for actions, step in live(crowd, 60):
        seen, blank = step.observation, step.lifetime_end
        assert set(seen) == set(stream.interface.inputs) | set(stream.interface.channels)
        parts = actions.reshape(len(actions), -1)
        expected = np.where(blank, num_actions, parts[:, 0])
        np.testing.assert_array_equal(seen["previous_action"], expected)
        if parts.shape[1] > 1:
            rest = np.where(blank[:, None], 0, parts[:, 1:])
            np.testing.assert_array_equal(seen["previous_parts"], rest)
        np.testing.assert_array_equal(seen["previous_reward"], np.where(blank, 0, step.reward))
        np.testing.assert_array_equal(seen["episode_start"], step.terminated | step.truncated)
        assert not seen["task_start"].any()


def test_announced_switches_are_told_once(build: Build, live: Live) -> None:
    crowd = Crowd(build(seed=1, announce="announced"), 2)
    assert crowd.observation["task_start"].all()
    for _, step in live(crowd, 40):
        np.testing.assert_array_equal(step.observation["task_start"], step.task_end)


def test_every_step_is_real_and_counted(build: Build, live: Live) -> None:
    crowd = Crowd(build(seed=8), 3)
    lived = live(crowd, 70)
    records = [record for _, step in lived for record in step.episodes]
    running = crowd.running_episodes()
    assert sum(record.num_steps for record in records + running) == 3 * 70
    total = sum(step.reward.sum(dtype=np.float64) for _, step in lived)
    assert total == pytest.approx(sum(record.total_return for record in records + running))
    assert {record.status for record in running} <= {"running"}
    for _, step in lived:
        ended = step.terminated | step.truncated
        assert len(step.episodes) == ended.sum()
        assert (step.final_observation is not None) == ended.any()
        assert (step.task_end <= ended).all() and (step.lifetime_end <= step.task_end).all()


def references(stream: Stream) -> dict[str, Reference]:
    """The references of the stream's first tasks, by name; every task has a valid one."""
    tasks = [stream.segment(0, k).task for k in range(2 * len(stream.schedule.families))]
    found = {task.name: task.reference for task in tasks}
    known = {name: r for name, r in found.items() if r is not None and reference_gap(r) > 0}
    assert known.keys() == found.keys()
    return known


def test_random_player_has_regret_one(build: Build, live: Live) -> None:
    stream = build(seed=9)
    known = references(stream)
    if stream.length.unit == "steps":  # the episodes that it does not cut are the short ones
        stream = Stream(stream.schedule, Length(1), seed=9)
    episodes = [record for _, step in live(Crowd(stream, 16), 500) for record in step.episodes]
    whole = [record for record in episodes if record.status in ("terminated", "truncated")]
    played = {record.task for record in whole} & known.keys()
    assert played
    for name in played:
        reference = known[name]
        own = [record for record in whole if record.task == name]
        best, got, worst = np.array(
            [(r.optimal_return, r.total_return, r.floor_return) for r in own]
        ).T
        gap = (best - worst).mean()
        # A few episodes may hold none of the rare successes: the second term allows for one more.
        noise = np.hypot((worst - got).std() / np.sqrt(len(own)), reference.reward_range / len(own))
        error = np.hypot(noise, reference.floor_error) / gap
        assert abs(pooled_regret(best, got, worst) - 1.0) <= 4.5 * error, name


def test_oracle_player_has_no_regret(build: Build) -> None:
    """Exactly none where the best return of an instance is known, else none within 4.5 s.e."""
    stream = build(seed=10)
    crowd, oracle = Crowd(stream, 3), Oracle(stream, 3)
    tasks: dict[str, Task] = {}
    records: list[EpisodeRecord] = []
    for step in range(500):
        if step > 210 and len(records) > 2:
            break
        at = crowd.state_dict()["counters"]
        tasks |= {segment.task.name: segment.task for segment in crowd.segments}
        starts = np.equal(at["episode_step"], 0)
        actions = oracle.actions(at["lifetime"], at["segment"], at["episode"], starts)
        assert (actions.reshape(3, -1)[:, 0] >= 0).all(), f"unknown: {crowd.task_names}"
        records += crowd.step(actions).episodes
    oracle.close()
    complete = [record for record in records if record.status in ("terminated", "truncated")]
    assert complete or stream.length.unit == "steps"
    for name, task in tasks.items():
        assert task.reference is not None
        lost = np.array([lost_return(record) for record in complete if record.task == name])
        chance = isinstance(task, FiniteTask) and not task.model.is_deterministic
        if not chance and not isinstance(task, GymnasiumTask):
            assert (np.abs(lost) < 1e-5).all()  # relative: rewards are float32
        elif len(lost) > 1:
            error = lost.std(ddof=1) / np.sqrt(len(lost))
            doubt = task.reference.ceiling_error / max(1.0, abs(task.reference.ceiling))
            assert abs(lost.mean()) <= 4.5 * np.hypot(error, doubt)


def lost_return(record: EpisodeRecord) -> float:
    """What an episode earned less than the best, as a share of what is at stake, at least 1."""
    known = np.isfinite(record.expected_return)
    achieved = record.expected_return if known else record.total_return
    return (record.optimal_return - achieved) / max(1.0, abs(record.optimal_return))


def as_lifetime_action(stream: Stream, action: Any) -> Any:
    """What a lifetime's action space has for a row of a crowd's actions."""
    choices = len(stream.interface.choices)
    if stream.interface.num_parts == 1:
        return action
    return {"choices": action[:choices].astype(np.int64), "reals": action[choices:]}


def test_lifetime_is_the_crowd_of_one(build: Build, live: Live) -> None:
    stream = build(seed=7)
    lifetime, crowd = Lifetime(stream, index=1), Crowd(stream, 1, first_lifetime=1)
    observation, _ = lifetime.reset()
    assert observation in lifetime.observation_space
    for actions, step in live(crowd, 25):
        played = as_lifetime_action(stream, actions[0])
        assert lifetime.action_space.contains(played)
        observation, reward, terminated, truncated, info = lifetime.step(played)
        assert observation in lifetime.observation_space
        assert reward == step.reward[0] and not terminated and truncated == step.lifetime_end[0]
        assert info["task_end"] == step.task_end[0]
        if truncated:
            break
