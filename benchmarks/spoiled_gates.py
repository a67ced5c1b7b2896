"""Evolution against spoiled gates: a trained agent is made to forget at once and to write hardly
anything, and the search over its gates has to find its way back.

    sojourn train experiment=bandit num_lifetimes=128 trainer.num_minibatches=8 agent.width=32 \\
        num_steps=384_000 folder=runs/first
    python benchmarks/spoiled_gates.py runs/first
"""

from __future__ import annotations

import sys

import numpy as np
import torch

from sojourn.agents import Agent, Constant, Evolution, Rollout, SharedLuck, grouped_regret
from sojourn.agents.trainer import unseen
from sojourn.envs import Crowd, Stream
from sojourn.experiments.loading import load

LIFE = 100  # steps of a bandit's lifetime
ITERATIONS, LIFETIMES, HELD_OUT = 20, 64, 512


def held_out_regret(agent: Agent, stream: Stream) -> float:
    """Mean normalised regret of lifetimes of a stream that nothing is trained on."""
    lives = Rollout(agent, Crowd(stream, HELD_OUT))
    records = [ending.record for ending in lives.live(LIFE, SharedLuck(5))]
    return float(grouped_regret(records, np.zeros(len(records), int), 1)[0])


def spoil(agent: Agent) -> None:
    """Half-lives e^4 times shorter, write rates about e^3 times smaller."""
    with torch.no_grad():
        for name, parameter in agent.named_parameters():
            if name.endswith("retention.bias"):
                parameter.add_(4.0)
            elif name.endswith("write_rate.bias"):
                parameter.sub_(3.0)


def main(run: str, seed: int) -> None:
    torch.set_num_threads(1)
    trained = load(run)
    agent, stream = trained.agent.requires_grad_(True), trained.stream(1)
    print(f"trained  {held_out_regret(agent, trained.stream(777)):.3f}")
    spoil(agent)
    print(f"spoiled  {held_out_regret(agent, trained.stream(777)):.3f}")
    rollout = Rollout(agent, Crowd(stream, LIFETIMES))
    rate = Constant(0.3)
    search = Evolution(agent, ["*.rule.*"], LIFETIMES, 4, 0.5, rate, seed=seed)
    for number in range(ITERATIONS):
        search.iterate(rollout, LIFE, number / ITERATIONS, unseen)
    steps = ITERATIONS * LIFETIMES * LIFE
    print(f"found    {held_out_regret(agent, trained.stream(777)):.3f} after {steps:,} steps")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
