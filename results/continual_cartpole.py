"""Continual CartPole with observation offsets: a continuing PPO against its reset twin.

    python results/continual_cartpole.py [--seeds 4] [--iterations 60] [--levels 10]

Level 0 is CartPole with episodes of 400 steps, every later one adds a hidden vector N(0, 2) to what
is seen. `continuing` trains one PPO through all levels, `reset` begins each level with new weights
and a new optimiser; both live the very same levels. A score is the mean return of the episodes that
ended in a level, and the mean over levels; n = seeds, the difference is paired by seed.

PPO: actor and critic 3 x 128 each, LeakyReLU 0.1, discount .99, trace .95, clip .2, 5 epochs,
minibatches of 32, entropy .01, value .5, rewards / 20, Adam 0.001, 800 steps per iteration. Source:
TRAC (Muppidi et al. 2024, arXiv:2405.16642) in the form of C-CHAIN (Tang et al. 2025).
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from sojourn.envs import CartPole, Crowd, Curriculum, Length, Stream

STEPS, EPOCHS, BATCH = 800, 5, 32
DISCOUNT, TRACE, CLIP, ENTROPY, VALUE, LEARNING_RATE = 0.99, 0.95, 0.2, 0.01, 0.5, 1e-3
REWARD_SCALE, MAX_STEPS, SPREAD = 20.0, 400, 2.0


class Slice(NamedTuple):
    """What one iteration lived, `[STEPS, ...]`."""

    seen: Tensor
    action: Tensor
    log_chance: Tensor
    advantage: Tensor
    target: Tensor


class Learner:
    """Actor, critic and their optimiser."""

    def __init__(self, seed: int) -> None:
        self.luck = torch.Generator().manual_seed(seed)
        torch.manual_seed(seed)
        self.actor, self.critic = network(2), network(1)
        weights = [*self.actor.parameters(), *self.critic.parameters()]
        self.optimiser = torch.optim.Adam(weights, LEARNING_RATE, fused=True)

    def update(self, lived: Slice) -> None:
        """PPO on one slice."""
        for _ in range(EPOCHS):
            for rows in torch.randperm(STEPS, generator=self.luck).split(BATCH):
                part = Slice(*(values[rows] for values in lived))
                loss = self.loss(part)
                self.optimiser.zero_grad(set_to_none=True)
                loss.backward()
                self.optimiser.step()

    def loss(self, part: Slice) -> Tensor:
        """Clipped surrogate, squared value error, entropy."""
        logs = self.actor(part.seen).log_softmax(-1)
        ratio = (logs.gather(-1, part.action[:, None])[:, 0] - part.log_chance).exp()
        gain = (part.advantage - part.advantage.mean()) / (part.advantage.std() + 1e-8)
        surrogate = torch.minimum(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
        entropy = -(logs.exp() * logs).sum(-1).mean()
        error = (self.critic(part.seen)[:, 0] - part.target).square().mean()
        return -surrogate + VALUE * error - ENTROPY * entropy


def network(num_outputs: int) -> nn.Sequential:
    """Three hidden layers of 128."""
    layers: list[nn.Module] = []
    for size in (4, 128, 128):
        layers += [nn.Linear(size, 128), nn.LeakyReLU(0.1)]
    return nn.Sequential(*layers, nn.Linear(128, num_outputs))


@torch.no_grad()
def live(crowd: Crowd, learner: Learner) -> tuple[Slice, list[float]]:
    """One slice of life, and the returns of the episodes that ended in it."""
    seen, actions, logs, rewards, ends, returns = [], [], [], [], [], []
    values, ahead = torch.zeros(STEPS), torch.zeros(STEPS)
    for step in range(STEPS):
        now = torch.from_numpy(crowd.observation["vector"][0])
        log = learner.actor(now).log_softmax(-1)
        action = int(torch.multinomial(log.exp(), 1, generator=learner.luck))
        values[step] = learner.critic(now)[0]
        outcome = crowd.step(np.array([action]))
        ended = bool(outcome.terminated[0] | outcome.truncated[0])
        if not outcome.terminated[0]:
            shown = outcome.final_observation if ended else outcome.observation
            assert shown is not None
            ahead[step] = learner.critic(torch.from_numpy(shown["vector"][0]))[0]
        seen.append(now)
        actions.append(action)
        logs.append(log[action])
        rewards.append(float(outcome.reward[0]) / REWARD_SCALE)
        ends.append(ended)
        whole = [r for r in outcome.episodes if r.status in ("terminated", "truncated")]
        returns += [record.total_return for record in whole]
    advantage, running = torch.zeros(STEPS), 0.0
    for step in reversed(range(STEPS)):
        error = rewards[step] + DISCOUNT * float(ahead[step]) - float(values[step])
        running = error + (0.0 if ends[step] else DISCOUNT * TRACE * running)
        advantage[step] = running
    lived = Slice(
        torch.stack(seen), torch.tensor(actions), torch.stack(logs), advantage, advantage + values
    )
    return lived, returns


def life(seed: int, num_levels: int, num_iterations: int, resets: bool) -> list[float]:
    """Mean return of every level."""
    shifted = CartPole(MAX_STEPS, offset_spread=SPREAD)
    levels = Curriculum([CartPole(MAX_STEPS), shifted], [1, max(1, num_levels - 1)])
    crowd = Crowd(Stream(levels, Length(STEPS * num_iterations, "steps"), seed), 1)
    learner, scores = Learner(seed), []
    for level in range(num_levels):
        if resets and level > 0:
            learner = Learner(seed + 1000 * level)
        returns: list[float] = []
        for _ in range(num_iterations):
            lived, ended = live(crowd, learner)
            returns += ended
            learner.update(lived)
        scores.append(float(np.mean(returns)) if returns else float("nan"))
    return scores


def main() -> None:
    """Print a row per seed and agent, and the paired difference."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--levels", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(1)
    means: dict[str, list[float]] = {"continuing": [], "reset": []}
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for name, found in means.items():
            scores = life(seed, options.levels, options.iterations, resets=name == "reset")
            found.append(float(np.mean(scores)))
            row = " ".join(f"{score:.0f}" for score in scores)
            print(f"| {seed} | {name} | {row} | {found[-1]:.1f} |", flush=True)
    difference = np.array(means["continuing"]) - np.array(means["reset"])
    for name, values in {**means, "continuing - reset": difference}.items():
        spread = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
        print(f"| all | {name} | | {np.mean(values):.1f} ± {spread:.1f} |")


if __name__ == "__main__":
    main()
