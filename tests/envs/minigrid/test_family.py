"""MiniGrid tasks: what they are made of and show, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from omegaconf import OmegaConf

from sojourn.envs import Crowd, Length, NeverRepeating, Stream
from sojourn.envs.minigrid import (
    MinigridFamily,
    PermutedActions,
)

from .small_room import ROOM, hidden_rules, task_of


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
