"""Laws of evolution: an unbiased estimate, common luck, exact resume, and it improves a bandit."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest
import torch
from tensordict import TensorDict
from torch import Tensor, nn

from sojourn.agents import Constant, Decision, Evolution, Rollout, antithetic_estimate
from sojourn.agents.actions import OneChoice
from sojourn.agents.chosen_parameters import ChosenParameters
from sojourn.agents.evolution import shape
from sojourn.agents.trainer import unseen
from sojourn.envs import Crowd

from .conftest import bandit_stream

MakeRollout = Callable[..., Rollout]


class Gates(nn.Module):
    def __init__(self, forget: float, boldness: float) -> None:
        super().__init__()
        self.forget = nn.Parameter(torch.tensor([forget]))
        self.boldness = nn.Parameter(torch.tensor([boldness]))


class RunningMeans(nn.Module):
    """A bandit player by hand: means that fade at a rate, and a softmax of some boldness.

    A blank "previous action" (A) moves nothing.
    """

    def __init__(self, num_actions: int, forget: float = 2.0, boldness: float = 0.0) -> None:
        super().__init__()
        self.actions = OneChoice(num_actions)
        self.rule = Gates(forget, boldness)
        self.body = nn.Linear(40, 40)
        self.device = torch.device("cpu")

    def init_state(self, batch: int) -> TensorDict:
        zeros = torch.zeros(batch, self.actions.num_outputs)
        return TensorDict({"sum": zeros, "count": zeros.clone()}, batch_size=[batch])

    def act(
        self,
        observation: Mapping[str, Tensor],
        state: TensorDict,
        reset: Tensor | None = None,
        uniform: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Decision:
        num = self.actions.num_outputs
        keep = torch.sigmoid(-self.rule.forget)
        if reset is not None:
            keep = torch.where(reset, 0.0, keep).unsqueeze(1)
        previous = nn.functional.one_hot(observation["previous_action"], num + 1)[:, :num]
        total = keep * state["sum"] + previous * observation["previous_reward"].unsqueeze(1)
        count = keep * state["count"] + previous
        logits = torch.exp(self.rule.boldness) * (total + 0.5) / (count + 1.0)
        assert uniform is not None
        action = self.actions.sample(logits, uniform)
        log_prob = self.actions.log_prob(logits, action)
        after = TensorDict({"sum": total, "count": count}, batch_size=[len(total)])
        return Decision(action, log_prob, torch.zeros(len(total)), after, total.unsqueeze(-1))


def bandit_rollout(num_lifetimes: int = 8, pulls: int = 30) -> Rollout:
    stream = bandit_stream(pulls=pulls, lifetime_segments=1)
    return Rollout(RunningMeans(3), Crowd(stream, num_lifetimes))


def evolution(rollout: Rollout, **kwargs: object) -> Evolution:
    plain: dict[str, object] = {"parameters": ["rule.*"], "num_lifetimes": 8, "num_pairs": 2}
    return Evolution(rollout.agent, **{**plain, **kwargs})  # type: ignore[arg-type]


def test_on_a_quadratic_the_estimate_is_the_gradient() -> None:
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(6, 6, generator=generator, dtype=torch.float64)
    hessian, slope = root @ root.T, torch.randn(6, generator=generator, dtype=torch.float64)
    centre = torch.randn(6, generator=generator, dtype=torch.float64)

    def value(x: Tensor) -> Tensor:
        return 0.5 * (x @ hessian * x).sum(-1) + x @ slope

    estimates = []
    for _ in range(2000):
        noise = torch.randn(4, 6, generator=generator, dtype=torch.float64)
        values = torch.cat([value(centre + 0.3 * noise), value(centre - 0.3 * noise)])
        estimates.append(antithetic_estimate(noise, values, 0.3))
    found = torch.stack(estimates)
    error = found.std(0) / len(found) ** 0.5
    gradient = hessian @ centre + slope
    assert ((found.mean(0) - gradient).abs() < 4 * error).all()
    assert (error < 0.1 * gradient.abs().max()).all(), "or the law would say nothing"


def test_what_both_members_share_cancels() -> None:
    noise = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    luck = torch.randn(5, dtype=torch.float64) * 100
    values = torch.cat([luck, luck]) + torch.cat([noise @ torch.ones(3).double()] * 2) * 0
    assert torch.equal(antithetic_estimate(noise, values, 0.1), torch.zeros(3).double())


def test_shapes_ignore_scale_and_shift_and_share_ranks() -> None:
    values = torch.tensor([3.0, 1.0, 3.0, 90.0], dtype=torch.float64)
    torch.testing.assert_close(
        shape(values, "rank"), torch.tensor([0.0, -0.5, 0.0, 0.5], dtype=torch.float64)
    )
    for shaping in ("rank", "standardised"):
        shaped = shape(values, shaping)  # type: ignore[arg-type]
        torch.testing.assert_close(shape(7 * values - 5, shaping), shaped)  # type: ignore[arg-type]
        assert abs(float(shaped.sum())) < 1e-12
        assert torch.equal(shape(torch.full((4,), 2.0), shaping), torch.zeros(4))  # type: ignore[arg-type]


def test_both_members_of_a_pair_live_the_same_segments_with_the_same_luck() -> None:
    rollout = bandit_rollout()
    one = evolution(rollout)
    first, again, other = (one._live(rollout, pair, 30) for pair in (0, 0, 1))
    assert repr(first) == repr(again)
    assert {record.lifetime for record in first}.isdisjoint({r.lifetime for r in other})


def test_only_the_chosen_parameters_move_and_the_rollout_stands_still() -> None:
    rollout = bandit_rollout()
    body = rollout.agent.body.weight.clone()  # type: ignore[attr-defined]
    gates = [p.clone() for p in rollout.agent.rule.parameters()]  # type: ignore[attr-defined]
    before = repr(rollout.crowd.state_dict())
    done = evolution(rollout).iterate(rollout, 30, 0.0, unseen)
    assert torch.equal(rollout.agent.body.weight, body)  # type: ignore[attr-defined]
    after = list(rollout.agent.rule.parameters())  # type: ignore[attr-defined]
    assert not any(torch.equal(a, b) for a, b in zip(gates, after, strict=True))
    assert repr(rollout.crowd.state_dict()) == before
    assert len(done.episodes) == 8
    assert len({record.lifetime for record in done.episodes}) == 8, "each has a number of its own"
    assert 0.0 < done.metrics["losses/regret"] < 2.0


def test_same_seed_same_bits_and_a_resumed_search_is_the_unbroken_one() -> None:
    def run(split: bool) -> tuple[Tensor, dict[str, float]]:
        rollout = bandit_rollout()
        search = evolution(rollout, seed=3)
        search.iterate(rollout, 30, 0.0, unseen)
        if split:
            weights, saved = rollout.agent.state_dict(), search.state_dict()  # type: ignore[attr-defined]
            rollout = bandit_rollout()
            rollout.agent.load_state_dict(weights)  # type: ignore[attr-defined]
            search = evolution(rollout, seed=3)
            search.load_state_dict(saved)
        metrics = [search.iterate(rollout, 30, 0.5, unseen).metrics for _ in range(2)][-1]
        return search.chosen.read(), metrics

    whole, again, resumed = run(False), run(False), run(True)
    assert torch.equal(whole[0], again[0]) and whole[1] == again[1]
    assert torch.equal(whole[0], resumed[0]) and whole[1] == resumed[1]


def test_it_improves_the_gates_of_a_bandit_player() -> None:
    # Forgets nearly everything at once and hardly listens: close to random.
    rollout = bandit_rollout(num_lifetimes=128)
    search = evolution(
        rollout, num_lifetimes=128, num_pairs=4, spread=0.5, learning_rate=Constant(0.3)
    )
    regrets = [search.iterate(rollout, 30, 0.0, unseen).metrics["losses/regret"] for _ in range(15)]
    assert sum(regrets[:2]) / 2 > 0.8
    assert sum(regrets[-2:]) / 2 < 0.55
    _, boldness = search.chosen.read()
    assert boldness > 1.0


def test_a_memory_core_is_searched_too(make_rollout: MakeRollout) -> None:
    rollout = make_rollout(segments=1)
    search = Evolution(rollout.agent, ["*.rule.*"], num_lifetimes=4, num_pairs=1)
    before = search.chosen.read()
    assert search.chosen.count == 8, "retention and write rate of two heads in two layers"
    search.iterate(rollout, 10, 0.0, unseen)
    assert torch.isfinite(search.chosen.read()).all()
    assert search.chosen.read().shape == before.shape


def test_lives_of_unknown_regret_are_refused_and_the_weights_put_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(records: object, group: object, num_groups: int) -> np.ndarray:
        return np.full(num_groups, np.nan)

    monkeypatch.setattr("sojourn.agents.evolution.grouped_regret", unknown)
    rollout = bandit_rollout()
    search = evolution(rollout)
    before = search.chosen.read()
    with pytest.raises(ValueError, match="no regret is known of some lives of 5 steps"):
        search.iterate(rollout, 5, 0.0, unseen)
    assert torch.equal(search.chosen.read(), before)


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (["*.gate.*"], "'\\*.gate.\\*' matches none of the agent's; nearest"),
        ([], "expected at least one pattern"),
        (["*"], "1,642 numbers are chosen, at most 1,000 .* leave out body.weight \\(1,600\\)"),
    ],
)
def test_a_wrong_choice_of_parameters_is_one_clear_line(patterns: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=f"^parameters: {message}"):
        ChosenParameters(RunningMeans(3), patterns)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_pairs": 3}, "num_pairs: 8 lifetimes cannot be split .* num_lifetimes=6"),
        ({"num_pairs": 0}, "num_pairs: 8 lifetimes cannot be split"),
        ({"spread": 0.0}, "spread: expected a number above 0, got 0.0"),
        ({"shaping": "centred"}, "shaping: expected one of rank, standardised, got 'centred'"),
    ],
)
def test_impossible_numbers_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evolution(bandit_rollout(), **changes)
