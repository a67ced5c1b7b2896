"""Policies over several parts: densities that integrate to one, exact entropies, shared luck."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from sojourn.agents import Actions, LifetimeReturns, MetaTrainer, PPOLoss, Rollout, actions_of
from sojourn.agents.actions import LARGEST_REAL, bounded_log_std, squash
from sojourn.envs import Crowd, Interface, Length, Stream, task_stream

from .conftest import make_agent

BRANCHED = Interface({}, 5, (5,))
REAL = Interface({}, 1, (), 2)
MIXED = Interface({}, 3, (2,), 2)
FULL = {"several choices": BRANCHED, "reals": REAL, "both": MIXED}


def policy(
    interface: Interface, batch: int = 1, mask: Tensor | None = None
) -> tuple[Actions, Tensor]:
    torch.manual_seed(0)
    actions = actions_of(interface)
    raw = torch.randn(batch, actions.num_outputs, dtype=torch.float64)
    if mask is None:
        mask = torch.ones(batch, interface.mask_width, dtype=torch.bool)
    return actions, actions.mask(raw, mask)


@pytest.mark.parametrize("name", FULL)
def test_sampled_actions_follow_their_density(name: str) -> None:
    """The mean of -log p over samples is the entropy, within 4.5 standard errors."""
    actions, outputs = policy(FULL[name])
    torch.manual_seed(1)
    many = outputs.expand(40_000, -1)
    sampled = actions.sample(many, torch.rand(40_000, *actions.luck_shape))
    surprise = -actions.log_prob(many, sampled)
    error = 4.5 * surprise.std() / math.sqrt(len(surprise))
    entropy = actions.distribution(outputs).entropy()
    assert abs(surprise.mean() - entropy).item() < error


def test_the_density_of_a_real_integrates_to_one() -> None:
    actions, outputs = policy(Interface({}, 1, (), 1))
    grid = torch.linspace(-1, 1, 20_001, dtype=torch.float64)[1:-1]
    points = torch.stack([torch.zeros_like(grid), grid], -1)
    density = actions.log_prob(outputs.expand(len(grid), -1), points).exp()
    assert torch.trapezoid(density, grid).item() == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("mean", [0.0, 0.7, -2.0])
@pytest.mark.parametrize("log_std", [-3.0, -0.5, 0.4])
def test_the_entropy_of_a_real_is_exact(mean: float, log_std: float) -> None:
    actions = actions_of(Interface({}, 1, (), 1))
    outputs = torch.tensor([[0.0, mean, log_std]], dtype=torch.float64)
    x = torch.linspace(
        mean - 12 * math.exp(log_std), mean + 12 * math.exp(log_std), 40_001
    ).double()
    density = torch.distributions.Normal(mean, math.exp(log_std)).log_prob(x)
    stretch = 2.0 * (math.log(2.0) - x - torch.nn.functional.softplus(-2.0 * x))
    slow = -torch.trapezoid(density.exp() * (density - stretch), x)
    assert actions.distribution(outputs).entropy().item() == pytest.approx(slow.item(), abs=2e-3)


def test_two_equal_choices_are_two_choices() -> None:
    actions, outputs = policy(BRANCHED, 7)
    first, second = outputs.split(5, -1)
    action = torch.tensor([[4.0, 1.0]]).expand(7, 2)
    slow = torch.log_softmax(first, -1)[:, 4] + torch.log_softmax(second, -1)[:, 1]
    torch.testing.assert_close(actions.log_prob(outputs, action), slow)
    assert actions.sample(outputs, torch.rand(7, 2)).shape == (7, 2)
    assert actions_of(Interface({}, 7)).luck_shape == ()


def test_parts_that_a_task_lacks_are_silent() -> None:
    mask = torch.tensor([[True, True, False, True, False, True, False]])
    actions, outputs = policy(MIXED, 1, mask)
    outputs = outputs.requires_grad_()
    uniform = torch.rand(500, *actions.luck_shape)
    sampled = actions.sample(outputs.expand(500, -1), uniform)
    assert (sampled[:, 0] < 2).all() and (sampled[:, 1] == 0).all() and (sampled[:, 3] == 0).all()
    own = actions_of(Interface({}, 2, (), 1))
    alone = outputs[:, [0, 1, 5, 7]]
    torch.testing.assert_close(
        actions.log_prob(outputs.expand(500, -1), sampled),
        own.log_prob(alone.expand(500, -1), sampled[:, [0, 2]]),
    )
    entropy = actions.distribution(outputs).entropy()
    torch.testing.assert_close(entropy, own.distribution(alone).entropy())
    (entropy.sum() + actions.log_prob(outputs.expand(500, -1), sampled).sum()).backward()
    assert outputs.grad is not None and torch.isfinite(outputs.grad).all()
    assert not outputs.grad[:, [2, 3, 4, 6, 8]].any()


def test_extreme_luck_and_extreme_policies_stay_finite() -> None:
    actions = actions_of(REAL)
    for mean in (-50.0, 0.0, 50.0):
        outputs = torch.tensor([[0.0, mean, mean, -4.0, 0.5]], requires_grad=True)
        for luck in (0.0, 0.5, 1.0 - 2**-24):
            action = actions.sample(outputs, torch.full((1, 3), luck)).detach()
            assert (action.abs() <= LARGEST_REAL).all()
            log_prob = actions.log_prob(outputs, action)
            (log_prob + actions.distribution(outputs).entropy()).sum().backward()
            assert torch.isfinite(log_prob).all() and torch.isfinite(outputs.grad).all()  # type: ignore[arg-type]


def test_more_luck_never_lowers_a_real_and_the_mode_is_the_middle() -> None:
    actions, outputs = policy(REAL)
    luck = torch.linspace(0, 1 - 1e-6, 100)[:, None].expand(100, 3)
    many = outputs.expand(100, -1)
    sampled = actions.sample(many, luck)
    assert (sampled[:, 1:].diff(dim=0) >= 0).all()
    torch.testing.assert_close(actions.mode(outputs)[:, 1:], squash(outputs[:, 1:3]))


def test_standard_deviations_stay_in_their_range() -> None:
    raw = torch.tensor([-1e9, 0.0, 1e9])
    torch.testing.assert_close(
        bounded_log_std(raw).exp(), torch.tensor([-4.0, math.log(0.6), 0.5]).exp()
    )


def mixed_stream(seed: int = 0) -> Stream:
    """CartPole (two choices), Pendulum (a real) and a bandit-like Blackjack, in turn."""
    tasks = [
        {"id": "CartPole-v1", "max_episode_steps": 5},
        {"id": "Pendulum-v1", "max_episode_steps": 4},
        "Blackjack-v1",
    ]
    return task_stream(tasks, seed, length=Length(1))


@pytest.mark.parametrize("core", ["gated_delta_net", "gru"])
@pytest.mark.parametrize("memory_reset", ["lifetime", "episode"])
def test_acting_equals_training_on_mixed_actions(core: str, memory_reset: str) -> None:
    crowd = Crowd(mixed_stream(), 4)
    agent = make_agent(crowd.interface, core)
    rollout = Rollout(agent, crowd, memory_reset=memory_reset)  # type: ignore[arg-type]
    trainer = MetaTrainer(agent, LifetimeReturns(discount=0.9), PPOLoss())
    for _ in range(3):
        trajectory, _ = rollout.collect(13)
        assert trajectory.steps["action"].shape == (4, 13, 2)
        metrics = trainer.update(trajectory, progress=0.0)
        assert metrics["losses/first_ratio_error"] < 1e-5
        assert all(
            math.isfinite(value) for name, value in metrics.items() if "variance" not in name
        )


def test_a_mixed_life_is_resumed_bit_for_bit() -> None:
    def make() -> Rollout:
        crowd = Crowd(mixed_stream(), 2)
        return Rollout(make_agent(crowd.interface), crowd, seed=3)

    one, other = make(), make()
    one.collect(11)
    other.load_state_dict(one.state_dict())
    a, b = one.collect(9)[0], other.collect(9)[0]
    for name in ("action", "log_prob", "reward", "value"):
        assert torch.equal(a.steps[name], b.steps[name]), name


@pytest.mark.slow
def test_it_learns_to_push_a_real() -> None:
    """Reward = -(a - target)^2 with the target shown: a Gaussian policy must find it."""
    import gymnasium
    import numpy as np

    class Aim(gymnasium.Env):  # type: ignore[type-arg]
        observation_space = gymnasium.spaces.Box(-1, 1, (1,))
        action_space = gymnasium.spaces.Box(-1, 1, (1,))

        def reset(self, *, seed=None, options=None):  # type: ignore[no-untyped-def]
            super().reset(seed=seed)
            self.target = self.np_random.uniform(-0.8, 0.8, 1).astype(np.float32)
            return self.target, {}

        def step(self, action):  # type: ignore[no-untyped-def]
            return self.target, -float((action - self.target)[0] ** 2), True, False, {}

    crowd = Crowd(task_stream([Aim], 0), 32)
    rollout = Rollout(make_agent(crowd.interface, "none"), crowd)
    trainer = MetaTrainer(rollout.agent, LifetimeReturns(discount=0.0), PPOLoss(), 3e-3)
    rewards = []
    for _ in range(30):
        trajectory, _ = rollout.collect(8)
        rewards.append(float(trajectory.steps["reward"].mean()))
        trainer.update(trajectory, progress=0.0)
    assert rewards[0] < -0.3 and sum(rewards[-5:]) / 5 > -0.06
