"""`MemoryModule` keeps the contract of TorchRL's recurrent modules, for every memory."""

import warnings
from collections.abc import Callable
from functools import partial

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
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
from sojourn.memory import AttentionMemory, FastWeightMemory, GrowingCache, MemoryCore, Stack

from .conftest import CORES, ROOT

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # torchrl's own, at import
    from torchrl.collectors import Collector

WIDTH = 6
SMALL = {
    "key_width": 4,
    "value_width": 4,
    "hidden_width": 5,
    "solver.chunk_size": 4,
    "solver.solver.chunk_size": 4,
    "cache.window": 5,
    "solver.window": 3,
    "long_term.solver.chunk_size": 4,
    "short_term.cache.window": 5,
}


def small_core(name: str, dtype: torch.dtype = torch.float64) -> MemoryCore:
    """The registered memory with small sizes and parameters away from their start."""
    config = OmegaConf.load(ROOT / "configs" / "memory" / f"{name}.yaml")
    for key, value in SMALL.items():
        if OmegaConf.select(config, key) is not None:
            OmegaConf.update(config, key, value)
    torch.manual_seed(0)
    core: MemoryCore = instantiate(config, width=WIDTH)
    core = core.to(dtype)
    with torch.no_grad():
        for parameter in core.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return core


FIXED = [name for name in CORES if not small_core(name).grows]


@pytest.fixture(params=FIXED)
def core(request: pytest.FixtureRequest) -> MemoryCore:
    """Every registered memory of a fixed size."""
    return small_core(request.param)


def module_of(core: MemoryCore) -> MemoryModule:
    return MemoryModule(core, commit_key="commit")


def tokens(batch: int, steps: int) -> TensorDict:
    parts = {
        "embed": torch.randn(batch, steps, WIDTH, dtype=torch.float64),
        "is_init": torch.rand(batch, steps, 1) < 0.25,
        "commit": torch.rand(batch, steps, 1) < 0.5,
    }
    return TensorDict(parts, batch_size=[batch, steps])


def act(
    module: MemoryModule, data: TensorDict, carried: TensorDict | None, zeroed: bool = True
) -> TensorDict:
    """Step through `data` `[B, T]` as an environment with a primer does: zeros at every start."""
    lived = []
    for t in range(data.shape[1]):
        step = data[:, t].clone()
        if carried is not None:
            start = step["is_init"] & zeroed
            kept = carried.apply(lambda leaf: torch.where(like(start, leaf), 0, leaf))  # noqa: B023
            step["memory"] = kept
        else:
            step["memory"] = blank(module, len(step))
        module(step)
        carried = step["next", "memory"]
        lived.append(step)
    return torch.stack(lived, dim=1)


def blank(module: MemoryModule, batch: int) -> TensorDict:
    spec = module.make_tensordict_primer().primers
    zeros: TensorDict = spec.expand(batch, *spec.shape).zero()["memory"]
    return zeros


def like(flags: Tensor, leaf: Tensor) -> Tensor:
    return flags.reshape(-1, *(1,) * (leaf.ndim - 1))


def in_sequence(module: MemoryModule, data: TensorDict) -> TensorDict:
    with set_recurrent_mode(True):
        out: TensorDict = module(data)
    return out


@pytest.mark.parametrize(("steps", "zeroed"), [(1, True), (2, True), (11, True), (11, False)])
def test_recurrent_mode_equals_single_steps(core: MemoryCore, steps: int, zeroed: bool) -> None:
    """Also where a start finds what an earlier trajectory has left (`zeroed` False)."""
    module = module_of(core)
    before = tokens(3, 3)
    before["is_init"][:, 0] = True
    carried = act(module, before, None)[:, -1]["next", "memory"]
    lived = act(module, tokens(3, steps), carried, zeroed)
    out = in_sequence(module, lived.clone())
    torch.testing.assert_close(out["features"], lived["features"], rtol=1e-10, atol=1e-10)
    last, expected = out[:, -1]["next", "memory"], lived[:, -1]["next", "memory"]
    for key, leaf in expected.items(True, True):
        torch.testing.assert_close(last[key], leaf, rtol=1e-10, atol=1e-10)


def test_a_start_is_the_reset_of_the_core(core: MemoryCore) -> None:
    module, data = module_of(core), tokens(2, 9)
    data["is_init"][:, 0] = True
    commit = data["commit"].squeeze(-1)
    init = data["is_init"].squeeze(-1)
    if core.anchored:  # a start at step 0 only: later ones also set the clock back
        data["is_init"][:, 1:] = False
    y, _ = core(data["embed"], core.init_state(2), data["is_init"].squeeze(-1), commit=commit)
    out = in_sequence(module, data.clone())
    torch.testing.assert_close(out["features"], y, rtol=1e-10, atol=1e-10)
    state = core.init_state(2)
    _, state = core(data["embed"], state)
    after, _ = core.step(data["embed"][:, 0], state, init[:, 0], commit=commit[:, 0])
    step = data[:, 0].clone()
    module.state.write(step, state, torch.tensor([9, 9]))
    step["memory"] = step["next", "memory"]
    torch.testing.assert_close(module(step)["features"], after, rtol=1e-10, atol=1e-10)


def test_gradients_are_those_of_single_steps(core: MemoryCore) -> None:
    module, data = module_of(core), tokens(2, 5)
    data["is_init"][:, 0] = True
    data["embed"].requires_grad_()
    inputs = [data["embed"], *core.parameters()]

    def gradients(features: Tensor) -> list[Tensor]:
        return list(torch.autograd.grad(features.square().sum(), inputs, allow_unused=True))

    by_step = gradients(act(module, data, None)["features"])
    at_once = gradients(in_sequence(module, data.clone(False))["features"])
    assert any(bool(g.abs().sum() > 0) for g in at_once if g is not None)
    for expected, actual in zip(by_step, at_once, strict=True):
        assert (expected is None) == (actual is None)
        if expected is not None:
            torch.testing.assert_close(actual, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_any_batch_shape_of_single_steps(shape: tuple[int, ...]) -> None:
    module = MemoryModule(small_core("titans"))
    x, init = torch.randn(*shape, WIDTH, dtype=torch.float64), torch.ones(*shape, 1).bool()
    out = module(TensorDict({"embed": x, "is_init": init}, batch_size=shape))
    assert out["features"].shape == x.shape
    flat = {"embed": x.reshape(-1, WIDTH), "is_init": init.reshape(-1)}
    one_axis = module(TensorDict(flat, batch_size=[len(flat["is_init"])]))
    torch.testing.assert_close(out["features"].reshape(-1, WIDTH), one_axis["features"])


def test_no_steps_and_more_batch_axes() -> None:
    module = module_of(small_core("gated_delta_net"))
    assert in_sequence(module, tokens(2, 0))["features"].shape == (2, 0, WIDTH)
    data = tokens(4, 5)
    data["is_init"][:, 0] = True
    flat = in_sequence(module, data.clone())["features"]
    square = in_sequence(module, data.clone().reshape(2, 2, 5))["features"]
    torch.testing.assert_close(square.reshape(4, 5, WIDTH), flat)


def test_a_state_that_is_not_finite_is_cleared_by_a_start() -> None:
    module, data = MemoryModule(small_core("gated_delta_net")), tokens(2, 4)
    lived = act(module, data, None)
    lived["memory"].apply_(lambda leaf: leaf.fill_(torch.nan) if leaf.is_floating_point() else leaf)
    lived["memory", "age"].zero_()
    lived["is_init"][:, 0] = True
    assert in_sequence(module, lived)["features"].isfinite().all()


# Inside TorchRL. A value network with the memory of the actor, so that states agree.


class Parts:
    """An actor and a critic for CartPole on one memory."""

    def __init__(self, name: str) -> None:
        core = Stack([small_core(name, torch.float32), small_core(name, torch.float32)])
        embed = Mod(nn.Linear(4, WIDTH), in_keys=["observation"], out_keys=["embed"])
        self.memory = MemoryModule(core)
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
        self, base: Callable[[], EnvBase], frames: int = 69, batches: int = 2
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
    [
        ("gated_delta_net", several),
        ("ttt_linear", cart_pole),
        ("lstm", cart_pole),
        ("none", several),
    ],
)
def test_ppo_on_collected_data(base: Callable[[], EnvBase], name: str) -> None:
    parts = Parts(name)
    data = parts.collect(base)
    expected = parts.advantages(data)
    for estimator in ({"shifted": True}, {"deactivate_vmap": True}):
        with set_recurrent_mode(True):
            GAE(gamma=0.9, lmbda=0.8, value_network=parts.value, **estimator)(data)
        torch.testing.assert_close(data["advantage"], expected, rtol=1e-4, atol=1e-5)
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


# What is refused, in one line that says what to do.


def test_missing_primer() -> None:
    module = MemoryModule(FastWeightMemory(WIDTH))
    step = TensorDict({"embed": torch.zeros(2, WIDTH), "is_init": torch.ones(2, 1).bool()}, [2])
    module(step)  # a start needs no state
    step["is_init"] = torch.zeros(2, 1).bool()
    with pytest.raises(KeyError, match="append get_env_transforms_from_module"):
        module(step.exclude("memory"))


def test_refusals() -> None:
    module = MemoryModule(FastWeightMemory(WIDTH))
    start = torch.ones(2, 1).bool()
    with pytest.raises(KeyError, match="InitTracker"):
        module(TensorDict({"embed": torch.zeros(2, WIDTH)}, [2]))
    with pytest.raises(KeyError, match=r"'embed' is missing.*is_init"):
        module(TensorDict({"is_init": start}, [2]))
    with pytest.raises(ValueError, match=r"put a Linear\(\.\.\., 6\) before"):
        module(TensorDict({"embed": torch.zeros(2, 9), "is_init": start}, [2]))
    other = TensorDict({"embed": torch.zeros(2, WIDTH), "is_init": start}, [2])
    MemoryModule(FastWeightMemory(WIDTH, key_width=3))(other)
    other["memory"] = other["next", "memory"]
    with pytest.raises(ValueError, match="state of another memory"):
        module(other)
    module(other.exclude("memory"))
    other["memory"] = other["next", "memory"].exclude(("state", "weights"))
    with pytest.raises(KeyError, match=r"weights.* is missing beside"):
        module(other)
    with pytest.raises(ValueError, match="got one step"):
        in_sequence(module, TensorDict({"embed": torch.zeros(WIDTH), "is_init": start[0]}, []))
    with pytest.raises(ValueError, match="SlidingWindow"):
        MemoryModule(AttentionMemory(WIDTH, cache=GrowingCache))
    with pytest.raises(ValueError, match="commit_key"):
        MemoryModule(small_core("memt"))


def test_the_primer_follows_the_module() -> None:
    module = MemoryModule(FastWeightMemory(WIDTH)).double()
    assert (
        module.make_tensordict_primer().primers["memory", "state", "weights"].dtype == torch.float64
    )


def test_value_estimators_outside_recurrent_mode_or_with_vmap() -> None:
    parts = Parts("gated_delta_net")
    data = parts.collect(several)
    estimator = partial(GAE, gamma=0.9, lmbda=0.8, value_network=parts.value)
    with pytest.raises(ValueError, match="set_recurrent_mode"):
        estimator(deactivate_vmap=True)(data.clone())
    with pytest.raises(RuntimeError, match="shifted=True"), set_recurrent_mode(True):
        estimator()(data.clone())
