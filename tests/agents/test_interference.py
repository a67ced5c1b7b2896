"""What new learning does to old data: estimates against the truth, by hand and on real agents."""

import math
from collections.abc import Callable

import pytest
import torch
from tensordict import TensorDict
from torch import Tensor, nn

from sojourn.agents import (
    LifetimeReturns,
    MetaTrainer,
    PPOLoss,
    Rollout,
    coherence,
    future_gradient,
    gradient_alignment,
    loss_change,
    matrix_interference,
    parameter_vector,
    slice_loss,
    write_alignment,
    write_interference,
)
from sojourn.memory import FastWeightMemory, GradientStep, layers_of

Make = Callable[..., Rollout]
DOUBLE = torch.float64


def quadratic(generator: torch.Generator) -> tuple[list[nn.Parameter], Callable[[], Tensor]]:
    """1/2 x' A x + b' x of five numbers in two parameters."""
    root = torch.randn(5, 5, generator=generator, dtype=DOUBLE)
    slope = torch.randn(5, generator=generator, dtype=DOUBLE)
    parts = [nn.Parameter(torch.randn(n, generator=generator, dtype=DOUBLE)) for n in (2, 3)]

    def loss() -> Tensor:
        x = torch.cat(list(parts))
        return 0.5 * x @ (root @ root.T) @ x + slope @ x

    return parts, loss


def test_of_a_quadratic_the_estimate_is_the_truth() -> None:
    generator = torch.Generator().manual_seed(0)
    parts, loss = quadratic(generator)
    step = [torch.randn(len(p), generator=generator, dtype=DOUBLE) for p in parts]
    found = loss_change(loss, parts, step)
    assert found.second > 0.0
    assert found.predicted == pytest.approx(found.true, rel=1e-12)


def test_the_estimate_is_of_third_order_in_the_step() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)).double()
    x, y = torch.randn(20, 3, dtype=DOUBLE), torch.randn(20, 2, dtype=DOUBLE)
    parameters = list(net.parameters())
    direction = [torch.randn_like(p) for p in parameters]

    def miss(scale: float) -> float:
        step = [scale * d for d in direction]
        found = loss_change(lambda: (net(x) - y).square().mean(), parameters, step)
        return abs(found.predicted - found.true)

    assert miss(0.02) / miss(0.01) == pytest.approx(8.0, rel=0.2)


def test_a_loss_change_leaves_everything_as_it_was() -> None:
    parts, loss = quadratic(torch.Generator().manual_seed(1))
    before = [p.detach().clone() for p in parts]
    found = loss_change(loss, parts, [1e3 * torch.ones_like(p) for p in parts])
    assert math.isfinite(found.true)
    assert all(torch.equal(p, old) for p, old in zip(parts, before, strict=True))
    assert all(p.grad is None for p in parts)
    still = loss_change(loss, parts, [torch.zeros_like(p) for p in parts])
    assert (still.first, still.second, still.true) == (0.0, 0.0, 0.0)


def test_a_linear_loss_has_no_second_order() -> None:
    weight = nn.Parameter(torch.ones(3, dtype=DOUBLE))
    found = loss_change(lambda: 2.0 * weight.sum(), [weight], [torch.ones(3, dtype=DOUBLE)])
    assert (found.first, found.second, found.true) == (6.0, 0.0, 6.0)


def test_a_step_of_another_shape_is_refused() -> None:
    weight = nn.Parameter(torch.ones(3))
    with pytest.raises(ValueError, match=r"expected tensors of shapes \[\[3\]\], got \[\[2\]\]"):
        loss_change(weight.sum, [weight], [torch.ones(2)])


def test_alignment_by_hand() -> None:
    weight = nn.Parameter(torch.tensor([1.0, 0.0], dtype=DOUBLE))

    def loss() -> Tensor:
        return weight.square().sum()

    assert gradient_alignment(loss, loss, [weight]) == pytest.approx(1.0)
    assert gradient_alignment(loss, lambda: -loss(), [weight]) == pytest.approx(-1.0)
    assert gradient_alignment(loss, lambda: weight[1], [weight]) == 0.0
    assert math.isnan(gradient_alignment(loss, lambda: 0.0 * weight.sum(), [weight]))


def test_the_closed_form_of_matrices_is_the_truth() -> None:
    torch.manual_seed(0)
    weights, change = (torch.randn(2, 3, 4, 5, dtype=DOUBLE) for _ in range(2))
    keys, values = (torch.randn(2, 3, 6, n, dtype=DOUBLE) for n in (5, 4))

    def loss(at: Tensor) -> Tensor:
        return 0.5 * (keys @ at.mT - values).square().sum((-2, -1))

    first, second = matrix_interference(weights, change, keys, values)
    torch.testing.assert_close(first + second, loss(weights + change) - loss(weights))
    slope = 0.5 * (loss(weights + change) - loss(weights - change))
    torch.testing.assert_close(first, slope)  # central differences of a quadratic are exact


def test_the_closed_form_of_one_write_is_that_of_its_matrix() -> None:
    torch.manual_seed(0)
    weights, key = torch.randn(2, 4, 5, dtype=DOUBLE), torch.randn(2, 5, dtype=DOUBLE)
    write = torch.randn(2, 4, dtype=DOUBLE)
    keys, values = torch.randn(2, 7, 5, dtype=DOUBLE), torch.randn(2, 7, 4, dtype=DOUBLE)
    change = write.unsqueeze(-1) * key.unsqueeze(-2)
    for one, other in zip(
        write_interference(weights, write, key, keys, values),
        matrix_interference(weights, change, keys, values),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_orthogonal_keys_do_not_interfere() -> None:
    weights, write = torch.randn(4, 3, dtype=DOUBLE), torch.randn(4, dtype=DOUBLE)
    keys, values = torch.eye(3, dtype=DOUBLE)[:2], torch.randn(2, 4, dtype=DOUBLE)
    key = torch.tensor([0.0, 0.0, 2.0], dtype=DOUBLE)
    assert coherence(key, keys) == 0.0
    first, second = write_interference(weights, write, key, keys, values)
    assert first == 0.0
    assert second == 0.0
    none = write_interference(weights, write, key, keys[:0], values[:0])
    assert none[0] == none[1] == 0.0


def test_the_write_of_a_delta_rule_is_predicted() -> None:
    """A real memory: what one token does to the pairs written before it, retention included."""
    torch.manual_seed(0)
    core = FastWeightMemory(6, num_heads=2, key_width=4, value_width=3).double()
    assert isinstance(core.rule, GradientStep)
    x, state = torch.randn(2, 6, 6, dtype=DOUBLE), core.init_state(2)
    with torch.no_grad():
        _, before = core(x[:, :5], state)
        _, after = core(x[:, 5:], before)
    old, new = before["weights"], after["weights"]
    keys, values = torch.randn(2, 2, 5, 4, dtype=DOUBLE), torch.randn(2, 2, 5, 3, dtype=DOUBLE)
    truth = [0.5 * (keys @ w.mT - values).square().sum((-2, -1)) for w in (old, new)]
    first, second = matrix_interference(old, new - old, keys, values)
    torch.testing.assert_close(first + second, truth[1] - truth[0])


def test_a_step_down_the_future_gradient_is_aligned() -> None:
    torch.manual_seed(0)
    target = torch.randn(3, 4, dtype=DOUBLE)
    state = TensorDict(
        {"a": {"weights": torch.randn(3, 4, dtype=DOUBLE)}, "clock": torch.ones(3, 1).long()},
        batch_size=[3],
    )

    def loss(at: TensorDict) -> Tensor:
        return (at["a", "weights"] - target).square().sum()

    gradient = future_gradient(loss, state)
    assert list(gradient.keys(True, True)) == [("a", "weights")]
    torch.testing.assert_close(gradient["a", "weights"], 2 * (state["a", "weights"] - target))
    down, up = (
        state.clone().set(("a", "weights"), state["a", "weights"] - s * gradient["a", "weights"])
        for s in (0.1, -0.1)
    )
    torch.testing.assert_close(write_alignment(state, down, gradient), torch.ones(3, dtype=DOUBLE))
    torch.testing.assert_close(write_alignment(state, up, gradient), -torch.ones(3, dtype=DOUBLE))
    assert write_alignment(state, state, gradient).isnan().all()


def trainer_of(rollout: Rollout) -> MetaTrainer:
    return MetaTrainer(rollout.agent, LifetimeReturns(), PPOLoss(), learning_rate=1e-3)


@pytest.mark.parametrize("core", ["gated_delta_net", "gru", "titans_linear", "mesa_net"])
def test_an_outer_step_is_predicted_on_an_old_slice(core: str, make_rollout: Make) -> None:
    rollout = make_rollout(core)
    agent = rollout.agent
    trainer = trainer_of(rollout)
    old, _ = rollout.collect(10)
    loss = slice_loss(trainer, old, progress=0.0)
    parameters = list(agent.parameters())
    before = [p.detach().clone() for p in parameters]
    new, _ = rollout.collect(10)
    trainer.update(new, 0.0)
    step = [p.detach() - old_p for p, old_p in zip(parameters, before, strict=True)]
    with torch.no_grad():
        for parameter, value in zip(parameters, before, strict=True):
            parameter.copy_(value)
    found = loss_change(loss, parameters, [0.1 * part for part in step])
    assert found.true != 0.0
    assert found.predicted == pytest.approx(found.true, rel=0.1, abs=2e-6)


def test_asking_for_the_loss_of_a_slice_changes_no_trainer(make_rollout: Make) -> None:
    rollout = make_rollout()
    trainer = trainer_of(rollout)
    slice_, _ = rollout.collect(6)
    scale = {name: value.clone() for name, value in trainer.returns.state_dict().items()}
    weights = parameter_vector(rollout.agent)
    loss = slice_loss(trainer, slice_, progress=0.0)
    assert torch.equal(loss(), loss())
    assert torch.equal(weights, parameter_vector(rollout.agent))
    for name, value in trainer.returns.state_dict().items():
        assert torch.equal(value, scale[name]), name
    with pytest.raises(ValueError, match="give both the same"):
        slice_loss(trainer, make_rollout(credit="episode").collect(4)[0], progress=0.0)


@pytest.mark.parametrize("core", ["gated_delta_net", "gru"])
def test_what_a_life_wrote_is_held_against_its_future(core: str, make_rollout: Make) -> None:
    rollout = make_rollout(core)
    trainer = trainer_of(rollout)
    past, _ = rollout.collect(6)
    future, _ = rollout.collect(6)
    steps = trainer.returns.prepare(future.steps, 0.0)

    def loss(state: TensorDict) -> Tensor:
        _, values, _ = rollout.agent.unroll(steps["observation"], state, steps["reset"])
        return (values - steps["value_target"]).square().sum()

    found = write_alignment(past.state, future.state, future_gradient(loss, future.state))
    assert found.shape == (4,)
    assert (found.abs() <= 1.0 + 1e-6).all()
    assert layers_of(rollout.agent.memory)
