"""How the fast weights move in time.

    W_t = a_t W_{t-1} + b_t e_t k_t^T,   a_t = exp(log_retention_t),  e_t from the objective

Source: the fast-weight view of linear attention, Schlag et al. 2021.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .gates import Gate, NoDecay, RetentionGate, WriteRate
from .heads import Heads, Piece
from .views import Tokens


class Gates(NamedTuple):
    """The log retention (<= 0) of each token and head, and the write rate of each pair written.

    `[B, T, H]` both; rates have `Heads.num_writes` entries when a token writes several pairs.
    """

    log_retention: Tensor
    write_rate: Tensor


class Rule(Piece, ABC):
    """How the fast weights move: from features and tokens to gates of the type `gates`."""

    gates: type[tuple[Tensor, ...]] = Gates
    forgets: bool = True
    """Whether log retentions are ever below zero."""

    @abstractmethod
    def forward(self, features: Tensor, tokens: Tokens) -> Any:
        """Gates of every token from `features` `[B, T, num_features]`."""


class GradientStep(Rule):
    """One gradient step per token: `retention` scales the old weights, `write_rate` the step."""

    def __init__(
        self,
        heads: Heads,
        retention: Callable[[Heads], Gate] = RetentionGate,
        write_rate: Callable[[Heads], Gate] = WriteRate,
    ) -> None:
        super().__init__(heads)
        self.retention = retention(heads)
        self.forgets = not isinstance(self.retention, NoDecay)
        self.write_rate = write_rate(heads.one_per_write())
        self.sizes = [self.retention.num_features, self.write_rate.num_features]
        self.num_features = sum(self.sizes)

    def init_projection(self, weight: Tensor) -> None:
        retention, write_rate = torch.split(weight, self.sizes)
        self.retention.init_projection(retention)
        self.write_rate.init_projection(write_rate)

    def forward(self, features: Tensor, tokens: Tokens) -> Gates:
        retention, write_rate = torch.split(features, self.sizes, dim=-1)
        return Gates(self.retention(retention), self.write_rate(write_rate))
