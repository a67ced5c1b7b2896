"""How many pairs a memory holds: recall after n writes, and the n up to which it is good enough.

    C(n) = share of n stored keys whose answer is closest, by angle, to their own value
    n_90 = the n at which C falls below 0.9

A delta rule stores K independent keys in K key channels without loss; sums of outer products fewer.
Source: the associative recall of Schlag et al. 2021, read by its nearest value.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional

from .checks import check_at_least
from .diagnostics_probe import AssociativeMemory, Flags, Questionnaire, Seen, ask
from .fast_weight import FastWeightMemory
from .views import Tokens
from .wrapped_solvers import Normalised


def random_pairs(
    core: AssociativeMemory,
    num_rows: int,
    num_tokens: int,
    generator: torch.Generator,
    key_length: float = 1.0,
) -> Seen:
    """Keys in random directions, values of length one, and gates as for an input of zeros.

    Keys have no negative entries where the solver needs that. For attention with keys that are not
    normalised a `key_length` of sqrt(key_width) is natural. `generator` is on the CPU.
    """
    heads = core.views.token_heads
    like = core.projection.weight
    number = {"query": heads.num_heads, "key": heads.num_writes, "value": heads.num_writes}
    width = {"query": heads.key_width, "key": heads.key_width, "value": heads.value_width}
    views = {
        name: functional.normalize(
            torch.randn(num_rows, num_tokens, number[name], width[name], generator=generator),
            dim=-1,
        ).to(like)
        for name in number
    }
    if isinstance(core, FastWeightMemory) and isinstance(core.solver, Normalised):
        views["key"] = views["key"].abs()
    views["key"] = key_length * views["key"]
    return Seen(like.new_zeros(num_rows, num_tokens, core.width), Tokens(**views))


@torch.no_grad()
def recall_curve(core: AssociativeMemory, seen: Seen, counts: Sequence[int]) -> Tensor:
    """Recall `[len(counts), H]` after each number of tokens, written into the initial state.

    `seen` gives the pairs and their gates: `random_pairs`, or what `observe` found in a pass, whose
    flags are ignored (nearly equal values then pass for each other). Of tokens with several writes
    all pairs are asked for. Memories that read from a snapshot commit at every token. Raises
    ValueError for counts that do not rise or that exceed the tokens of `seen`.
    """
    rows, steps = seen.x.shape[:2]
    _check_counts(counts, steps)
    token: list[int] = []
    entries: list[range] = []
    writes: list[bool] = []
    for written, count in pairwise([0, *counts]):
        token += [*range(written, count), *range(count)]
        writes += [True] * (count - written) + [False] * count
        entries.append(range(len(token) - count, len(token)))
    commit = torch.ones(rows, steps, dtype=torch.bool, device=seen.x.device)
    questions = Questionnaire(token, writes, [False] * len(token))
    answers = ask(core, seen, core.init_state(rows), Flags(commit=commit), questions)
    values = torch.unflatten(seen.tokens.value, 2, (-1, core.views.token_heads.num_heads))
    return torch.stack(
        [_recall(answers[:, list(asked)], values[:, : len(asked)]) for asked in entries]
    )


def capacity(counts: Sequence[int], recall: Tensor, level: float = 0.9) -> Tensor:
    """`[H]`: the number of tokens at which `recall` `[len(counts), H]` first falls below `level`.

    Interpolated between counts, from recall 1 at zero; the last count where it never falls.
    """
    found = recall.new_full(recall.shape[1:], float(counts[-1]))
    before, at_before = torch.ones_like(found), torch.zeros_like(found)
    fallen = torch.zeros_like(found, dtype=torch.bool)
    for count, now in zip(counts, recall, strict=True):
        falls = ~fallen & (now < level)
        share = (before - level) / (before - now).clamp(min=1e-12)
        found = torch.where(falls, at_before + share * (count - at_before), found)
        fallen, before, at_before = fallen | falls, now, torch.full_like(found, float(count))
    return found


def _recall(answer: Tensor, value: Tensor) -> Tensor:
    """`[H]`: how often the nearest of the stored values `[B, n, writes, H, V]` is the right one."""
    answer, value = (x.flatten(1, 2).transpose(1, 2) for x in (answer, value))
    nearest = (answer @ functional.normalize(value, dim=-1).mT).argmax(-1)
    right = torch.arange(nearest.shape[-1], device=nearest.device)
    return (nearest == right).to(value.dtype).mean((0, 2))


def _check_counts(counts: Sequence[int], steps: int) -> None:
    check_at_least("number of counts", len(counts), 1)
    check_at_least("smallest count", counts[0], 1)
    if any(later <= earlier for earlier, later in pairwise(counts)):
        raise ValueError(f"counts must rise, got {list(counts)}; use {sorted(set(counts))}")
    if counts[-1] > steps:
        raise ValueError(f"largest count must be at most {steps} tokens, got {counts[-1]}")
