"""Laws of truncation: nothing crosses a border, values stay, no border is the whole gradient."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from sojourn.agents import (
    Agent,
    Extras,
    LifetimeReturns,
    MetaTrainer,
    PPOLoss,
    Rollout,
    gradient_agreement,
    read_in_windows,
)
from sojourn.agents.gradient_horizon import gradient_of
from sojourn.agents.trajectory import Trajectory

from .test_interventions import loud

MakeRollout = Callable[..., Rollout]


def slice_of(make_rollout: MakeRollout, core: str, steps: int = 8) -> tuple[Agent, Trajectory]:
    rollout = make_rollout(core, num_lifetimes=2)
    agent = rollout.agent
    assert isinstance(agent, Agent)
    agent.double()
    return agent, loud(rollout).collect(steps)[0]


def loss(outputs: Tensor, values: Tensor) -> Tensor:
    weight = torch.linspace(1.0, 2.0, values.shape[1], dtype=values.dtype)
    return (weight * values.square()).mean() + torch.log_softmax(outputs, -1)[..., 0].mean()


def test_gradients_at_a_window_border_are_exactly_zero(
    make_rollout: MakeRollout, core_name: str
) -> None:
    agent, trajectory = slice_of(make_rollout, core_name)
    steps = trajectory.steps
    steps["reset"][:] = False
    tokens: list[Tensor] = []

    def keep(_: object, __: object, out: Tensor) -> None:
        out.retain_grad()
        tokens.append(out)

    handle = agent.encoder.register_forward_hook(keep)
    state = trajectory.state.clone()
    reading = read_in_windows(agent, steps["observation"], state, steps["reset"], 4)
    handle.remove()
    agent.value(reading.features)[:, 4:].sum().backward()  # losses of the second window only
    assert len(tokens) == 2
    assert tokens[0].grad is None or not tokens[0].grad.any(), "exactly zero, not nearly"
    assert tokens[1].grad is not None and tokens[1].grad.any()
    assert all(not leaf.requires_grad for leaf in state.values(True, True))


def test_windows_change_no_value_and_one_window_is_the_whole_slice(
    make_rollout: MakeRollout, core_name: str
) -> None:
    agent, trajectory = slice_of(make_rollout, core_name)
    steps, state = trajectory.steps, trajectory.state
    whole = agent.read(steps["observation"], state, steps["reset"])
    cut = read_in_windows(agent, steps["observation"], state, steps["reset"], 3)
    torch.testing.assert_close(cut.features, whole.features, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(cut.tokens, whole.tokens)
    for key in whole.state.keys(True, True):
        torch.testing.assert_close(cut.state[key], whole.state[key], rtol=1e-9, atol=1e-9)
    rows = gradient_agreement(agent, steps["observation"], state, steps["reset"], loss, [8, 1])
    assert rows[0].cosine == pytest.approx(1.0)
    assert rows[0].norm_ratio == pytest.approx(1.0)
    assert rows[1].memory_cosine <= 1.0 + 1e-9


def test_a_memory_without_state_loses_nothing(make_rollout: MakeRollout) -> None:
    agent, trajectory = slice_of(make_rollout, "none")
    steps = trajectory.steps
    rows = gradient_agreement(
        agent, steps["observation"], trajectory.state, steps["reset"], loss, [1, 2, 5]
    )
    assert [row.window for row in rows] == [1, 2, 5]
    assert all(row.cosine == pytest.approx(1.0, abs=1e-6) for row in rows)


def test_a_memory_loses_credit_in_short_windows(make_rollout: MakeRollout) -> None:
    agent, trajectory = slice_of(make_rollout, "delta_net", steps=12)
    steps = trajectory.steps
    rows = gradient_agreement(
        agent, steps["observation"], trajectory.state, steps["reset"], loss, [1, 6]
    )
    assert rows[0].memory_cosine < rows[1].memory_cosine < 1.0 - 1e-6


def test_the_gradient_of_each_window_is_the_sum_over_windows(make_rollout: MakeRollout) -> None:
    """The slow way: every window on its own, from a state that is a constant."""
    agent, trajectory = slice_of(make_rollout, "gated_delta_net")
    observation, reset = trajectory.steps["observation"], trajectory.steps["reset"]

    def value_sum(window: int | None) -> Tensor:
        reading = read_in_windows(agent, observation, trajectory.state, reset, window)
        return gradient_of(agent, agent.value(reading.features).square().sum())[0]

    state, parts = trajectory.state, []
    for start in (0, 3, 6):
        of = slice(start, start + 3)
        reading = agent.read(observation[:, of], state, reset[:, of])
        parts.append(gradient_of(agent, agent.value(reading.features).square().sum())[0])
        state = reading.state.detach()
    torch.testing.assert_close(value_sum(3), torch.stack(parts).sum(0), rtol=1e-9, atol=1e-12)
    assert not torch.allclose(value_sum(3), value_sum(None))


def test_a_trainer_may_cut_its_gradients(make_rollout: MakeRollout) -> None:
    def run(window: int | None) -> list[Tensor]:
        rollout = make_rollout()
        extras = Extras(gradient_window=window)
        learner = MetaTrainer(rollout.agent, LifetimeReturns(), PPOLoss(), extras=extras)  # type: ignore[arg-type]
        metrics = learner.iterate(rollout, 8, 0.0).metrics
        assert metrics["losses/first_ratio_error"] < 1e-5
        return list(rollout.agent.parameters())  # type: ignore[attr-defined]

    whole, long, cut = run(None), run(8), run(3)
    assert all(torch.equal(a, b) for a, b in zip(whole, long, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(whole, cut, strict=True))


def test_a_window_below_one_is_refused(make_rollout: MakeRollout) -> None:
    agent, trajectory = slice_of(make_rollout, "gru", steps=2)
    steps = trajectory.steps
    with pytest.raises(ValueError, match="windows: expected at least 1 step each"):
        gradient_agreement(
            agent, steps["observation"], trajectory.state, steps["reset"], loss, [0, 2]
        )
