"""`LifetimeEnv` is a TorchRL environment, and shows exactly what a crowd lives."""

import warnings

import numpy as np
import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from tensordict import TensorDict
from tensordict.nn import TensorDictModule as Mod
from tensordict.nn import TensorDictSequential as Seq
from torch import Tensor, nn
from torchrl.envs import SerialEnv, StepCounter, TransformedEnv, check_env_specs
from torchrl.modules import MaskedCategorical, ProbabilisticActor, set_recurrent_mode
from torchrl.modules.utils import get_env_transforms_from_module

from sojourn.agents import LifetimeEnv, MemoryModule
from sojourn.envs import (
    BernoulliBandit,
    Crowd,
    EpisodeRecord,
    Length,
    NeverRepeating,
    Stream,
    task_stream,
)
from sojourn.memory import FastWeightMemory, MemoryCore

from .conftest import ROOT, bandit_stream, make_core

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # torchrl's own, at import
    from torchrl.collectors import Collector

WIDTH = 8
SLOW = {"continual_dreamer", "held_out_rules", "m21_condensed", "m21_dispersed", "memory_ladder"}
SLOW |= {"two_goals", "xland_rules", "zoo"}  # many grids to plan in
SHIPPED = sorted(path.stem for path in (ROOT / "configs" / "stream").glob("*.yaml"))


def shipped(name: str) -> Stream:
    path = ROOT / "configs" / "stream" / f"{name}.yaml"
    stream: Stream = instantiate(OmegaConf.load(path), seed=0)
    return stream


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in SHIPPED]
)
def test_every_stream_passes_the_check_of_torchrl(name: str) -> None:
    env = LifetimeEnv(shipped(name), 2)
    check_env_specs(env)
    env.close()


def several_parts() -> Stream:
    return task_stream(
        ["CartPole-v1", {"id": "Pendulum-v1", "max_episode_steps": 7}], 0, length=Length(1)
    )


@pytest.mark.parametrize("stream", [lambda: bandit_stream(lifetime_segments=2), several_parts])
def test_the_life_is_that_of_a_crowd(stream: object) -> None:
    build: Stream = stream()  # type: ignore[operator]
    records: list[EpisodeRecord] = []
    env = LifetimeEnv(build, 3, first_lifetime=4, on_episode=records.append)
    crowd = Crowd(build, 3, first_lifetime=4)
    env.set_seed(4)
    step = env.reset()
    lived = []
    for _ in range(45):
        for name, array in crowd.observation.items():
            torch.testing.assert_close(step["observation", name], torch.from_numpy(array))
        env.rand_action(step)
        outcome = crowd.step(env._actions.read(step))
        lived += outcome.episodes
        done, step = env.step_and_maybe_reset(step)
        following = done["next"]
        for name, array in {
            "reward": outcome.reward,
            "truncated": outcome.lifetime_end,
            "done": outcome.lifetime_end,
            "terminated": np.zeros(3, bool),
            "episode_terminated": outcome.terminated,
            "episode_truncated": outcome.truncated,
            "episode_done": outcome.terminated | outcome.truncated,
            "task_end": outcome.task_end,
        }.items():
            torch.testing.assert_close(following[name].squeeze(-1), torch.from_numpy(array))
        for row in np.flatnonzero(outcome.lifetime_end):
            final = outcome.final_observation
            assert final is not None
            for name, array in final.items():
                seen = following["observation", name][row]
                torch.testing.assert_close(seen, torch.as_tensor(array[row]))
    assert str(records) == str(lived) and lived


def test_resets_begin_lifetimes() -> None:
    env = LifetimeEnv(bandit_stream(lifetime_segments=3), 2, first_lifetime=10)

    def lifetimes() -> list[int]:
        found: list[int] = env.crowd.state_dict()["counters"]["lifetime"].tolist()
        return found

    env.reset()
    env.reset()
    assert lifetimes() == [10, 11]  # nothing was lived yet
    env.rand_step(env.reset())
    env.reset()
    assert lifetimes() == [12, 13]
    env.set_seed(7)
    env.reset()
    assert lifetimes() == [7, 8]
    env.rand_step(env.reset())
    mask = TensorDict({"_reset": torch.tensor([[False], [True]])}, batch_size=[2])
    with pytest.raises(RuntimeError, match=r"row 1 is in the middle.*or all rows"):
        env.reset(mask)
    env.rollout(10**3)  # until a lifetime ends
    with pytest.raises(ValueError, match="num_lifetimes"):
        LifetimeEnv(bandit_stream(), 0)


def test_action_specs() -> None:
    def spec(*tasks: object) -> object:
        return LifetimeEnv(task_stream(list(tasks), 0), 2).full_action_spec["action"]

    assert spec("CartPole-v1").n == 2  # type: ignore[attr-defined]
    assert spec("Pendulum-v1").shape == (2, 1)  # type: ignore[attr-defined]
    both = spec("CartPole-v1", "Pendulum-v1")
    assert set(both.keys()) == {"choices", "reals"}  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="which has"):
        env = LifetimeEnv(Stream(NeverRepeating([BernoulliBandit(2, 5)]), Length(1), 0), 1)
        env.step(env.reset().set("action", torch.tensor([2])))


class Tokens(nn.Module):
    """Of what a bandit shows, what was done and got."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(5, WIDTH)

    def forward(self, action: Tensor, reward: Tensor) -> Tensor:
        one_hot = nn.functional.one_hot(action, 4).float()
        features: Tensor = self.mix(torch.cat([one_hot, reward.unsqueeze(-1)], -1))
        return features


@pytest.mark.parametrize("core", ["memt", "titans", "gated_delta_net"])
def test_a_collector_acts_as_training_recomputes(core: str) -> None:
    made: MemoryCore = make_core(core, WIDTH)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    memory = MemoryModule(made, commit_key=("observation", "episode_start"))
    inputs = [("observation", "previous_action"), ("observation", "previous_reward")]
    policy = ProbabilisticActor(
        Seq(
            Mod(Tokens(), in_keys=inputs, out_keys=["embed"]),
            memory,
            Mod(nn.Linear(WIDTH, 3), in_keys=["features"], out_keys=["logits"]),
        ),
        in_keys={"logits": "logits", "mask": ("observation", "action_mask")},
        distribution_class=MaskedCategorical,
        return_log_prob=True,
    )
    env = LifetimeEnv(bandit_stream(lifetime_segments=2), 4)
    collector = Collector(
        TransformedEnv(env, get_env_transforms_from_module(policy)),
        policy,
        frames_per_batch=4 * 30,
        total_frames=2 * 4 * 30,
        auto_register_policy_transforms=False,
    )
    _, data = collector
    collector.shutdown()
    assert (
        data.shape == (4, 30)
        and data["next", "episode_done"].sum() > data["next", "done"].sum() > 0
    )
    assert not data["is_init"][:, 0].all()
    with set_recurrent_mode(True), torch.no_grad():
        again = policy.get_dist(data.clone()).log_prob(data["action"])
    torch.testing.assert_close(again, data["action_log_prob"], rtol=1e-4, atol=1e-5)


def test_memory_survives_episodes() -> None:
    env = LifetimeEnv(bandit_stream(), 2)
    memory = MemoryModule(FastWeightMemory(WIDTH))
    transformed = TransformedEnv(env, get_env_transforms_from_module(memory))

    def policy(step: TensorDict) -> TensorDict:
        step["embed"] = torch.ones(2, WIDTH)
        return env.rand_action(memory(step))

    lived = transformed.rollout(23, policy)
    assert lived["next", "episode_done"].sum() == 8
    assert lived["next", "memory", "age"][:, -1].tolist() == [[23], [23]]


def test_lifetimes_cut_by_a_step_counter() -> None:
    env = TransformedEnv(LifetimeEnv(bandit_stream(), 2), StepCounter(max_steps=7))
    lived = env.rollout(20, break_when_any_done=False)
    assert lived["next", "done"].squeeze(-1).nonzero()[:, 1].tolist() == [6, 13, 6, 13]
    assert env.crowd.state_dict()["counters"]["lifetime"].tolist() == [4, 5]


def test_lifetime_envs_side_by_side() -> None:
    env = SerialEnv(2, lambda: LifetimeEnv(bandit_stream(lifetime_segments=1), 3))
    env.set_seed(0)
    check_env_specs(env)
    assert env.rollout(25, break_when_any_done=False).shape == (2, 3, 25)
