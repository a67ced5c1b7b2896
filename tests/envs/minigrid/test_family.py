"""MiniGrid tasks: what they are made of, how well they can be played, what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from hydra.utils import instantiate
from minigrid.envs.empty import EmptyEnv
from omegaconf import OmegaConf

from sojourn.envs import Crowd, Length, NeverRepeating, Reference, Stream
from sojourn.envs.minigrid import (
    MinigridFamily,
    MinigridTask,
    PermutedActions,
    optimal_return,
    plan,
)
from sojourn.envs.minigrid.reference import FLOOR_EPISODES

ROOM = "MiniGrid-Empty-Random-5x5-v0"
STREAMS = Path(__file__).resolve().parents[3] / "configs" / "stream"


def hidden_rules(**options: Any) -> MinigridFamily:
    return MinigridFamily(ROOM, {"max_steps": 40}, "permuted", 3, **options)


def task_of(family: MinigridFamily, seed: int = 0) -> MinigridTask:
    return family.draw(np.random.default_rng(seed))


def test_interface() -> None:
    interface = hidden_rules().interface
    assert interface.num_actions == 3
    assert interface.channels.keys() == {"grid", "direction"}
    assert interface.channels["grid"].shape == (7, 7, 3)
    assert MinigridFamily(ROOM).interface.num_actions == 7
    assert MinigridFamily("MiniGrid-Dynamic-Obstacles-6x6-v0").interface.num_actions == 3
    small = MinigridFamily(ROOM, {"agent_view_size": 5}, missions="tokens").interface
    assert small.channels["grid"].shape == (5, 5, 3)
    assert small.channels["mission"].kind == "tokens"


def test_permutations_are_uniform_and_come_from_the_generator() -> None:
    family = hidden_rules()
    rng = np.random.default_rng(0)
    counts = Counter(family.draw(rng).permutation for _ in range(3000))
    assert len(counts) == 6
    assert max(abs(count - 500) for count in counts.values()) < 5 * np.sqrt(500)
    assert task_of(family, 7).permutation == task_of(family, 7).permutation
    assert task_of(MinigridFamily(ROOM)).permutation == tuple(range(7))


def test_actions_mean_what_the_permutation_says() -> None:
    task = task_of(hidden_rules())
    env, plain = task.make_env(), task.make_env()
    assert isinstance(env, PermutedActions)
    for permutation in ((2, 0, 1), (1, 2, 0)):
        env.permutation = permutation
        assert env.permutation.tolist() == list(permutation)
        env.reset(seed=1)
        plain.reset(seed=1)
        for action in (0, 1, 2, 2, 0, 1, 1):
            one, reward, *flags = env.step(np.int64(action))
            other, plain_reward, *plain_flags = plain.step(permutation[action])
            np.testing.assert_array_equal(one["image"], other["image"])
            assert (reward, flags) == (plain_reward, plain_flags)


def test_tasks_of_a_family_share_an_environment() -> None:
    family = hidden_rules()
    one, other = task_of(family, 0), task_of(family, 1)
    assert one.permutation != other.permutation and one.env_key == other.env_key
    env = one.make_env()
    for task in (one, other, one):
        task.configure(env)
        assert isinstance(env, PermutedActions)
        assert tuple(env.permutation) == task.permutation
    different = [
        MinigridFamily(ROOM, {"max_steps": 41}, "permuted", 3),
        MinigridFamily(ROOM, {"max_steps": 40}, "native", 3),
        MinigridFamily(ROOM, {"max_steps": 40}, "permuted", 4),
        hidden_rules(instance="resampled"),
    ]
    keys = {one.env_key, *(task_of(f).env_key for f in different)}
    assert len(keys) == 1 + len(different)


def test_reference_of_the_small_room() -> None:
    reference = task_of(hidden_rules()).reference
    assert reference is not None and reference.kind == "planner"
    assert reference.ceiling == pytest.approx(0.923, abs=0.005)
    assert reference.floor == pytest.approx(0.30, abs=0.02)
    assert 0 < reference.ceiling_error < 0.005 and 0 < reference.floor_error < 0.01
    assert reference.reward_range == 1.0
    assert task_of(hidden_rules()).reference is reference, "measured once"
    plain = MinigridFamily(ROOM, {"max_steps": 40}, num_actions=3)
    named = task_of(plain).reference
    assert named is not None and named.informed is None and reference.informed is not None
    assert replace(reference, informed=None) == named, "only the informed care about names"


def test_floor_is_the_random_policy() -> None:
    family = MinigridFamily("MiniGrid-LavaGapS5-v0", {"max_steps": 60}, num_actions=3)
    reference = task_of(family).reference
    assert reference is not None
    env = task_of(family).make_env()
    rng = np.random.default_rng(1)
    returns = []
    for episode in range(2 * FLOOR_EPISODES):
        env.reset(seed=10_000 + episode)
        total, done = 0.0, False
        while not done:
            _, reward, terminated, truncated, _ = env.step(rng.integers(3))
            total, done = total + float(reward), terminated or truncated
        returns.append(total)
    error = np.hypot(np.std(returns) / np.sqrt(len(returns)), reference.floor_error)
    assert abs(np.mean(returns) - reference.floor) < 4.5 * error


def test_a_reference_can_be_given() -> None:
    task = task_of(MinigridFamily("MiniGrid-Playground-v0"))
    assert task.reference is None
    given = Reference(0.1, 0.9, "user", reward_range=1.0)
    task.reference = given
    assert task.reference is given


def test_too_few_actions_leave_nothing_to_gain() -> None:
    reference = task_of(MinigridFamily("MiniGrid-DoorKey-5x5-v0", num_actions=3)).reference
    assert reference is not None and (reference.floor, reference.ceiling) == (0.0, 0.0)


@pytest.mark.parametrize("instance", ["fixed", "resampled"])
def test_optimal_return_is_that_of_the_present_layout(instance: Any) -> None:
    task = task_of(MinigridFamily(ROOM, {"max_steps": 40}, num_actions=3, instance=instance))
    env = task.make_env()
    for seed in (3, 3, 4, None, None, 3, 5):
        env.reset(seed=seed)
        found = plan(env, range(3))
        assert found is not None
        assert task.optimal_return(env) == found.return_bounds[0] == found.return_bounds[1]


def test_unknown_optimum_is_nan() -> None:
    task = task_of(MinigridFamily("MiniGrid-Playground-v0"))
    env = task.make_env()
    env.reset(seed=0)
    assert np.isnan(task.optimal_return(env)) and task.reference is None


def test_missions_of_several_parts_have_a_budget_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sojourn.envs.minigrid.reference.SEVERAL_NODES", 0)
    for id, is_known in (("BabyAI-OpenTwoDoors-v0", False), ("BabyAI-OpenRedDoor-v0", True)):
        task = task_of(MinigridFamily(id, instance="resampled"))
        env = task.make_env()
        env.reset(seed=0)
        assert np.isfinite(task.optimal_return(env)) == is_known
        assert optimal_return(env) > 0.0


def test_wrappers_of_a_registration_make_the_optimum_unknown() -> None:
    gymnasium.register("Test-Empty-v0", EmptyEnv, max_episode_steps=10, kwargs={"size": 5})
    try:
        for instance in ("fixed", "resampled"):
            task = task_of(MinigridFamily("Test-Empty-v0", instance=instance))
            env = task.make_env()
            env.reset(seed=0)
            assert np.isnan(task.optimal_return(env)) and task.reference is None
    finally:
        del gymnasium.registry["Test-Empty-v0"]


@pytest.mark.parametrize("name", ["hidden_rules", "minigrid"])
def test_the_planner_plays_without_regret(name: str) -> None:
    stream = instantiate(OmegaConf.load(STREAMS / f"{name}.yaml"), seed=3)
    crowd = Crowd(stream, 2)
    games: list[Any] = [None, None]
    queues: list[list[int]] = [[], []]
    episodes = []
    for _ in range(300):
        for row, segment in enumerate(crowd.segments):
            if not queues[row]:
                task = segment.task
                assert isinstance(task, MinigridTask)
                games[row] = task.make_env()
                games[row].reset(seed=segment.seed)
                found = plan(games[row], range(task.env_key.num_actions))
                assert found is not None and found.actions is not None
                queues[row] = [task.permutation.index(action) for action in found.actions]
        step = crowd.step(np.array([queue.pop(0) for queue in queues]))
        episodes += step.episodes
    assert len({record.task_index for record in episodes}) >= 3
    assert all(record.total_return == pytest.approx(record.optimal_return) for record in episodes)


def test_babyai_says_nothing_but_its_mission(capsys: pytest.CaptureFixture[str]) -> None:
    family = MinigridFamily("BabyAI-GoToLocal-v0", missions="tokens")
    crowd = Crowd(Stream(NeverRepeating([family]), Length(1), 0), 8)
    for _ in range(70):
        crowd.step(np.full(8, 2))
    assert crowd.observation["mission"].any(axis=1).all()
    assert capsys.readouterr().out == ""


def test_lists_of_configuration_files_become_tuples() -> None:
    config = OmegaConf.create({"agent_start_pos": [2, 2], "size": 6, "agent_start_dir": 1})
    env = task_of(MinigridFamily("MiniGrid-Empty-5x5-v0", config)).make_env()
    env.reset(seed=0)
    base: Any = env.unwrapped
    assert tuple(base.agent_pos) == (2, 2) and base.width == 6


def test_ids_without_data_cannot_be_played(unplayable_id: str) -> None:
    with pytest.raises(ValueError, match="cannot be played"):
        MinigridFamily(unplayable_id)


Build = Callable[[], object]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: MinigridFamily("MiniGrid-Emty-5x5-v0"), "nearest: MiniGrid-Empty-5x5-v0"),
        (lambda: MinigridFamily("MiniGrid-Empty-5x5"), "nearest: MiniGrid-Empty-5x5-v0"),
        (lambda: MinigridFamily("CartPole-v1"), "expected a MiniGrid or BabyAI environment"),
        (lambda: MinigridFamily(ROOM, {"max_step": 40}), "takes no .max_step.; .*max_steps"),
        (lambda: MinigridFamily(ROOM, {"max_steps": 4.5}), "must be an integer"),
        (lambda: MinigridFamily(ROOM, {"size": 2}), "kwargs of"),
        (lambda: MinigridFamily(ROOM, num_actions=8), "num_actions: expected 1 to 7"),
        (lambda: MinigridFamily(ROOM, num_actions=0), "num_actions: expected 1 to 7"),
        (lambda: MinigridFamily(ROOM, None, "permute"), "nearest is 'permuted'"),  # type: ignore
        (lambda: hidden_rules(instance="fix"), "nearest is 'fixed'"),
        (lambda: hidden_rules(missions="token"), "nearest is 'tokens'"),
        (lambda: setattr(task_of(hidden_rules()).make_env(), "permutation", (0, 1)), "permutation"),
        (lambda: setattr(task_of(hidden_rules()).make_env(), "permutation", (0, 1, 1)), "got"),
    ],
)
def test_refusals(build: Build, message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        build()
    assert "\n" not in str(raised.value)
