"""The model of a probe: a linear encoder, the agent's stack of memory blocks, a linear head.

outputs_t = W_out stack(W_in x_t)
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from sojourn.memory import MemoryCore, Stack

from .task import Task


class ProbeModel(nn.Module):
    """`depth` blocks around memories of one width, made by `make_memory`, each from its initial
    state at the first token.

    A memory that reads from a snapshot commits at every token: it sees all writes but the current
    one.
    """

    def __init__(
        self,
        task: Task,
        make_memory: Callable[[], MemoryCore],
        depth: int = 1,
        mlp_ratio: float = 1.0,
    ) -> None:
        super().__init__()
        self.stack = Stack([make_memory() for _ in range(depth)], mlp_ratio)
        self.encoder = nn.Linear(task.num_features, self.stack.width)
        self.head = nn.Linear(self.stack.width, task.num_outputs)

    def forward(self, inputs: Tensor) -> Tensor:
        """`[B, T, num_features]` to `[B, T, num_outputs]`."""
        x = self.encoder(inputs)
        everywhere = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        commit = everywhere if self.stack.reads_commits else None
        features, _ = self.stack(x, self.stack.init_state(x.shape[0]), commit=commit)
        outputs: Tensor = self.head(features)
        return outputs
