"""Laws of auxiliary losses: silent when off, no gradient into targets, none across a life's end."""

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from tensordict import TensorDict
from torch import Tensor, nn

from sojourn.agents import (
    Agent,
    Auxiliary,
    Extras,
    LifetimeReturns,
    MetaTrainer,
    PPOLoss,
    Reading,
    Rollout,
)
from sojourn.agents.auxiliary import action_features, mean_where
from sojourn.agents.auxiliary_targets import ObservationTarget, channel_error, num_outputs
from sojourn.agents.channel_encoders import symlog
from sojourn.envs import Channel, Interface

from .conftest import make_agent

MakeRollout = Callable[..., Rollout]

CHANNELS = {
    "grid": Channel("grid", (2, 3, 3)),
    "image": Channel("image", (9, 9, 2)),
    "vector": Channel("vector", (4,)),
    "index": Channel("discrete", (), 5),
    "several": Channel("discrete", (3,), 5),
    "words": Channel("tokens", (6,), 11),
}
WEIGHTS = {"latent": 1.0, "observation": 0.5, "reward": 0.25}


def trainer(rollout: Rollout, weights: dict[str, float] | None) -> MetaTrainer:
    make = None if weights is None else partial(Auxiliary, **weights)
    extras = Extras(auxiliary=make)
    return MetaTrainer(rollout.agent, LifetimeReturns(), PPOLoss(), 1e-2, extras=extras)  # type: ignore[arg-type]


def observed(channel: Channel, shape: tuple[int, ...], seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    size = (*shape, *channel.shape)
    if channel.kind == "vector":
        return torch.randn(size, generator=generator)
    top = channel.num_values or (256 if channel.kind == "image" else 6)
    drawn = torch.randint(top, size, generator=generator)
    return drawn.to(torch.uint8) if channel.kind in ("grid", "image") else drawn


def right_answer(channel: Channel, target: Tensor) -> Tensor:
    """Outputs that predict a channel perfectly (as logits: nearly)."""
    if channel.kind == "vector":
        return symlog(target)
    if channel.kind == "image":
        return target.flatten(2) / 255.0
    sure = 1e3
    if channel.kind == "grid":
        codes = target.long().flatten(2, 3)
        planes = [nn.functional.one_hot(codes[..., i], n) for i, n in enumerate((16, 8, 8))]
        return sure * torch.cat(planes, -1).flatten(2).float()
    one_hot = nn.functional.one_hot(target, channel.num_values).float()
    return sure * (one_hot.flatten(2) if channel.shape else one_hot)


@pytest.mark.parametrize("name", CHANNELS)
def test_a_perfect_prediction_of_a_channel_costs_nothing(name: str) -> None:
    channel = CHANNELS[name]
    target = observed(channel, (2, 3))
    outputs = right_answer(channel, target)
    assert outputs.shape == (2, 3, num_outputs(channel))
    torch.testing.assert_close(channel_error(channel, outputs, target), torch.zeros(2, 3))
    wrong = channel_error(channel, outputs, observed(channel, (2, 3), seed=1))
    assert wrong.mean() > 0.01


def test_an_even_guess_of_a_code_costs_the_logarithm_of_their_number() -> None:
    channel = CHANNELS["words"]
    error = channel_error(channel, torch.zeros(2, 3, 66), observed(channel, (2, 3)))
    torch.testing.assert_close(error, torch.full((2, 3), math.log(11)))


def test_channels_count_alike_and_are_compared_with_the_step_that_follows() -> None:
    target = ObservationTarget(Interface(CHANNELS, 2))
    seen = {name: observed(channel, (2, 4)) for name, channel in CHANNELS.items()}
    parts = [right_answer(c, seen[name][:, 1:]) for name, c in CHANNELS.items()]
    assert torch.cat(parts, -1).shape[-1] == target.num_outputs
    error = target.loss(torch.cat(parts, -1), seen)
    torch.testing.assert_close(error, torch.zeros(2, 3))
    blind = [p if name == "vector" else 0 * p for name, p in zip(CHANNELS, parts, strict=True)]
    assert (target.loss(torch.cat(blind, -1), seen) > 0.1).all()


def test_off_means_the_same_bits(make_rollout: MakeRollout) -> None:
    def run(weights: dict[str, float] | None) -> tuple[list[Tensor], dict[str, float]]:
        rollout = make_rollout()
        learner = trainer(rollout, weights)
        metrics = [learner.iterate(rollout, 7, 0.0).metrics for _ in range(2)][-1]
        return list(rollout.agent.parameters()), metrics  # type: ignore[attr-defined]

    plain, off, on = run(None), run(None), run(WEIGHTS)
    assert all(torch.equal(a, b) for a, b in zip(plain[0], off[0], strict=True))
    assert not any("auxiliary" in name for name in plain[1])
    assert on[1].keys() - plain[1].keys() == {f"losses/auxiliary_{name}" for name in WEIGHTS}
    assert all(math.isfinite(on[1][f"losses/auxiliary_{name}"]) for name in WEIGHTS)
    assert not all(torch.equal(a, b) for a, b in zip(plain[0], on[0], strict=True))


def reading_of(rollout: Rollout, steps: TensorDict, state: TensorDict) -> Reading:
    agent = rollout.agent
    assert isinstance(agent, Agent)
    return agent.read(steps["observation"], state, steps["reset"])


def test_a_latent_target_passes_no_gradient(make_rollout: MakeRollout) -> None:
    rollout = make_rollout()
    trajectory, _ = rollout.collect(6)
    plain = reading_of(rollout, trajectory.steps, trajectory.state)
    tokens = plain.tokens.detach().requires_grad_()
    reading = Reading(tokens, plain.features, plain.state)
    auxiliary = Auxiliary(rollout.agent, latent=1.0)  # type: ignore[arg-type]
    auxiliary(reading, trajectory.steps)["total"].backward()
    assert tokens.grad is None
    assert all(p.grad is not None and p.grad.any() for p in auxiliary.parameters())


def test_nothing_is_predicted_across_the_end_of_a_lifetime(make_rollout: MakeRollout) -> None:
    rollout = make_rollout(segments=1, num_lifetimes=1)
    trajectory, _ = rollout.collect(15)  # a lifetime ends with step 9
    auxiliary = Auxiliary(rollout.agent, latent=1.0)  # type: ignore[arg-type]
    reading = reading_of(rollout, trajectory.steps, trajectory.state)

    def loss_with(step: int, change: float = 100.0) -> float:
        tokens = reading.tokens.clone()
        tokens[:, step] += change
        changed = Reading(tokens, reading.features, reading.state)
        return float(auxiliary(changed, trajectory.steps)["latent"].detach())

    plain = loss_with(0, change=0.0)
    assert loss_with(10) == plain
    assert loss_with(0) == plain, "nothing predicts the first step of the slice"
    assert loss_with(9) > plain and loss_with(11) > plain
    assert loss_with(5) > plain, "the end of an episode is an ordinary token"


def test_a_slice_of_one_step_predicts_only_its_reward(make_rollout: MakeRollout) -> None:
    rollout = make_rollout()
    trajectory, _ = rollout.collect(1)
    reading = reading_of(rollout, trajectory.steps, trajectory.state)
    losses = Auxiliary(rollout.agent, **WEIGHTS)(reading, trajectory.steps)  # type: ignore[arg-type]
    assert losses["latent"] == losses["observation"] == 0.0
    torch.testing.assert_close(losses["total"], 0.25 * losses["reward"])


def test_what_repeats_is_learned(make_rollout: MakeRollout) -> None:
    rollout = make_rollout(num_lifetimes=8)
    trajectory, _ = rollout.collect(12)
    reading = reading_of(rollout, trajectory.steps, trajectory.state)
    still = Reading(reading.tokens.detach(), reading.features.detach(), reading.state)
    auxiliary = Auxiliary(rollout.agent, **WEIGHTS)  # type: ignore[arg-type]
    optimizer = torch.optim.Adam(auxiliary.parameters(), 3e-3)
    totals = []
    for _ in range(60):
        optimizer.zero_grad()
        total = auxiliary(still, trajectory.steps)["total"]
        total.backward()
        optimizer.step()
        totals.append(float(total.detach()))
    assert totals[-1] < 0.5 * totals[0]


def test_the_heads_are_saved_with_the_trainer(make_rollout: MakeRollout) -> None:
    rollout = make_rollout()
    learner = trainer(rollout, WEIGHTS)
    learner.iterate(rollout, 5, 0.0)
    other = trainer(make_rollout(), WEIGHTS)
    other.load_state_dict(learner.state_dict())
    assert "auxiliary" in learner.heads
    pairs = zip(learner.heads.parameters(), other.heads.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("before", [None, WEIGHTS, {"latent": 1.0}])
@pytest.mark.parametrize("after", [None, {"reward": 1.0}])
def test_other_heads_start_anew_and_the_moments_of_the_agent_stay(
    make_rollout: MakeRollout, before: dict[str, float] | None, after: dict[str, float] | None
) -> None:
    rollout = make_rollout()
    learner = trainer(rollout, before)
    learner.iterate(rollout, 5, 0.0)
    later = trainer(rollout, after)
    later.load_state_dict(learner.state_dict())
    for parameter in rollout.agent.parameters():  # type: ignore[attr-defined]
        kept, was = (one.optimizer.state[parameter]["exp_avg"] for one in (later, learner))
        assert torch.equal(kept, was)
    assert math.isfinite(later.iterate(rollout, 5, 0.0).metrics["losses/total"])


def test_actions_of_several_parts_are_one_hot_and_real() -> None:
    agent = make_agent(Interface({"x": Channel("vector", (1,))}, 3, (2,), 1))
    found = action_features(agent.actions, torch.tensor([[[2.0, 1.0, -0.5]]]))
    assert found.tolist() == [[[0.0, 0.0, 1.0, 0.0, 1.0, -0.5]]]


def test_a_mean_over_nothing_is_zero() -> None:
    nothing = torch.zeros(2, 0, dtype=torch.bool)
    assert mean_where(torch.zeros(2, 0), nothing) == 0.0
    assert mean_where(torch.tensor([3.0, math.nan]), torch.tensor([True, False])) == 3.0


@pytest.mark.parametrize("weights", [{}, {"latent": 0.0}, {"latent": 1.0, "reward": -1.0}])
def test_weights_that_ask_for_nothing_are_refused(
    make_rollout: MakeRollout, weights: dict[str, float]
) -> None:
    with pytest.raises(ValueError, match="auxiliary: expected latent, observation or reward"):
        Auxiliary(make_rollout().agent, **weights)  # type: ignore[arg-type]
