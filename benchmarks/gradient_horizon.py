"""What truncated gradients miss, by memory core and window: a table in Markdown.

Every agent first learns a few updates with whole gradients, on the dark room whose two goals return
within a life (128 steps); then the PPO gradient of fresh lives is taken with and without cuts.

    python benchmarks/gradient_horizon.py [CORE ...]
"""

from __future__ import annotations

import sys

import numpy as np
import torch

from sojourn.agents import Agreement, LifetimeReturns, MetaTrainer, PPOLoss, Rollout
from sojourn.agents import gradient_agreement as agreement
from sojourn.envs import Crowd
from sojourn.experiments.build import build_agent, build_stream
from sojourn.experiments.config import compose_config, parse

CORES = ("gru", "linear_attention", "delta_net", "gated_delta_net", "titans_linear", "ttt_linear")
WINDOWS = (1, 4, 16, 32, 64)
LIFE = 128  # steps
UPDATES, SLICES = 30, 5


def rows_of(core: str) -> list[list[Agreement]]:
    """Agreements of a few slices, `SLICES` lists of one per window."""
    words = [f"memory={core}", "stream=dark_room_recurring", "agent.width=32", "seed=1"]
    config = compose_config(parse(words))
    torch.manual_seed(1)
    stream = build_stream(config, 1)
    agent = build_agent(config, stream)
    rollout = Rollout(agent, Crowd(stream, 32), seed=1)
    returns, loss = LifetimeReturns(0.97, 0.95), PPOLoss()
    trainer = MetaTrainer(agent, returns, loss, 2e-3, num_epochs=2)
    for update in range(UPDATES):
        trainer.iterate(rollout, LIFE, update / UPDATES)
    found = []
    for _ in range(SLICES):
        trajectory, _ = rollout.collect(LIFE)
        steps = returns.prepare(trajectory.steps, 1.0)

        def ppo(outputs: torch.Tensor, values: torch.Tensor, steps=steps) -> torch.Tensor:
            return loss(outputs, values, steps, 1.0, agent.actions)["total"]

        seen, state = steps["observation"], trajectory.state
        found.append(agreement(agent, seen, state, steps["reset"], ppo, WINDOWS))
    return found


def main(cores: list[str]) -> None:
    torch.set_num_threads(1)
    print("| core | " + " | ".join(f"w = {window}" for window in WINDOWS) + " |")
    print("|---|" + "---|" * len(WINDOWS))
    for core in cores or CORES:
        found = rows_of(core)
        cells = []
        for place in range(len(WINDOWS)):
            column = [rows[place] for rows in found]
            whole = np.mean([row.cosine for row in column])
            memory = np.mean([row.memory_cosine for row in column])
            cells.append(f"{whole:.2f} · {memory:.2f}")
        print(f"| {core} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
