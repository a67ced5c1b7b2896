"""A run folder gives its agent back."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from sojourn.experiments import checkpoint
from sojourn.experiments.errors import UsageError
from sojourn.experiments.loading import load


def test_the_loaded_agent_is_the_trained_one(train: Callable[..., Path]) -> None:
    run = train("run")
    _, content, _ = checkpoint.load_newest(run / "checkpoints")
    for where in ("latest", run, run / "checkpoints" / "step_000000000320.pt"):
        weights = load(where).agent.state_dict()
        assert all(torch.equal(weights[name], content["agent"][name]) for name in weights)
        assert len(weights) == len(content["agent"])


def test_it_lives_fresh_lifetimes_the_same_way_every_time(train: Callable[..., Path]) -> None:
    train("run", "memory_reset=episode")
    first, second, other = (
        load().rollout(num_lifetimes=3, seed=seed).collect(20) for seed in (5, 5, 6)
    )
    assert first[1] == second[1]
    assert first[1] != other[1]
    assert first[0].steps["reset"][:, 10].all(), "memory resets as it did in training"
    assert not any(tensor.requires_grad for tensor in first[0].state.values(True, True))


def test_a_folder_without_a_run_is_refused(workplace: Path) -> None:
    with pytest.raises(UsageError, match="not a run folder"):
        load(workplace)
