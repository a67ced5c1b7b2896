"""Public bug reports about collection and spaces as test cases; each names its report.

Covered elsewhere: first and final observations (pytorch/rl#937, Gymnasium#1103) in test_crowd,
reward types (imitation#783) in test_adapter, mission encoding (Minigrid PR 520) in test_adapter,
unreadable observations and broken environments in test_faults.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from sojourn.envs import (
    Crowd,
    GymnasiumFamily,
    Length,
    NeverRepeating,
    Recurring,
    Stream,
    family_of,
    interface_of,
    random_actions,
    spec_of,
    task_stream,
)


class Counter(gymnasium.Env[Any, Any]):
    """Shows its own count; ends after `length` steps."""

    def __init__(self, length: int, start: int = 0) -> None:
        self.observation_space = spaces.Box(0, np.inf, (1,), np.float32)
        self.action_space = spaces.Discrete(2, start=start)
        self.length = length

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        assert action in self.action_space
        self.count += 1
        ended = self.count == self.length
        return np.array([self.count], np.float32), float(self.count), ended, False, {}


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


def test_a_reused_text_observation_stays_what_it_was() -> None:
    """pytorch/rl#2257: a reset of one row changed an observation that was already returned."""

    class Speaker(Counter):
        def __init__(self) -> None:
            super().__init__(2)
            self.observation_space = spaces.Text(1, charset="ABZ")

        def reset(self, **rest: Any) -> Any:
            super().reset(**rest)
            return "A", {}

        def step(self, action: Any) -> Any:
            return "BZ"[self.count % 2], *super().step(action)[1:]

    crowd = Crowd(task_stream([Speaker], 0), 2)
    first = crowd.step(np.zeros(2, np.int64))
    kept = first.observation["tokens"].copy()
    second = crowd.step(np.zeros(2, np.int64))
    assert (first.observation["tokens"] == kept).all()
    assert second.final_observation is not None
    assert (second.final_observation["tokens"] != second.observation["tokens"]).all()


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


@pytest.mark.parametrize("id", ["MiniGrid-DoorKey-5x5-v0", "BabyAI-GoTo-v0"])
def test_missions_need_no_wrapper(id: str) -> None:
    """Farama-Foundation/Minigrid PR 209: no tool knows MissionSpace."""
    crowd = Crowd(task_stream([{"id": id, "missions": "tokens"}], 0), 2)
    assert crowd.observation["mission"].shape == (2, 40) and crowd.observation["mission"].any()
    crowd.step(np.zeros(2, np.int64))


@pytest.mark.parametrize("sizes", [[5, 5], [2, 3], [7]])
def test_equal_choices_are_not_a_batch(sizes: list[int]) -> None:
    """pytorch/rl#3242: MultiDiscrete([5, 5]) was taken for a batch of environments."""

    class Levers(Counter):
        def __init__(self) -> None:
            super().__init__(4)
            self.action_space = spaces.MultiDiscrete(sizes)

        def step(self, action: Any) -> Any:
            assert action.shape == (len(sizes),) and action.dtype == np.int64
            return super().step(action)

    crowd = Crowd(task_stream([Levers], 0), 3)
    assert crowd.interface.choices == tuple(sizes)
    rng = np.random.default_rng(0)
    for _ in range(9):
        crowd.step(random_actions(crowd.interface, crowd.observation["action_mask"], rng))


def test_tuples_and_dictionaries_in_tuples() -> None:
    """facebookresearch/Pearl PR 130: Blackjack's Tuple."""
    assert set(interface_of(gymnasium.make("Blackjack-v1")).channels) == {"0", "1", "2"}


def test_an_environment_gets_values_of_its_own_range() -> None:
    """Discrete(2, start=1): torchrl 0.14.1 sends 0-based actions."""
    crowd = Crowd(task_stream([lambda: Counter(3, start=1)], 0), 1)
    for action in (0, 1, 0, 1):
        crowd.step(np.array([action]))  # the environment asserts


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_shapes_do_not_depend_on_the_number_of_rows(rows: int) -> None:
    """pytorch/rl PR 3698."""
    crowd = Crowd(task_stream(["Pendulum-v1"], 0), rows)
    step = crowd.step(np.zeros((rows, 2)))
    assert step.reward.shape == step.terminated.shape == (rows,)
    assert step.observation["vector"].shape == (rows, 3)


def test_tasks_with_other_actions_follow_each_other_and_return() -> None:
    """DLR-RM/rl-baselines3-zoo#375: Discrete(7) -> Discrete(3) -> Discrete(4) -> back; Box(2)."""

    def make(space: Any) -> Any:
        env = Counter(1)
        env.action_space = space
        return GymnasiumFamily(lambda: env)

    box = spaces.Box(-1, 1, (2,), np.float32)
    families = [make(space) for space in (*map(spaces.Discrete, (7, 3, 4)), box)]
    crowd = Crowd(Stream(Recurring(families), Length(1), 0), 1)
    rng, options = np.random.default_rng(0), []
    for _ in range(8):
        mask = crowd.observation["action_mask"]
        options.append((int(mask[0, :7].sum()), int(mask[0, 7:].sum())))
        crowd.step(random_actions(crowd.interface, mask, rng))
    assert options == [(7, 0), (3, 0), (4, 0), (1, 2)] * 2


def test_a_shape_that_changes_is_named_by_its_key() -> None:
    """pytorch/rl#2222: obs["b"] changes shape at step 5."""

    class Growing(Counter):
        def __init__(self) -> None:
            super().__init__(9)
            self.observation_space = spaces.Dict(a=spaces.Discrete(2), b=spaces.Box(0, 9, (3,)))

        def _look(self) -> Any:
            return {"a": 0, "b": np.zeros(4 if self.count == 5 else 3, np.float32)}

        def reset(self, **rest: Any) -> Any:
            super().reset(**rest)
            return self._look(), {}

        def step(self, action: Any) -> Any:
            _, *rest = super().step(action)
            return self._look(), *rest

    crowd = Crowd(task_stream([Growing], 0), 1)
    with pytest.raises(
        ValueError,
        match=r"Growing, row 0, step 5 .*observation\['b'\]: expected shape \(3,\), got \(4,\)",
    ):
        for _ in range(6):
            crowd.step(np.array([0]))
