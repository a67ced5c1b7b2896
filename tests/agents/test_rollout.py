"""Laws of acting: slices have no seams, memory resets where told to, a life can be resumed."""

import io
from collections.abc import Callable

import pytest
import torch

from sojourn.agents import Rollout

MakeRollout = Callable[..., Rollout]


def test_slice_borders_are_invisible(make_rollout: MakeRollout, core_name: str) -> None:
    whole, _ = make_rollout(core_name).collect(24)
    parts = make_rollout(core_name)
    slices = [parts.collect(n)[0].steps for n in (1, 7, 0, 8, 8)]
    joined = {
        name: torch.cat([s[name] for s in slices if s.shape[1]], 1) for name in ("action", "reward")
    }
    assert torch.equal(joined["action"], whole.steps["action"])
    assert torch.equal(joined["reward"], whole.steps["reward"])


@pytest.mark.parametrize("memory_reset", ["episode", "task", "lifetime", "never"])
def test_acting_equals_training(
    make_rollout: MakeRollout, core_name: str, memory_reset: str
) -> None:
    rollout = make_rollout(core_name, segments=2, memory_reset=memory_reset)
    for _ in range(3):  # the second and third slices start in the middle of lives
        trajectory, _ = rollout.collect(13)
        steps = trajectory.steps
        logits, values, state = rollout.agent.unroll(
            steps["observation"], trajectory.state, steps["reset"]
        )
        log_prob = torch.log_softmax(logits, -1).gather(-1, steps["action"].unsqueeze(-1))
        ratio = (log_prob.squeeze(-1) - steps["log_prob"]).exp()
        assert (ratio - 1).abs().max() < 1e-5
        torch.testing.assert_close(values, steps["value"], atol=1e-5, rtol=1e-4)
        for name, leaf in state.items(True, True):
            torch.testing.assert_close(leaf, rollout.state[name], atol=1e-4, rtol=1e-4)


EXPECTED_RESETS = {  # 4 pulls per episode, 2 episodes per task, 2 tasks per lifetime
    "episode": [0, 4, 8, 12, 16],
    "task": [0, 8, 16],
    "lifetime": [0, 16],
    "never": [0],
}


@pytest.mark.parametrize("memory_reset", EXPECTED_RESETS)
def test_memory_resets_at_the_chosen_boundary_only(
    make_rollout: MakeRollout, memory_reset: str
) -> None:
    rollout = make_rollout(segments=2, pulls=4, memory_reset=memory_reset)
    trajectory, _ = rollout.collect(18)
    steps, none_yet = trajectory.steps, rollout.crowd.interface.num_actions
    assert steps["reset"][0].nonzero().flatten().tolist() == EXPECTED_RESETS[memory_reset]
    forgotten = steps["observation", "previous_action"] == none_yet
    lifetime_starts = torch.zeros_like(forgotten)
    lifetime_starts[:, [0, 16]] = True
    assert torch.equal(forgotten, steps["reset"] | lifetime_starts)
    assert (steps["observation", "previous_reward"][forgotten] == 0).all()
    kept = ~forgotten[:, 1:]
    previous = steps["observation", "previous_action"][:, 1:]
    assert torch.equal(previous[kept], steps["action"][:, :-1][kept])


@pytest.mark.parametrize("memory_reset", ["lifetime", "episode"])
def test_a_resumed_life_equals_an_unbroken_one(
    make_rollout: MakeRollout, core_name: str, memory_reset: str
) -> None:
    unbroken = make_rollout(core_name, memory_reset=memory_reset)
    unbroken.collect(7)
    saved = io.BytesIO()
    torch.save(_plain(unbroken.state_dict()), saved)
    expected, expected_episodes = unbroken.collect(9)
    saved.seek(0)
    resumed = make_rollout(core_name, memory_reset=memory_reset)
    resumed.load_state_dict(torch.load(saved, weights_only=True))
    assert set(resumed.state.keys(True)) == set(unbroken.state.keys(True))
    found, found_episodes = resumed.collect(9)
    for one in (expected, found):  # the restored memory can be trained through as well
        resumed.agent.unroll(one.steps["observation"], one.state, one.steps["reset"])
    for name, column in expected.steps.items(True, True):
        assert torch.equal(column.nan_to_num(), found.steps[name].nan_to_num()), name
    assert repr(found_episodes) == repr(expected_episodes)


def _plain(value: object) -> object:
    """NumPy arrays as tensors, as a checkpoint stores them."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return torch.from_numpy(value) if type(value).__module__ == "numpy" else value


def test_a_life_with_another_memory_is_refused(make_rollout: MakeRollout) -> None:
    saved = make_rollout("gru").state_dict()
    other = make_rollout("lstm")
    before = other.state
    with pytest.raises(KeyError, match="memory state: expected"):
        other.load_state_dict(saved)
    assert other.state is before


def test_the_last_value_is_that_of_the_next_slice(make_rollout: MakeRollout) -> None:
    rollout = make_rollout()
    first, _ = rollout.collect(5)
    second, _ = rollout.collect(1)
    assert torch.equal(first.steps["next_value"][:, -1], second.steps["value"][:, 0])
    assert torch.equal(first.steps["next_value"][:, :-1], first.steps["value"][:, 1:])


def test_greedy_acting_takes_the_likeliest_action(make_rollout: MakeRollout) -> None:
    rollout = make_rollout(greedy=True)
    trajectory, _ = rollout.collect(6)
    steps = trajectory.steps
    logits, _, _ = rollout.agent.unroll(steps["observation"], trajectory.state, steps["reset"])
    assert torch.equal(steps["action"], logits.argmax(-1))


@pytest.mark.parametrize(("name", "value"), [("memory_reset", "epsiode"), ("credit", "life")])
def test_an_unknown_boundary_is_refused(make_rollout: MakeRollout, name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: expected one of episode, task, lifetime, never"):
        make_rollout(**{name: value})


def test_a_snapshot_memory_sees_past_episodes_from_the_next_one_on(
    make_rollout: MakeRollout,
) -> None:
    rollout = make_rollout("memt")  # episodes of five pulls
    trajectory, _ = rollout.collect(10)
    observation, agent = trajectory.steps["observation"], rollout.agent
    with torch.no_grad():  # reads of a fresh core are zero: let its memory be heard
        for parameter in agent.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        logits, _, _ = agent.unroll(observation, agent.init_state(4))
        changed = observation.clone()
        changed["previous_action"][:, 2] = (changed["previous_action"][:, 2] + 1) % 3
        after, _, _ = agent.unroll(changed, agent.init_state(4))
    difference = (logits - after).abs().amax(dim=(0, 2))
    # Two convolutions of width 4 alone reach six steps back, from pull 2 to pull 8.
    assert difference[9] > 1e-7, "the second episode remembers the first"
