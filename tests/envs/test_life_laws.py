"""What a life shows and what it counts, for every stream there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sojourn.envs import (
    INPUTS,
    BanditTask,
    Crowd,
    CrowdStep,
    EpisodeRecord,
    Lifetime,
    Reference,
    Stream,
    Task,
    normalised_regret,
    pooled_regret,
    reference_gap,
)
from sojourn.envs.minigrid import MinigridTask, plan

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
        assert set(seen) == set(INPUTS) | set(stream.interface.channels)
        expected = np.where(blank, num_actions, actions)
        np.testing.assert_array_equal(seen["previous_action"], expected)
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
    """Valid references of the stream's first tasks, by name."""
    tasks = [stream.segment(0, k).task for k in range(2 * len(stream.schedule.families))]
    known = {task.name: task.reference for task in tasks}
    return {name: r for name, r in known.items() if r is not None and reference_gap(r) > 0}


def test_random_player_has_regret_one(build: Build, live: Live) -> None:
    stream = build(seed=9)
    known = references(stream)
    if not known:
        pytest.skip("no family declares a reference")
    episodes = [record for _, step in live(Crowd(stream, 16), 500) for record in step.episodes]
    for name, reference in known.items():
        own = [r for r in episodes if r.task == name and r.status in ("terminated", "truncated")]
        best, got, worst = np.array(
            [(r.optimal_return, r.total_return, r.floor_return) for r in own]
        ).T
        gap = (best - worst).mean()
        noise = (worst - got).std() / np.sqrt(len(own))
        error = np.hypot(noise, reference.floor_error) / gap
        assert abs(pooled_regret(best, got, worst) - 1.0) <= 4.5 * error, name


def oracle_actions(task: Task, env: Any) -> list[int] | None:
    """The best actions of the episode that `env` just began; None where nobody knows them."""
    if isinstance(task, BanditTask):
        before, after = int(task.before.argmax()), int(task.after.argmax())
        return [before] * task.change + [after] * (task.num_pulls - task.change)
    if isinstance(task, MinigridTask):
        found = plan(env, range(len(task.permutation)))
        if found is not None and found.actions is not None:
            return [task.permutation.index(native) for native in found.actions]
    return None


def test_oracle_player_has_no_regret(build: Build) -> None:
    crowd = Crowd(build(seed=10, backend="gymnasium"), 3)
    rows: Any = crowd._simulator
    plans: list[list[int]] = [[], [], []]
    records: list[EpisodeRecord] = []
    for _ in range(210):
        for row in np.flatnonzero(crowd.observation["episode_start"]):
            found = oracle_actions(crowd.segments[row].task, rows._playing[row].env)
            if found is None:
                pytest.skip("no oracle player is known here")
            plans[row] = found
        records += crowd.step(np.array([actions.pop(0) for actions in plans])).episodes
    complete = [record for record in records if record.status == "terminated"]
    for record in complete:
        known = np.isfinite(record.expected_return)
        achieved = record.expected_return if known else record.total_return
        regret = normalised_regret(record.optimal_return, achieved, record.floor_return)
        assert abs(regret) < 1e-5  # rewards are float32
    assert complete


def test_lifetime_is_the_crowd_of_one(build: Build, live: Live) -> None:
    stream = build(seed=7)
    lifetime, crowd = Lifetime(stream, index=1), Crowd(stream, 1, first_lifetime=1)
    observation, _ = lifetime.reset()
    assert observation in lifetime.observation_space
    for actions, step in live(crowd, 25):
        observation, reward, terminated, truncated, info = lifetime.step(actions[0])
        assert observation in lifetime.observation_space
        assert reward == step.reward[0] and not terminated and truncated == step.lifetime_end[0]
        assert info["task_end"] == step.task_end[0]
        if truncated:
            break
