"""Laws of rewards that nobody has a floor and a ceiling for: scaled by the returns lived so far."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from sojourn.agents import LifetimeReturns, MetaTrainer, PPOLoss, RewardScales, Rollout
from sojourn.agents.life_regret import episode_regrets
from sojourn.agents.trajectory import task_number
from sojourn.envs import EpisodeRecord

from .conftest import make_agent, unmeasured_crowd

NAN = float("nan")
RETURNS = np.random.default_rng(0).normal(3.0, 40.0, 30)
MakeRollout = Callable[..., Rollout]


def record(total_return: float, task: str = "a", **told: Any) -> EpisodeRecord:
    given: dict[str, Any] = {
        **dict.fromkeys(("lifetime", "segment", "task_index", "episode", "start_step"), 0),
        **dict.fromkeys(("expected_return", "optimal_return", "floor_return"), NAN),
        "unit": "return",
        "num_steps": 5,
        "status": "terminated",
    }
    return EpisodeRecord(task=task, total_return=total_return, **given | told)


def records(returns: Any, task: str = "a", **told: Any) -> list[EpisodeRecord]:
    return [record(float(value), task, **told) for value in returns]


def scale_of(scales: RewardScales, task: str = "a") -> float:
    columns = {"reward_scale": torch.tensor([[NAN]]), "task": torch.tensor([[task_number(task)]])}
    return float(scales.of(TensorDict(columns, batch_size=[1, 1])))


@pytest.mark.parametrize("cuts", [[], [9], [1, 2, 3, 20], [0, 30]])
def test_the_scale_is_one_over_the_deviation_of_all_returns(cuts: list[int]) -> None:
    scales = RewardScales()
    for part in np.split(RETURNS, cuts):
        scales.add(records(part[::-1]))
    assert scale_of(scales) == pytest.approx(1.0 / RETURNS.std(), rel=1e-6)
    assert scale_of(scales, "b") == 1.0


@pytest.mark.parametrize("size", [1e-29, 1e37])
def test_any_size_that_a_reward_can_have_is_scaled(size: float) -> None:
    scales = RewardScales()
    scales.add(records([size, -size] * 10))
    assert scale_of(scales) * size == pytest.approx(1.0)


def test_a_task_measured_by_rate_counts_its_reward_per_step() -> None:
    scales, lengths = RewardScales(), np.arange(1, 31)
    for value, length in zip(RETURNS, lengths, strict=True):
        scales.add([record(value, unit="rate", num_steps=int(length), status="cut")])
    assert scale_of(scales) == pytest.approx(1.0 / (RETURNS / lengths).std(), rel=1e-6)


@pytest.mark.parametrize(
    "told",
    [
        [],
        records(RETURNS[:7]),
        records(np.zeros(20)),
        records([0.1 * 3] * 10 + [0.3] * 10),
        records([NAN, np.inf, -np.inf] * 10),
        records([1e-40, -1e-40] * 10),
        records(RETURNS, status="cut"),
        records(RETURNS, status="failed"),
        records(RETURNS, floor_return=0.0),
    ],
)
def test_the_scale_is_one_while_nothing_is_known(told: list[EpisodeRecord]) -> None:
    scales = RewardScales()
    assert not scales.add(told)
    assert scale_of(scales) == 1.0


def test_it_comes_to_be_known_once() -> None:
    scales = RewardScales()
    found = [scales.add([record(value)]) for value in RETURNS]
    assert [n for n, became_known in enumerate(found) if became_known] == [7]


def test_of_too_many_names_the_oldest_are_forgotten() -> None:
    scales = RewardScales()
    for number in range(1500):
        scales.add(records(RETURNS, f"{number:04}") + records(RETURNS, "often met"))
    known = scales.state_dict()
    assert len(known) == 1000 and "often met" in known and "0000" not in known
    assert scale_of(scales, "0000") == 1.0 != scale_of(scales, "1499")


def trainer_of(rollout: Rollout, **returns: Any) -> MetaTrainer:
    torch.manual_seed(0)
    return MetaTrainer(rollout.agent, LifetimeReturns(0.9, **returns), PPOLoss(), 1e-2)  # type: ignore[arg-type]


@pytest.fixture
def unmeasured() -> Rollout:
    """Lives of bandits that nobody has a floor and a ceiling for."""
    crowd = unmeasured_crowd(8)
    return Rollout(make_agent(crowd.interface), crowd, seed=3)


def test_where_there_are_references_nothing_changes(make_rollout: MakeRollout) -> None:
    rollout = make_rollout(num_lifetimes=8)
    trainer = trainer_of(rollout)
    trainer.returns.reward_scales.add(records(RETURNS, rollout.crowd.task_names[0]))
    for _ in range(3):
        trainer.iterate(rollout, 8, 0.0)
    steps = rollout.collect(8)[0].steps
    plain = steps["reward"] * steps["reward_scale"]
    assert torch.equal(trainer.returns.training_reward(steps), plain)
    weight = 1.0 - trainer.returns.scale.decay**3  # it never began anew
    assert float(trainer.returns.scale.weight) == pytest.approx(weight)


def test_advantages_do_not_know_the_size_of_rewards(unmeasured: Rollout) -> None:
    (_, before), (trajectory, _) = unmeasured.collect(40), unmeasured.collect(40)
    prepared = []
    for size in (1.0, 100.0):
        returns = LifetimeReturns(0.9)
        returns.add_episodes(replace(e, total_return=e.total_return * size) for e in before)
        steps = trajectory.steps.clone()
        steps["reward"] *= size
        prepared.append(returns.prepare(steps, 0.0))
    for name in ("advantage", "value", "value_target"):
        torch.testing.assert_close(prepared[0][name], prepared[1][name])
    assert prepared[0]["advantage"].std() > 0.5


def test_a_slice_counts_by_what_ended_before_it(
    unmeasured: Rollout, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer, before = trainer_of(unmeasured), RewardScales()
    prepare, used = trainer.returns.prepare, []

    def spied(*given: Any) -> TensorDict:
        used.append(trainer.returns.reward_scales.state_dict() == before.state_dict())
        return prepare(*given)

    monkeypatch.setattr(trainer.returns, "prepare", spied)
    for _ in range(4):
        before.add(trainer.iterate(unmeasured, 12, 0.0).episodes)
    assert used == [True] * 4
    assert scale_of(before, unmeasured.crowd.task_names[0]) != 1.0


def test_the_value_scale_begins_anew_when_a_scale_becomes_known(unmeasured: Rollout) -> None:
    trainer = trainer_of(unmeasured)
    trainer.iterate(unmeasured, 20, 0.0)
    assert float(trainer.returns.scale.weight) == 0.0
    trainer.iterate(unmeasured, 20, 0.0)
    assert float(trainer.returns.scale.weight) > 0.0


def test_without_scales_nothing_is_counted(unmeasured: Rollout) -> None:
    trainer = trainer_of(unmeasured, reward_scale="none")
    trainer.iterate(unmeasured, 20, 0.0)
    assert trainer.returns.reward_scales.state_dict() == {}
    steps = unmeasured.collect(8)[0].steps
    assert torch.equal(trainer.returns.training_reward(steps), steps["reward"])


def test_a_resumed_life_is_the_unbroken_one(unmeasured: Rollout) -> None:
    trainer = trainer_of(unmeasured)
    trainer.iterate(unmeasured, 20, 0.0)
    saved = deepcopy((unmeasured.agent.state_dict(), trainer.state_dict(), unmeasured.state_dict()))  # type: ignore[attr-defined]
    crowd = unmeasured_crowd(8)
    rollout = Rollout(make_agent(crowd.interface, seed=7), crowd)
    again = trainer_of(rollout)
    rollout.agent.load_state_dict(saved[0])  # type: ignore[attr-defined]
    again.load_state_dict(saved[1])
    rollout.load_state_dict(saved[2])
    for one, lives in ((trainer, unmeasured), (again, rollout)):
        for _ in range(2):
            one.iterate(lives, 20, 0.0)
    assert again.state_dict()["reward_scales"] == trainer.state_dict()["reward_scales"] != {}
    pairs = zip(again.agent.parameters(), trainer.agent.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_a_trainer_that_was_saved_without_scales_begins_them(unmeasured: Rollout) -> None:
    trainer = trainer_of(unmeasured)
    trainer.iterate(unmeasured, 20, 0.0)
    saved = trainer.state_dict()
    del saved["reward_scales"]
    trainer.load_state_dict(saved)
    assert trainer.returns.reward_scales.state_dict() == {}
    trainer.iterate(unmeasured, 20, 0.0)


def test_regret_stays_unknown(unmeasured: Rollout) -> None:
    lived = unmeasured.collect(20)[1]
    assert len(lived) > 8 and np.isnan(episode_regrets(lived)).all()
