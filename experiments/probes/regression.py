"""In-context regression: a new function in every sequence, seen through examples.

    tokens (x_t, y_{t-1}),   answer y_t = f(x_t),   f drawn anew for every row

Each token carries the last answer's outcome, as an agent's token carries the last reward. The loss
counts every token, the score only the last one, after `size` complete examples.

Source: Garg et al. 2022 (arXiv 2208.01066), with x and y in one token.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from .task import Batch, Task


class Regression(Task):
    """`size` examples of a function of `num_inputs` normal inputs; y has mean 0.

    Score: R^2, 0 for the answer 0. Sequences `[B, size + 1, num_inputs + 1]`.
    """

    size_name = "examples"
    num_outputs = 1
    chance = 0.0

    def __init__(
        self, size: int, train_sizes: Sequence[int], test_sizes: Sequence[int], num_inputs: int = 8
    ) -> None:
        super().__init__(size, train_sizes, test_sizes)
        if num_inputs < 1:
            raise ValueError(f"num_inputs: expected at least 1, got {num_inputs}")
        self.num_inputs = num_inputs
        self.num_features = num_inputs + 1

    @abstractmethod
    def outcomes(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """y `[B, T]` of inputs `[B, T, num_inputs]`, with a new function for every row."""

    def sample(self, rows: int, size: int, generator: torch.Generator) -> Batch:
        x = torch.randn(rows, size + 1, self.num_inputs, generator=generator)
        y = self.outcomes(x, generator)
        previous = torch.cat([torch.zeros(rows, 1), y[:, :-1]], dim=1)
        trained = torch.ones(rows, size + 1, dtype=torch.bool)
        scored = torch.zeros_like(trained)
        scored[:, -1] = True
        inputs = torch.cat([x, previous.unsqueeze(-1)], dim=-1)
        return Batch(inputs, y.unsqueeze(-1), trained, scored)

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        return (outputs - batch.targets)[batch.trained].square().mean()

    def score(self, outputs: Tensor, batch: Batch) -> float:
        error = (outputs - batch.targets)[batch.scored].double().square().sum()
        return float(1 - error / batch.targets[batch.scored].double().square().sum())


class LinearRegression(Regression):
    """f(x) = w . x with w normal, variance 1 and no noise: known after `num_inputs` examples."""

    def outcomes(self, x: Tensor, generator: torch.Generator) -> Tensor:
        weights = torch.randn(x.shape[0], self.num_inputs, 1, generator=generator)
        y: Tensor = (x @ weights).squeeze(-1) * self.num_inputs**-0.5
        return y


class NonlinearRegression(Regression):
    """f(x) = a . tanh(2 V x / sqrt(num_inputs)) with `hidden_width` hidden units and a,
    V normal; variance about 0.6. A score of 1 needs the function itself, which finitely many
    examples do not tell.
    """

    def __init__(
        self,
        size: int,
        train_sizes: Sequence[int],
        test_sizes: Sequence[int],
        num_inputs: int = 4,
        hidden_width: int = 8,
    ) -> None:
        super().__init__(size, train_sizes, test_sizes, num_inputs)
        if hidden_width < 1:
            raise ValueError(f"hidden_width: expected at least 1, got {hidden_width}")
        self.hidden_width = hidden_width

    def outcomes(self, x: Tensor, generator: torch.Generator) -> Tensor:
        rows, inputs, hidden = x.shape[0], self.num_inputs, self.hidden_width
        inner = torch.randn(rows, inputs, hidden, generator=generator) * 2 * inputs**-0.5
        outer = torch.randn(rows, hidden, 1, generator=generator) * hidden**-0.5
        y: Tensor = (torch.tanh(x @ inner) @ outer).squeeze(-1)
        return y
