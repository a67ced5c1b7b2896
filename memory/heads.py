"""The sizes shared by the pieces of a memory, and the interface of a piece."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor, nn

from .checks import check_at_least


@dataclass(frozen=True)
class Heads:
    """`num_heads` associative maps from keys of `key_width` to values of `value_width` numbers.

    Every token writes `writes_per_token` pairs into each of them, one after the other, and reads
    each with `queries_per_head` queries.
    """

    width: int
    num_heads: int
    key_width: int
    value_width: int
    writes_per_token: int = 1
    queries_per_head: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            check_at_least(field.name, getattr(self, field.name), 1)

    @property
    def num_writes(self) -> int:
        """Pairs a token writes into all heads; write w of head h is number w * num_heads + h."""
        return self.writes_per_token * self.num_heads

    @property
    def num_queries(self) -> int:
        """Queries of a token; query i of head h is number i * num_heads + h."""
        return self.queries_per_head * self.num_heads

    def one_per_write(self) -> Heads:
        """The sizes of a piece that has something of its own for every pair written."""
        return replace(self, num_heads=self.num_writes, writes_per_token=1, queries_per_head=1)


class Piece(nn.Module):
    """A replaceable part of a memory, sized by `heads`, fed by the memory's one input projection.

    `num_features` is how many columns of that projection the piece reads.
    """

    num_features: int = 0

    def __init__(self, heads: Heads) -> None:
        super().__init__()
        self.heads = heads

    def init_projection(self, weight: Tensor) -> None:
        """Initialise the `[num_features, width]` rows of the projection that feed this piece."""
        if weight.numel():
            nn.init.uniform_(weight, -(self.heads.width**-0.5), self.heads.width**-0.5)


def project_pieces(width: int, pieces: list[Piece]) -> nn.Linear:
    """One projection, width -> sum of num_features, for all pieces: one matmul instead of five."""
    sizes = [piece.num_features for piece in pieces]
    projection = nn.Linear(width, sum(sizes), bias=False)
    for piece, rows in zip(pieces, torch.split(projection.weight.detach(), sizes), strict=True):
        piece.init_projection(rows)
    return projection
