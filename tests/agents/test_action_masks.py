"""Masks of the environment reach acting, training, entropy, the ratio and KL, on a whole stream."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor
from torch.distributions import kl_divergence

from sojourn.agents import LifetimeReturns, MetaTrainer, PPOLoss, Rollout, Trajectory
from sojourn.agents.actions import masked_categorical
from sojourn.envs import Crowd, Interface, Length, task_stream

from .conftest import make_agent

STEPS, ROWS = 14, 3


class Gates(gymnasium.Env[Any, Any]):
    """Closes other options at every step; stops whoever takes a closed one."""

    observation_space = spaces.Box(0.0, 1.0, (2,), np.float32)

    def __init__(self, *sizes: int) -> None:
        one = len(sizes) == 1
        self.action_space = spaces.Discrete(sizes[0]) if one else spaces.MultiDiscrete(sizes)
        self.sizes = sizes

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.count = 0
        return self._seen()

    def step(self, action: Any) -> Any:
        for part, options in zip(np.atleast_1d(action), self.open, strict=True):
            assert options[part], f"{action} is closed"
        self.count += 1
        seen, info = self._seen()
        return seen, float(np.sum(action)), False, self.count == 4, info

    def _seen(self) -> Any:
        self.open = [self.np_random.random(size) < 0.5 for size in self.sizes]
        for options in self.open:
            options[self.np_random.integers(len(options))] = True
        masks = tuple(options.astype(np.int8) for options in self.open)
        info = {"action_mask": masks if len(masks) > 1 else masks[0]}
        return self.np_random.random(2).astype(np.float32), info


def one_choice() -> Rollout:
    return rollout_of(lambda: Gates(5), lambda: Gates(3))


def several_choices() -> Rollout:
    return rollout_of(lambda: Gates(4, 3), lambda: Gates(2))


def rollout_of(*tasks: Any) -> Rollout:
    """Tasks of different sizes in turn, so that options are closed and options are lacking."""
    crowd = Crowd(task_stream(list(tasks), 0, length=Length(1)), ROWS)
    agent = make_agent(crowd.interface).double()
    with torch.no_grad():  # far from uniform
        agent.policy.project.weight.mul_(50.0)
    return Rollout(agent, crowd)


@pytest.fixture(params=[one_choice, several_choices], ids=lambda make: make.__name__)
def rollout(request: pytest.FixtureRequest) -> Rollout:
    """A life with masks: of one choice, of several."""
    made: Rollout = request.param()
    return made


def outputs_of(rollout: Rollout, trajectory: Trajectory) -> Tensor:
    steps = trajectory.steps
    return rollout.agent.unroll(steps["observation"], trajectory.state, steps["reset"])[0]


def legal_policies(
    interface: Interface, outputs: Tensor, mask: Tensor
) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """By hand, for every step and choice: the legal options, and a softmax over these alone."""
    bounds = np.cumsum([0, *interface.choices])
    policies = []
    for row, legal in zip(outputs.flatten(0, 1), mask.flatten(0, 1), strict=True):
        parts = []
        for begin, end in itertools.pairwise(bounds):
            options = np.flatnonzero(legal[begin:end].numpy())
            raised = np.exp(row[begin:end].detach().numpy()[options])
            parts.append((options, raised / raised.sum()))
        policies.append(parts)
    return policies


def log_probs(policies: Any, actions: Tensor) -> np.ndarray:
    taken = actions.reshape(len(policies), -1).long().numpy()
    return np.array(
        [
            sum(np.log(p[options == a][0]) for (options, p), a in zip(parts, row, strict=True))
            for parts, row in zip(policies, taken, strict=True)
        ]
    )


def losses_of(rollout: Rollout, trajectory: Trajectory, outputs: Tensor) -> dict[str, Tensor]:
    returns = LifetimeReturns(discount=0.9)
    steps = returns.prepare(trajectory.steps, 0.0)
    losses: dict[str, Tensor] = PPOLoss()(
        outputs, steps["value"], steps, 0.0, rollout.agent.actions
    )
    return losses


def test_policy_entropy_ratio_and_kl_are_those_of_the_legal_options(rollout: Rollout) -> None:
    trajectory, _ = rollout.collect(STEPS)  # the environment itself stops an illegal action
    mask, action = trajectory.steps["observation", "action_mask"], trajectory.steps["action"]
    assert 0.2 < mask.double().mean() < 0.8
    before = outputs_of(rollout, trajectory)
    acted = log_probs(legal_policies(rollout.crowd.interface, before, mask), action)
    np.testing.assert_allclose(trajectory.steps["log_prob"].flatten(), acted, atol=1e-6)
    assert losses_of(rollout, trajectory, before)["ratio_error"] < 1e-5
    with torch.no_grad():
        for parameter in rollout.agent.policy.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    after = outputs_of(rollout, trajectory)
    policies = legal_policies(rollout.crowd.interface, after, mask)
    losses = losses_of(rollout, trajectory, after)
    entropy = np.mean([-sum((p * np.log(p)).sum() for _, p in parts) for parts in policies])
    assert float(losses["entropy"]) == pytest.approx(entropy, abs=1e-9)
    now = log_probs(policies, action)
    assert float(losses["approx_kl"]) == pytest.approx((acted - now).mean(), abs=1e-6)
    assert abs(float(losses["approx_kl"])) > 1e-3
    largest = np.abs(np.exp(now - acted) - 1.0).max()
    assert float(losses["ratio_error"]) == pytest.approx(largest, rel=1e-4)


def test_the_divergence_of_two_masked_policies_is_that_of_their_legal_options() -> None:
    rollout = one_choice()
    trajectory, _ = rollout.collect(STEPS)
    mask = trajectory.steps["observation", "action_mask"]
    before = outputs_of(rollout, trajectory).detach()
    after = torch.where(mask, before + torch.randn_like(before), before)
    old, new = masked_categorical(before), masked_categorical(after)
    assert not old.probs[~mask].any() and not new.probs[~mask].any()
    one, other = (legal_policies(rollout.crowd.interface, o, mask) for o in (before, after))
    pairs = zip(one, other, strict=True)
    slow = [float((p[0][1] * np.log(p[0][1] / q[0][1])).sum()) for p, q in pairs]
    np.testing.assert_allclose(kl_divergence(old, new).flatten(), slow, atol=1e-12)
    assert max(slow) > 0.01


def test_outputs_of_illegal_options_change_nothing_and_learn_nothing(rollout: Rollout) -> None:
    trajectory, _ = rollout.collect(STEPS)
    agent, steps = rollout.agent, trajectory.steps
    mask = steps["observation", "action_mask"]
    features = agent.read(steps["observation"], trajectory.state, steps["reset"]).features
    raw = agent.policy.project(features).detach().requires_grad_()
    losses = losses_of(rollout, trajectory, agent.actions.mask(raw, mask))
    losses["total"].backward()
    assert raw.grad is not None and torch.isfinite(raw.grad).all()
    assert not raw.grad[~mask].any() and raw.grad[mask].any()
    other = torch.where(mask, raw, raw + 100.0 * torch.randn_like(raw))
    moved = losses_of(rollout, trajectory, agent.actions.mask(other, mask))
    for name in ("total", "entropy", "approx_kl", "ratio_error"):
        assert torch.equal(losses[name], moved[name]), name


def test_the_alarm_is_silent_with_masks_and_raised_where_training_forgets_them(
    rollout: Rollout,
) -> None:
    trainer = MetaTrainer(rollout.agent, LifetimeReturns(discount=0.9), PPOLoss())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            metrics = trainer.update(rollout.collect(STEPS)[0], progress=0.0)
            assert metrics["losses/first_ratio_error"] < 1e-5
    trajectory, _ = rollout.collect(STEPS)
    trajectory.steps["observation", "action_mask"][:] = True
    with pytest.warns(UserWarning, match="first PPO ratio is off by"):
        trainer.update(trajectory, progress=0.0)
