"""Recurrent baselines: the memories that most agents use.

    GRU     r, z = s(W x + U h),  n = tanh(W_n x + b + r * (U_n h + b')),  h <- (1 - z) n + z h
    LSTM    i, f, o = s(W x + U h),  c <- f c + i tanh(W_g x + U_g h),      h <- o tanh(c)

Sources: Cho et al. 2014; Hochreiter & Schmidhuber 1997. Orthogonal U and forget bias 1 (Jozefowicz
et al. 2015).
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from tensordict import TensorDict
from torch import Tensor, nn
from torch.nn import functional

from .checks import check_at_least
from .core import MemoryCore
from .precision import full_precision, state_dtype


class RecurrentMemory(MemoryCore):
    """The token loop shared by recurrent cells; the output is a projection of the hidden vector.

    `hidden_width` (default: `width`) is the size of each state vector. The initial state is learned
    and starts at zero. Where `mask` is False the unchanged hidden vector is read. `commit` is
    ignored.
    """

    num_gates: int
    state_names: tuple[str, ...]
    """The state's vectors; the first is the hidden vector."""

    def __init__(self, width: int, hidden_width: int | None = None) -> None:
        super().__init__(width)
        self.hidden_width = width if hidden_width is None else hidden_width
        check_at_least("hidden_width", self.hidden_width, 1)
        self.inputs = nn.Linear(width, self.num_gates * self.hidden_width)
        self.recurrent = nn.Parameter(
            torch.empty(self.num_gates * self.hidden_width, self.hidden_width)
        )
        for gate in torch.split(self.recurrent.detach(), self.hidden_width):
            nn.init.orthogonal_(gate)
        self.initial = nn.Parameter(torch.zeros(len(self.state_names), self.hidden_width))
        self.output = nn.Linear(self.hidden_width, width)

    @abstractmethod
    def cell(self, inputs: Tensor, vectors: list[Tensor]) -> list[Tensor]:
        """The next vectors `[B, hidden_width]` from `inputs` `[B, num_gates * hidden_width]`."""

    def init_state(self, batch: int) -> TensorDict:
        """One `[B, hidden_width]` leaf for each of `state_names`."""
        initial = self.initial.to(state_dtype(self.initial))
        leaves = {
            name: vector.expand(batch, -1)
            for name, vector in zip(self.state_names, initial, strict=True)
        }
        return TensorDict(leaves, batch_size=[batch])

    def advance(
        self,
        x: Tensor,
        state: TensorDict,
        reset: Tensor | None = None,
        mask: Tensor | None = None,
        commit: Tensor | None = None,
    ) -> tuple[Tensor, TensorDict]:
        inputs = self.inputs(x)
        initial = list(self.initial)
        hidden = []
        with full_precision(x):
            vectors = [state.get(name) for name in self.state_names]
            for t, inputs_t in enumerate(inputs.to(vectors[0].dtype).unbind(1)):
                if reset is not None:
                    vectors = _where(reset[:, t], initial, vectors)
                moved = self.cell(inputs_t, vectors)
                vectors = moved if mask is None else _where(mask[:, t], moved, vectors)
                hidden.append(vectors[0])
        y: Tensor = self.output(torch.stack(hidden, dim=1))
        leaves = dict(zip(self.state_names, vectors, strict=True))
        return y, TensorDict(leaves, batch_size=state.batch_size)


class GRU(RecurrentMemory):
    """Gated recurrent unit with the reset gate after the matrix product, as in cuDNN."""

    num_gates = 3
    state_names = ("hidden",)

    def __init__(self, width: int, hidden_width: int | None = None) -> None:
        super().__init__(width, hidden_width)
        self.candidate_bias = nn.Parameter(torch.zeros(self.hidden_width))

    def cell(self, inputs: Tensor, vectors: list[Tensor]) -> list[Tensor]:
        (hidden,) = vectors
        sizes = [2 * self.hidden_width, self.hidden_width]
        recurrent = functional.linear(hidden, self.recurrent)
        gate_inputs, candidate_inputs = torch.split(inputs, sizes, dim=-1)
        gate_recurrent, candidate_recurrent = torch.split(recurrent, sizes, dim=-1)
        reset, update = torch.sigmoid(gate_inputs + gate_recurrent).chunk(2, dim=-1)
        candidate = candidate_inputs + reset * (candidate_recurrent + self.candidate_bias)
        return [torch.lerp(torch.tanh(candidate), hidden, update)]


class LSTM(RecurrentMemory):
    """Long short-term memory; its forget gate starts open."""

    num_gates = 4
    state_names = ("hidden", "cell")

    def __init__(self, width: int, hidden_width: int | None = None) -> None:
        super().__init__(width, hidden_width)
        with torch.no_grad():
            self.inputs.bias[self.hidden_width : 2 * self.hidden_width] = 1.0

    def cell(self, inputs: Tensor, vectors: list[Tensor]) -> list[Tensor]:
        hidden, cell = vectors
        gates = inputs + functional.linear(hidden, self.recurrent)
        write, forget, read, candidate = gates.chunk(4, dim=-1)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(write) * torch.tanh(candidate)
        return [torch.sigmoid(read) * torch.tanh(cell), cell]


def _where(rows: Tensor, chosen: list[Tensor], other: list[Tensor]) -> list[Tensor]:
    rows = rows.unsqueeze(-1)
    return [torch.where(rows, a, b) for a, b in zip(chosen, other, strict=True)]
