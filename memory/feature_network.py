"""A learned, nonlinear feature network per head, for queries and keys or for values.

    x + U_h silu(D_h x + c_h),   slow weights D, U, c of head h, U = 0 at first

It starts as the identity: a memory with it begins as the memory without it.

Sources: learned feature maps of queries and keys, Kasai et al. 2021 (T2R, arXiv 2103.13076) and
Zhang et al. 2024 (Hedgehog, arXiv 2402.04347); the residual form is ours.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from .checks import check_at_least


class FeatureNetwork(nn.Module):
    """Two layers per head on vectors of `width`, with `expansion` hidden units per channel."""

    def __init__(self, num_heads: int, width: int, expansion: int) -> None:
        super().__init__()
        check_at_least("feature expansion", expansion, 1)
        hidden = expansion * width
        self.down = nn.Parameter(torch.empty(num_heads, hidden, width))
        nn.init.uniform_(self.down, -(width**-0.5), width**-0.5)
        self.bias = nn.Parameter(torch.zeros(num_heads, hidden))
        self.up = nn.Parameter(torch.zeros(num_heads, width, hidden))

    def forward(self, x: Tensor) -> Tensor:
        """`[B, T, n H, width]`, rows i * H + h through the network of head h; same shape."""
        rows = torch.unflatten(x, 2, (-1, self.down.shape[0]))
        hidden = functional.silu(torch.einsum("...hd,hed->...he", rows, self.down) + self.bias)
        return x + torch.einsum("...he,hde->...hd", hidden, self.up).flatten(2, 3)
