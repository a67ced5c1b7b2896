"""`MemoryModule` inside TorchRL: collectors, GAE, PPO and Q-learning, replay, burn-in.

A value network has the memory of the actor, so that states agree.
"""

import warnings
from collections.abc import Callable
from functools import partial

import pytest
import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule as Mod
from tensordict.nn import TensorDictSequential as Seq
from torch import Tensor, nn
from torchrl.data import LazyTensorStorage, SliceSampler, TensorDictReplayBuffer
from torchrl.envs import BurnInTransform, EnvBase, GymEnv, SerialEnv, TransformedEnv
from torchrl.modules import (
    EGreedyModule,
    ProbabilisticActor,
    QValueModule,
    ValueOperator,
    set_recurrent_mode,
)
from torchrl.modules.utils import get_env_transforms_from_module
from torchrl.objectives import ClipPPOLoss, DQNLoss
from torchrl.objectives.value import GAE

from sojourn.agents import MemoryModule
from sojourn.memory import Stack

from .conftest import CORES, small_core
from .conftest import SMALL_WIDTH as WIDTH

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # torchrl's own, at import
    from torchrl.collectors import Collector


FIXED = [name for name in CORES if not small_core(name).grows]


class Parts:
    """An actor and a critic for CartPole on one memory."""

    def __init__(self, name: str) -> None:
        core = Stack([small_core(name, torch.float32), small_core(name, torch.float32)])
        embed = Mod(nn.Linear(4, WIDTH), in_keys=["observation"], out_keys=["embed"])
        self.memory = MemoryModule(core, commit_key="is_init" if core.reads_commits else None)
        self.core = core
        head = Mod(nn.Linear(WIDTH, 2), in_keys=["features"], out_keys=["logits"])
        self.actor = ProbabilisticActor(
            Seq(embed, self.memory, head),
            in_keys=["logits"],
            distribution_class=torch.distributions.Categorical,
            return_log_prob=True,
        )
        critic = ValueOperator(nn.Linear(WIDTH, 1), in_keys=["features"])
        self.value = Seq(embed, self.memory, critic)

    def collect(
        self, base: Callable[[], EnvBase], frames: int = 138, batches: int = 2
    ) -> TensorDict:
        """The last of several batches: its first states are not at a start."""
        env = TransformedEnv(base(), get_env_transforms_from_module(self.actor))
        env.set_seed(0)
        collector = Collector(
            env,
            self.actor,
            frames_per_batch=frames,
            total_frames=2 * frames,
            auto_register_policy_transforms=False,
        )
        _, data = collector
        collector.shutdown()
        assert data["is_init"][..., 1:, :].any() and not data["is_init"][..., 0, :].all()
        found: TensorDict = data
        return found

    def advantages(self, data: TensorDict) -> Tensor:
        """Advantages from values of single steps, where nothing can be mixed up."""
        data = data.clone()
        data.names = None
        following = data["next"].clone()
        following["is_init"] = torch.zeros_like(following["is_init"])
        with torch.no_grad():
            data["state_value"] = self.value(data.clone())["state_value"]
            data["next", "state_value"] = self.value(following)["state_value"]
        GAE(gamma=0.9, lmbda=0.8, value_network=None)(data)
        advantages: Tensor = data["advantage"]
        return advantages


def cart_pole() -> EnvBase:
    return GymEnv("CartPole-v1", categorical_action_encoding=True)


def several() -> EnvBase:
    return SerialEnv(3, cart_pole)


@pytest.mark.parametrize(
    ("name", "base"),
    [*((name, several) for name in FIXED), ("ttt_linear", cart_pole), ("lstm", cart_pole)],
)
def test_ppo_on_collected_data(base: Callable[[], EnvBase], name: str) -> None:
    parts = Parts(name)
    data = parts.collect(base)
    expected = parts.advantages(data)
    ways = [{"shifted": True}]
    if not parts.core.reads_commits:  # next observations alone do not say where a commit was
        ways.append({"deactivate_vmap": True})
    for way in ways:
        with set_recurrent_mode(True):
            GAE(gamma=0.9, lmbda=0.8, value_network=parts.value, **way)(data)
        torch.testing.assert_close(data["advantage"], expected, rtol=1e-3, atol=1e-3)
    loss = ClipPPOLoss(parts.actor, parts.value)
    losses = loss(data)
    assert losses["kl_approx"].abs().max() < 1e-5, "acting and training disagree"
    sum(value for name, value in losses.items() if name.startswith("loss")).backward()
    assert all(p.grad is not None for p in parts.core.parameters())
    for _ in range(2):  # epochs on the same data
        assert loss(data)["loss_objective"].isfinite()


class Learner:
    """Q-learning on CartPole, acting at random so that episodes are short."""

    def __init__(self, name: str) -> None:
        torch.manual_seed(0)
        self.memory = MemoryModule(small_core(name, torch.float32))
        embed = Mod(nn.Linear(4, WIDTH), in_keys=["observation"], out_keys=["embed"])
        head = Mod(nn.Linear(WIDTH, 2), in_keys=["features"], out_keys=["action_value"])
        self.env = TransformedEnv(cart_pole(), get_env_transforms_from_module(self.memory))
        self.env.set_seed(0)
        self.values = Seq(embed, self.memory, head)
        self.policy = Seq(self.values, QValueModule(spec=self.env.action_spec))
        self.loss = DQNLoss(self.policy, action_space=self.env.action_spec, delay_value=False)
        self.loss.make_value_estimator(gamma=1.0)
        collector = Collector(
            self.env,
            Seq(self.policy, EGreedyModule(self.env.action_spec, eps_init=1.0, eps_end=1.0)),
            frames_per_batch=80,
            total_frames=80,
            auto_register_policy_transforms=False,
        )
        self.data = next(iter(collector))
        collector.shutdown()


@pytest.mark.parametrize("name", ["gated_delta_net", "titans"])
def test_targets_of_q_learning_are_exact(name: str) -> None:
    learner = Learner(name)
    data = learner.data[20:]  # begins in the middle of an episode
    following = data["next"].clone()
    following["is_init"] = torch.zeros_like(following["is_init"])
    following.names = None
    with torch.no_grad():
        ahead = learner.policy(following)["chosen_action_value"]
    expected = data["next", "reward"] + ahead * ~data["next", "terminated"]
    with set_recurrent_mode(True), torch.no_grad():
        step = data.clone(False)
        learner.policy(step)  # as the loss does
        actual = learner.loss.value_estimator.value_estimate(
            step.clone(False), target_params=learner.loss.target_value_network_params
        )
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_slices_of_a_replay_buffer() -> None:
    learner = Learner("ttt_linear")
    sampler = SliceSampler(num_slices=4, traj_key=("collector", "traj_ids"), strict_length=False)
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(200), sampler=sampler, batch_size=24)
    buffer.extend(learner.data)
    for _ in range(3):
        sample = buffer.sample()
        with set_recurrent_mode(True), torch.no_grad():
            again = learner.values(sample.clone())["action_value"]
        torch.testing.assert_close(again, sample["action_value"], rtol=1e-4, atol=1e-5)
        learner.loss(sample)["loss"].backward()


def test_burn_in() -> None:
    learner = Learner("gated_delta_net")
    data = learner.data[20:40].unsqueeze(0)
    stale = data.clone()
    stale["memory"][:, 8:] = stale["memory"][:, 8:].apply(torch.zeros_like)
    with set_recurrent_mode(True), torch.no_grad():
        burnt = BurnInTransform([learner.values], burn_in=8)(stale)
        assert burnt.shape == (1, 12)
        again = learner.values(burnt)["action_value"]
    torch.testing.assert_close(again, data[:, 8:]["action_value"], rtol=1e-4, atol=1e-5)


def test_value_estimators_outside_recurrent_mode_or_with_vmap() -> None:
    parts = Parts("gated_delta_net")
    data = parts.collect(several)
    estimator = partial(GAE, gamma=0.9, lmbda=0.8, value_network=parts.value)
    with pytest.raises(ValueError, match="set_recurrent_mode"):
        estimator(deactivate_vmap=True)(data.clone())
    with pytest.raises(RuntimeError, match="shifted=True"), set_recurrent_mode(True):
        estimator()(data.clone())
