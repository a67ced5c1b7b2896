"""Public bug reports about collection as test cases; each names its report.

Covered elsewhere: first and final observations (pytorch/rl#937, Gymnasium#1103) in test_crowd,
reward types (imitation#783) in test_adapter, unreadable observations and broken environments in
test_faults.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from sojourn.envs import (
    Crowd,
    GymnasiumFamily,
    Length,
    NeverRepeating,
    Stream,
    family_of,
    spec_of,
    task_stream,
)

from .counter import Counter


def vector_transitions(mode: AutoresetMode, num_steps: int) -> list[list[tuple[float, ...]]]:
    """Real transitions (seen, reward, next seen, ended) of both rows, dead rows left out."""
    env = SyncVectorEnv([lambda: Counter(3), lambda: Counter(5)], autoreset_mode=mode)
    seen, _ = env.reset(seed=0)
    real: list[list[tuple[float, ...]]] = [[], []]
    dead = np.zeros(2, bool)
    for _ in range(num_steps):
        following, reward, terminated, _, info = env.step(np.zeros(2, np.int64))
        for row in range(2):
            if not dead[row]:
                last = following[row]
                if mode is AutoresetMode.SAME_STEP and terminated[row]:
                    last = info["final_obs"][row]
                fact = (seen[row, 0], reward[row], last[0], terminated[row])
                real[row].append(tuple(map(float, fact)))
        dead = terminated.copy() if mode is AutoresetMode.NEXT_STEP else dead
        if mode is AutoresetMode.DISABLED and terminated.any():
            following, _ = env.reset(options={"reset_mask": terminated})
        seen = following.copy()
    env.close()
    return real


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_all_autoreset_modes_give_our_transitions(mode: AutoresetMode) -> None:
    """Farama-Foundation/Gymnasium#1103, vwxyzjn/cleanrl#475, sail-sg/envpool#257."""
    theirs = vector_transitions(mode, 40)
    for row, length in enumerate((3, 5)):
        family = GymnasiumFamily(lambda length=length: Counter(length))
        crowd = Crowd(Stream(NeverRepeating([family]), Length(1), 0), 1)
        ours = []
        for _ in range(20):
            seen = crowd.observation["vector"][0, 0]
            step = crowd.step(np.array([0]))
            last = step.final_observation or step.observation
            fact = (seen, step.reward[0], last["vector"][0, 0], step.terminated[0])
            ours.append(tuple(map(float, fact)))
        assert theirs[row][:20] == ours


def test_an_environment_that_may_not_be_stepped_past_its_limit() -> None:
    """Farama-Foundation/Metaworld#236: never truncates, raises at step 151."""

    class Stubborn(Counter):
        def step(self, action: Any) -> Any:
            if self.count == 150:
                raise ValueError("You must reset the env manually once truncate==True")
            return super().step(action)

    def live(limit: int | None) -> list[Any]:
        family = GymnasiumFamily(lambda: Stubborn(10**6), max_episode_steps=limit)
        crowd = Crowd(Stream(NeverRepeating([family]), Length(1), 0), 1)
        return [r for _ in range(151) for r in crowd.step(np.array([0])).episodes]

    assert [(r.status, r.num_steps) for r in live(150)] == [("truncated", 150)]
    with pytest.raises(RuntimeError, match=r"row 0, step 151 .*; .* set max_episode_steps"):
        live(None)


@pytest.mark.parametrize(("max_steps", "length"), [(10, 10), (1, 1), (0, 1)])
def test_minigrid_horizons_without_a_time_limit_in_the_spec(max_steps: int, length: int) -> None:
    """metadriverse/metadrive#679: `spec.max_episode_steps` is None."""
    family = family_of(spec_of({"id": "MiniGrid-Empty-5x5-v0", "kwargs": {"max_steps": max_steps}}))
    crowd = Crowd(Stream(NeverRepeating([family]), Length(1), 0), 1)
    records = [r for _ in range(10) for r in crowd.step(np.array([0])).episodes]
    assert records[0].num_steps == length and records[0].status == "truncated"
    with pytest.raises(ValueError, match="kwargs of MiniGrid-Empty-5x5-v0"):
        family_of(spec_of({"id": "MiniGrid-Empty-5x5-v0", "kwargs": {"max_steps": 1.5}}))


@pytest.mark.parametrize("seed", [0, 1, np.int64(3), 2**40])
def test_every_whole_number_is_a_seed(seed: Any) -> None:
    """minerllabs/minerl#201: 0 is a seed; Gymnasium refuses NumPy integers."""
    crowd = Crowd(task_stream(["CartPole-v1"], seed), 1)
    again = Crowd(task_stream(["CartPole-v1"], seed), 1)
    np.testing.assert_array_equal(crowd.observation["vector"], again.observation["vector"])


@pytest.mark.parametrize("seed", [-1, "3", 1.5])
def test_what_is_no_seed_is_refused(seed: Any) -> None:
    """ugr-sail/sinergym#512."""
    with pytest.raises(ValueError, match="seed: expected an integer >= 0"):
        task_stream(["CartPole-v1"], seed)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_shapes_do_not_depend_on_the_number_of_rows(rows: int) -> None:
    """pytorch/rl PR 3698."""
    crowd = Crowd(task_stream(["Pendulum-v1"], 0), rows)
    step = crowd.step(np.zeros((rows, 2)))
    assert step.reward.shape == step.terminated.shape == (rows,)
    assert step.observation["vector"].shape == (rows, 3)
