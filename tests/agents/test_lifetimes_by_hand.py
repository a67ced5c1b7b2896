"""Rollout, boundaries and advantages against one lifetime, one step and one number at a time."""

from collections.abc import Iterator

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.envs.registration import registry

from sojourn.agents import Agent, LifetimeReturns, Rollout
from sojourn.envs import Crowd, CrowdStep, GymnasiumFamily, Length, NeverRepeating, Stream
from sojourn.memory import FastWeightMemory

DISCOUNT, TRACE, NUM_LIFETIMES, STEPS = 0.9, 0.8, 3, 9
BOUNDARIES = ["episode", "task", "lifetime", "never"]


class Climb(gymnasium.Env[np.ndarray, int]):
    """A noisy counter that terminates at `top`; action 0 climbs twice as fast."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))

    def __init__(self, num_actions: int, top: int) -> None:
        self.action_space = gymnasium.spaces.Discrete(num_actions)  # type: ignore[assignment]
        self.top, self.height = top, 0

    def reset(self, *, seed=None, options=None):  # type: ignore[no-untyped-def]
        super().reset(seed=seed)
        self.height = 0
        return self._seen(), {}

    def step(self, action):  # type: ignore[no-untyped-def]
        self.height += 2 if action == 0 else 1
        return self._seen(), action + 0.1 * self.height, self.height >= self.top, False, {}

    def _seen(self) -> np.ndarray:
        return np.array([self.height, self.np_random.normal()], np.float32)


@pytest.fixture
def stream() -> Iterator[Stream]:
    """Three actions and termination, two actions and time limits; tasks cut in mid-episode."""
    gymnasium.register("Climb3-v0", lambda: Climb(3, top=5))
    gymnasium.register("Climb2-v0", lambda: Climb(2, top=50), max_episode_steps=3)
    families = [GymnasiumFamily("Climb3-v0"), GymnasiumFamily("Climb2-v0")]
    yield Stream(NeverRepeating(families), Length(8, "steps"), seed=3, lifetime_segments=2)
    for name in ("Climb3-v0", "Climb2-v0"):
        del registry[name]


class Life:
    """One row of a crowd, remembered alone."""

    def __init__(self, agent: Agent, row: int) -> None:
        self.agent, self.row = agent, row
        self.forget()

    def forget(self) -> None:
        self.state, self.blank = self.agent.init_state(1), True

    def sees(self, observation: dict[str, np.ndarray], live: bool) -> float:
        """The raw value of what the row sees; a glance (not `live`) leaves no trace."""
        row = slice(self.row, self.row + 1)
        seen = {name: torch.tensor(channel[row]) for name, channel in observation.items()}
        if self.blank:
            seen["previous_action"][:] = self.agent.policy.project.out_features
            seen["previous_reward"][:] = 0.0
        decision = self.agent.act(seen, self.state)
        if live:
            self.state, self.blank = decision.state, False
        return float(decision.value)


def ends(boundary: str, step: CrowdStep, row: int) -> bool:
    flags = {
        "episode": step.terminated | step.truncated,
        "task": step.task_end,
        "lifetime": step.lifetime_end,
        "never": np.zeros(NUM_LIFETIMES, bool),
    }
    return bool(flags[boundary][row])


@pytest.mark.parametrize("memory_reset", BOUNDARIES)
@pytest.mark.parametrize("credit", BOUNDARIES)
@torch.no_grad()
def test_advantages_equal_those_by_hand(stream: Stream, memory_reset: str, credit: str) -> None:
    crowd, twin = (Crowd(stream, NUM_LIFETIMES) for _ in range(2))
    torch.manual_seed(0)
    agent = Agent(crowd.interface, FastWeightMemory(8)).double()
    for parameter in agent.parameters():
        parameter.add_(0.2 * torch.randn_like(parameter))
    rollout = Rollout(agent, crowd, memory_reset, credit)  # type: ignore[arg-type]
    rollout.state = agent.init_state(NUM_LIFETIMES)
    returns = LifetimeReturns(DISCOUNT, TRACE, credit, reward_scale="none")  # type: ignore[arg-type]
    returns.scale.update(3 * torch.randn(10) + 1)

    lives = [Life(agent, row) for row in range(NUM_LIFETIMES)]
    for _ in range(3):  # the memory and the lives go on from slice to slice
        mean, spread = float(returns.scale.mean), float(returns.scale.spread)
        steps = rollout.collect(STEPS)[0].steps
        values, ahead, lived = [], [], []
        for t in range(STEPS):
            values.append([life.sees(twin.observation, live=True) for life in lives])
            lived.append(step := twin.step(steps["action"][:, t].numpy()))
            final = step.final_observation
            ahead.append([0.0 if final is None else life.sees(final, live=False) for life in lives])
            for life in lives:
                if ends(memory_reset, step, life.row):
                    life.forget()
        values.append([life.sees(twin.observation, live=False) for life in lives])

        advantage = torch.zeros(NUM_LIFETIMES, STEPS, dtype=torch.float64)
        for row in range(NUM_LIFETIMES):
            following = 0.0
            for t, step in reversed(list(enumerate(lived))):
                next_value = values[t + 1][row] * spread + mean
                if ends(credit, step, row):
                    time_limit = credit == "episode" and not step.terminated[row]
                    next_value = ahead[t][row] * spread + mean if time_limit else 0.0
                    following = 0.0
                delta = float(step.reward[row]) + DISCOUNT * next_value
                delta -= values[t][row] * spread + mean
                following = advantage[row, t] = delta + DISCOUNT * TRACE * following

        prepared = returns.prepare(steps, progress=0.0)
        centred = advantage - advantage.mean()
        expected = centred / centred.square().mean().sqrt()
        torch.testing.assert_close(prepared["advantage"], expected, atol=1e-5, rtol=1e-5)
        target = advantage + torch.tensor(values[:-1]).T.double() * spread + mean
        scaled = (target - returns.scale.mean) / returns.scale.spread
        torch.testing.assert_close(prepared["value_target"], scaled, atol=1e-5, rtol=1e-5)
