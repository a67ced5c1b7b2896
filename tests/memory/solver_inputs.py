"""What solvers are fed in their tests: random tokens with keys of length one, gates and flags.

Batch-first `[B, T, H, ...]`; every leaf takes gradients.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, normalize

from sojourn.memory import Gates, Heads, Tokens

BATCH, HEADS, KEY, VALUE = 3, 2, 5, 4
HEAD = Heads(width=8, num_heads=HEADS, key_width=KEY, value_width=VALUE)
KINDS = ["none", "reset", "mask", "reset and mask"]
DEGENERATE = ["random", "identical keys", "zero keys", "all zero"]
EXTREMES = [0.0, -1e-8, -1.0, -5.0, -50.0, -100.0, -1e30]


def make_tokens(
    steps: int, dtype: torch.dtype = torch.float64, key: int = KEY, value: int = VALUE
) -> Tokens:
    def normal(size: int) -> Tensor:
        return torch.randn(BATCH, steps, HEADS, size, dtype=dtype)

    views = normal(key), normalize(normal(key), dim=-1), normal(value)
    return Tokens(*(view.requires_grad_() for view in views))


def degenerate_tokens(what: str, steps: int, key: int = KEY, value: int = VALUE) -> Tokens:
    """Float32 tokens of one of the kinds `DEGENERATE`."""
    queries, keys, values = (v.detach() for v in make_tokens(steps, torch.float32, key, value))
    if what == "identical keys":
        keys = keys[:, :1].repeat(1, steps, 1, 1)
    elif what != "random":
        keys = torch.zeros_like(keys)
    if what == "all zero":
        queries, values = torch.zeros_like(queries), torch.zeros_like(values)
    return Tokens(*(view.requires_grad_() for view in (queries, keys, values)))


def make_gates(steps: int, dtype: torch.dtype = torch.float64) -> Gates:
    """Retentions of about .9, write rates between 0 and 1."""
    shape = (BATCH, steps, HEADS)
    retention = logsigmoid(torch.randn(shape, dtype=dtype) + 2.0)
    return Gates(retention.requires_grad_(), torch.rand(shape, dtype=dtype).requires_grad_())


def extreme_gates(gate: float | str, steps: int) -> Gates:
    """Float32 gates with one log retention, or with all kinds of them (`mixed`); full writes."""
    choices = torch.tensor(EXTREMES if gate == "mixed" else [gate])
    retention = choices[torch.randint(len(choices), (BATCH, steps, HEADS))]
    return Gates(retention.requires_grad_(), torch.ones_like(retention).requires_grad_())


def make_flags(kind: str, steps: int) -> tuple[Tensor | None, Tensor | None]:
    """Resets at the ends and twice in a row; masks with a gap that is longer than a chunk."""
    reset = torch.rand(BATCH, steps) < 0.15
    reset[0, 0] = reset[2, -1] = True
    reset[1, steps // 2 : steps // 2 + 2] = True
    mask = torch.rand(BATCH, steps) < 0.7
    mask[0, steps // 5 : 2 * steps // 3] = False
    return (reset if "reset" in kind else None), (mask if "mask" in kind else None)
