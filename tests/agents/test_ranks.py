"""Laws of training together: two gloo ranks are one process of all their lifetimes."""

import multiprocessing
from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, distributed

from sojourn.agents import (
    EWC,
    Extras,
    LifetimeReturns,
    MetaTrainer,
    PPOLoss,
    PrivilegedCritic,
    Rollout,
    RunningScale,
    num_ranks,
    rank,
)
from sojourn.agents.lifetime_returns import standardise, standardise_over_ranks
from sojourn.agents.ranks import from_all_ranks, mean_over_ranks, metrics_over_ranks
from sojourn.envs import Crowd

from .conftest import bandit_stream, make_agent, unmeasured_crowd

RANKS, LIFETIMES, STEPS, UPDATES = 2, 4, 6, 2
Worker = Callable[[], Any]


def in_rank(number: int, folder: Path, work: Worker) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo",
        init_method=f"file://{folder / 'meeting'}",
        rank=number,
        world_size=RANKS,
        timeout=timedelta(seconds=60),
    )
    torch.save(work(), folder / f"{number}.pt")
    distributed.destroy_process_group()


def in_ranks(folder: Path, work: Worker) -> list[Any]:
    """What `work` gives on every rank."""
    fork = multiprocessing.get_context("fork")
    started = [fork.Process(target=in_rank, args=(n, folder, work)) for n in range(RANKS)]
    for process in started:
        process.start()
    for process in started:
        process.join(120)
        assert process.exitcode == 0
    return [torch.load(folder / f"{n}.pt", weights_only=False) for n in range(RANKS)]


def life(num_segments: int | None = 1) -> Rollout:
    own = LIFETIMES // num_ranks()
    stream = bandit_stream(lifetime_segments=num_segments)
    crowd = Crowd(stream, own, first_lifetime=rank() * own, stride=LIFETIMES)
    return Rollout(make_agent(crowd.interface).double(), crowd, seed=5)


def learner(rollout: Rollout, num_minibatches: int = 1) -> MetaTrainer:
    torch.manual_seed(2)
    extras = Extras(
        critic=lambda agent: PrivilegedCritic(agent).double(),
        strategy=partial(EWC, at="task_end"),
    )
    returns = LifetimeReturns(discount=0.9)
    return MetaTrainer(
        rollout.agent,  # type: ignore[arg-type]
        returns,
        PPOLoss(),
        1e-2,
        2,
        num_minibatches,
        extras=extras,
    )


def told(rollout: Rollout, trainer: MetaTrainer) -> dict[str, Any]:
    metrics: list[dict[str, float]] = []
    lived: list[tuple[int, int, int, float]] = []
    for _ in range(UPDATES):
        done = trainer.iterate(rollout, STEPS, 0.0)
        metrics.append(done.metrics)
        lived += [(e.lifetime, e.segment, e.episode, e.total_return) for e in done.episodes]
    return {
        "weights": [p.detach() for p in rollout.agent.parameters()],  # type: ignore[attr-defined]
        "metrics": metrics,
        "episodes": sorted(lived),
        "life": rollout.state_dict(),
        "trainer": trainer.state_dict(),
    }


def train(num_minibatches: int) -> dict[str, Any]:
    rollout = life()
    return told(rollout, learner(rollout, num_minibatches))


def train_unmeasured() -> dict[str, Any]:
    own = LIFETIMES // num_ranks()
    crowd = unmeasured_crowd(own, first_lifetime=rank() * own, stride=LIFETIMES)
    rollout = Rollout(make_agent(crowd.interface).double(), crowd, seed=5)
    trainer = learner(rollout)
    for _ in range(2):
        trainer.iterate(rollout, 15, 0.0)
    weights = [p.detach() for p in rollout.agent.parameters()]  # type: ignore[attr-defined]
    return {"weights": weights, "scales": trainer.state_dict()["reward_scales"]}


class InStep(MetaTrainer):
    """One process whose minibatches are those of all ranks together."""

    def _minibatches(self, num_lifetimes: int, count: int) -> tuple[Tensor, ...]:
        own = num_lifetimes // RANKS
        order = torch.randperm(own, generator=self.generator)
        parts = order.tensor_split(count)
        return tuple(torch.cat([part + r * own for r in range(RANKS)]) for part in parts)


def assert_close(one: Any, other: Any) -> None:
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            assert_close(one[name], other[name])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_close(a, b)
    elif isinstance(one, Tensor | np.ndarray | float):
        torch.testing.assert_close(
            torch.as_tensor(one), torch.as_tensor(other), rtol=1e-6, atol=1e-7, equal_nan=True
        )
    else:
        assert one == other


@pytest.mark.parametrize("num_minibatches", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_two_ranks_are_one_process(tmp_path: Path, num_minibatches: int) -> None:
    ranks = in_ranks(tmp_path, partial(train, num_minibatches))
    assert_close(ranks[0], ranks[1])
    rollout = life()
    trainer = learner(rollout, num_minibatches)
    trainer.__class__ = InStep
    whole = told(rollout, trainer)
    assert len(whole["episodes"]) > LIFETIMES
    # A mean over ranks of ratios of variances is not that of all.
    for metrics in (*whole["metrics"], *ranks[0]["metrics"]):
        del metrics["losses/explained_variance"]
    assert_close(ranks[0], whole)


def test_two_ranks_know_the_same_scales_of_rewards(tmp_path: Path) -> None:
    ranks, alone = in_ranks(tmp_path, train_unmeasured), train_unmeasured()
    ((count, *_),) = alone["scales"].values()
    assert count == 2 * LIFETIMES * 3
    assert ranks[0]["scales"] == ranks[1]["scales"] == alone["scales"]
    assert_close(ranks[0]["weights"], alone["weights"])


def resumed(saved: dict[str, Any]) -> dict[str, Any]:
    rollout = life()
    trainer = learner(rollout)
    for parameter, value in zip(rollout.agent.parameters(), saved["weights"], strict=True):  # type: ignore[attr-defined]
        parameter.data.copy_(value)
    rollout.load_state_dict(saved["life"])
    trainer.load_state_dict(saved["trainer"])
    return told(rollout, trainer)


def begun_and_resumed() -> list[dict[str, Any]]:
    rollout = life()
    trainer = learner(rollout)
    saved = deepcopy(told(rollout, trainer))
    return [saved, told(rollout, trainer), resumed(deepcopy(saved))]


@pytest.mark.slow
def test_a_run_of_two_ranks_goes_on_in_two_or_in_one(tmp_path: Path) -> None:
    saved, unbroken, again = in_ranks(tmp_path, begun_and_resumed)[0]
    for name in ("weights", "life"):
        for a, b in zip(_leaves(unbroken[name]), _leaves(again[name]), strict=True):
            assert torch.equal(torch.as_tensor(a), torch.as_tensor(b)), name
    alone = resumed(saved)
    assert_close(unbroken["weights"], alone["weights"])
    assert unbroken["episodes"] == alone["episodes"]


def _leaves(content: Any) -> Iterator[Any]:
    if isinstance(content, dict):
        content = list(content.values())
    if isinstance(content, list | tuple):
        for part in content:
            yield from _leaves(part)
    else:
        yield content


def exchange() -> dict[str, Any]:
    values = torch.arange(6.0, dtype=torch.float64).view(2, 3)[rank() : rank() + 1].square()
    scale = RunningScale()
    scale.update(values)
    a, b = torch.full((2,), float(rank())), torch.full((1, 1), 10.0 * rank())
    mean_over_ranks([a, b])
    known = {"both": float(rank()), "one": 3.0 if rank() else float("nan"), "none": float("nan")}
    return {
        "standardised": standardise_over_ranks(values),
        "scale": (scale.mean, scale.spread),
        "means": (a.tolist(), b.tolist()),
        "metrics": metrics_over_ranks(known),
        "all": from_all_ranks(rank()),
    }


def test_moments_are_those_of_all_ranks(tmp_path: Path) -> None:
    found = in_ranks(tmp_path, exchange)
    values = torch.arange(6.0, dtype=torch.float64).view(2, 3).square()
    together = torch.cat([one["standardised"] for one in found])
    torch.testing.assert_close(together, standardise(values))
    scale = RunningScale()
    scale.update(values)
    for one in found:
        torch.testing.assert_close(one["scale"], (scale.mean, scale.spread))
        assert one["means"] == ([0.5, 0.5], [[5.0]])
        assert one["metrics"]["both"] == 0.5 and one["metrics"]["one"] == 3.0
        assert np.isnan(one["metrics"]["none"])
        assert one["all"] == [0, 1]
