"""What says whether an agent can still learn, against cases done by hand."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn

from sojourn.agents import (
    Rollout,
    dormant_share,
    parameter_vector,
    plasticity,
    update_ratio,
    watched_units,
)

Make = Callable[..., Rollout]


def test_dormant_units_by_hand() -> None:
    activity = torch.tensor([[1.0, -0.02, 0.0, 2.98], [-1.0, 0.02, 0.0, 3.02]], dtype=torch.float64)
    assert dormant_share(activity) == 0.5  # averages 1, .02, 0, 3: their mean is 1.005
    assert dormant_share(activity, threshold=0.01) == 0.25
    assert dormant_share(activity, threshold=1.0) == 0.75
    assert dormant_share(activity.view(2, 1, 4)) == 0.5


def test_dormancy_knows_no_scale() -> None:
    activity = torch.randn(5, 7, 64, dtype=torch.float64).pow(3)
    assert dormant_share(activity, 0.5) == dormant_share(2.0**20 * activity, 0.5) > 0.0


def test_dormancy_at_the_borders() -> None:
    assert dormant_share(torch.zeros(3, 4)) == 1.0
    assert dormant_share(torch.ones(1, 1)) == 0.0
    assert math.isnan(dormant_share(torch.ones(0, 4)))
    assert math.isnan(dormant_share(torch.tensor([[1.0, math.nan]])))


def test_the_update_ratio_by_hand() -> None:
    layer = nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[3.0, 4.0]]))
        before = parameter_vector(layer)
        layer.weight.add_(torch.tensor([[0.0, 0.5]]))
    assert update_ratio(before, parameter_vector(layer)) == pytest.approx(0.1)
    assert update_ratio(before, before) == 0.0
    assert math.isnan(update_ratio(torch.zeros(2), torch.zeros(2)))


def test_units_are_seen_by_path_and_planes_count_as_units() -> None:
    net = nn.Sequential(nn.Conv2d(1, 3, 1), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2), nn.SiLU())
    with watched_units(net) as units:
        net(torch.randn(5, 1, 2, 2))
    assert {path: list(seen.shape) for path, seen in units.items()} == {
        "1": [5, 2, 2, 3],
        "4": [5, 2],
    }
    net(torch.randn(5, 1, 2, 2))
    assert all(not module._forward_hooks for module in net.modules())


def test_measures_of_an_agent_change_nothing(core_name: str, make_rollout: Make) -> None:
    rollout = make_rollout(core_name)
    trajectory, _ = rollout.collect(6)
    agent = rollout.agent
    before, generator = parameter_vector(agent), torch.get_rng_state()
    found = plasticity(agent, trajectory)
    assert torch.equal(before, parameter_vector(agent))
    assert torch.equal(generator, torch.get_rng_state())
    assert all(math.isfinite(value) for value in found.values()), found
    assert 0.0 <= found["dormant"] <= found["dormant_loose"] <= 1.0
    width = agent.memory.width
    assert 1.0 <= found["feature_rank"] <= width
    assert 1.0 <= found["token_rank"] <= width
    assert found["weight_norm"] == pytest.approx(float(before.norm()))


def test_a_layer_that_died_is_dormant(make_rollout: Make) -> None:
    rollout = make_rollout("gru")
    trajectory, _ = rollout.collect(4)
    first = rollout.agent.memory.blocks[0].mlp[0]
    with torch.no_grad():
        first.weight.zero_()
        first.bias.zero_()
    found = plasticity(rollout.agent, trajectory)
    assert found["dormant"] == 0.5  # one of two blocks


def test_a_slice_without_steps_has_norms_only(make_rollout: Make) -> None:
    rollout = make_rollout("gru")
    trajectory, _ = rollout.collect(0)
    assert set(plasticity(rollout.agent, trajectory)) == {"weight_norm", "memory_weight_norm"}
