"""How well a memory answers for the pairs of a pass: those it has met, and those still to come.

    loss   = sum |m(k_j | S_t) - v_j|^2 / sum |v_j|^2    0 is exact, 1 is what an empty memory gets
    cosine = mean of cos(m(k_j | S_t), v_j)              blind to scale, as a normed readout is

over the tokens t of a pass: j = t before and after its own write, j = t + i ahead, j = t - i back.
A loss that is small back but near 1 ahead is memorised; one that falls ahead too is generalised.
What generalises may still be a fixed map: gains compare the loss before the write with that of two
predictors without a memory, the running mean of the values and the best fixed linear map.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from tensordict import TensorDict
from torch import Tensor

from .diagnostics_probe import AssociativeMemory, Flags, Questionnaire, Seen, ask
from .segments import segment_ids
from .views import Tokens

LEADS = (4, 16)
"""Tokens ahead; one ahead is the loss before the next write."""
LAGS = (1, 4, 16, 64)
RIDGE = 1e-6
"""Of the fixed linear map, over the mean square of the key channels: for keys that do not span."""


@dataclass
class Group:
    """Questions of one kind: entries of the questionnaire, their tokens j and times t."""

    entries: list[int] = field(default_factory=list)
    token: list[int] = field(default_factory=list)
    time: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Pairs:
    """Keys `[B, T, writes, H, K]`, values, and which of them count `[B, T, writes, H]`."""

    key: Tensor
    value: Tensor
    counts: Tensor
    segment: Tensor
    """`[B, T]`: tokens with the same number have no reset between them."""


def pair_measures(
    core: AssociativeMemory, seen: Seen, state: TensorDict, flags: Flags, num_samples: int
) -> dict[str, Tensor]:
    """Losses, cosines and gains `[H]` of the pairs of a pass that began at `state`.

    `loss_before` and `loss_after` at every token; `loss_ahead_<i>` and `loss_back_<i>` at
    `num_samples` evenly spaced tokens, for distances that fit into the pass; the cosines alike.
    Masked tokens, zero keys and pairs across a reset are left out; NaN where nothing is left.
    """
    questions, groups = _ask_around(seen.x.shape[1], num_samples)
    answers = ask(core, seen, state, flags, questions)
    pairs = pairs_of(seen.tokens, core.views.token_heads.num_heads, flags)
    measures = {}
    for name, group in groups.items():
        counts = _count(pairs, group)
        answer, value = answers[:, group.entries], pairs.value[:, group.token]
        measures[f"loss_{name}"] = relative_loss(answer, value, counts)
        measures[f"cosine_{name}"] = _mean_cosine(answer, value, counts)
    mean, linear = running_mean(pairs), best_linear(pairs)
    for name, prediction in (("mean", mean), ("linear", linear)):
        loss = relative_loss(prediction, pairs.value, pairs.counts)
        measures[f"gain_over_{name}"] = loss - measures["loss_before"]
    return measures


def pairs_of(tokens: Tokens, num_heads: int, flags: Flags) -> Pairs:
    """The pairs that `tokens` write, apart by write and head."""
    key, value = (torch.unflatten(view, 2, (-1, num_heads)) for view in (tokens.key, tokens.value))
    counts = (key != 0).any(-1)
    if flags.mask is not None:
        counts = counts & flags.mask[:, :, None, None]
    if flags.reset is None:
        segment = torch.zeros(key.shape[:2], dtype=torch.int64, device=key.device)
    else:
        segment = segment_ids(flags.reset)
    return Pairs(key, value, counts, segment)


def relative_loss(answer: Tensor, value: Tensor, counts: Tensor) -> Tensor:
    """The squared error of `answer` over the square of `value`, `[B, n, writes, H, V]`, as `[H]`.

    Both are summed where `counts` `[B, n, writes, H]`; NaN where the values are zero or missing.
    """
    error, size = ((x.square().sum(-1) * counts).sum((0, 1, 2)) for x in (answer - value, value))
    return error / size


def running_mean(pairs: Pairs) -> Tensor:
    """Before every token, the mean of the segment's earlier values of the pass; zero before any."""
    together = pairs.segment.unsqueeze(2) == pairs.segment.unsqueeze(1)
    weight = together.tril(-1).to(pairs.value.dtype)
    counted = torch.where(pairs.counts.unsqueeze(-1), pairs.value, 0.0)
    total = torch.einsum("btj,bjwhv->btwhv", weight, counted)
    number = torch.einsum("btj,bjwh->btwh", weight, pairs.counts.to(weight.dtype))
    return total / number.clamp(min=1.0).unsqueeze(-1)


def best_linear(pairs: Pairs) -> Tensor:
    """The predictions of the one matrix per head that fits all pairs best, in every row.

    It is fitted to the very pairs that it predicts: no fixed matrix has a smaller loss, and with
    few pairs it flatters itself.
    """
    counted = pairs.counts.unsqueeze(-1)
    key, value = (
        torch.where(counted, view, 0.0).double().movedim(3, 0).flatten(1, 3)
        for view in (pairs.key, pairs.value)
    )
    moments = key.mT @ key
    energy = moments.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None].clamp(min=1e-30)
    identity = torch.eye(key.shape[-1], dtype=key.dtype, device=key.device)
    # Keys of a diverged memory may be non-finite: then the gain is NaN, without an exception.
    fitted = torch.linalg.solve_ex(moments + RIDGE * energy * identity, key.mT @ value).result
    return torch.einsum("btwhk,hkv->btwhv", pairs.key, fitted.to(pairs.key.dtype))


def _ask_around(steps: int, num_samples: int) -> tuple[Questionnaire, dict[str, Group]]:
    """Every token's question before and after its write, and at some the distant ones."""
    distances = {f"ahead_{lead}": lead for lead in LEADS if lead < steps}
    distances |= {f"back_{lag}": -lag for lag in LAGS if lag < steps}
    groups = {name: Group() for name in ("before", "after", *distances)}
    sampled = set(sample_times(steps, num_samples))
    token: list[int] = []

    def question(name: str, about: int, time: int) -> None:
        groups[name].entries.append(len(token))
        groups[name].token.append(about)
        groups[name].time.append(time)
        token.append(about)

    written = []
    for time in range(steps):
        question("before", time, time)
        written.append(len(token))
        token.append(time)
        question("after", time, time)
        if time in sampled:
            for name, distance in distances.items():
                if 0 <= time + distance < steps:
                    question(name, time + distance, time)
    writes, resets = [False] * len(token), [False] * len(token)
    for entry, first in zip(written, groups["before"].entries, strict=True):
        writes[entry] = resets[first] = True
    groups = {name: group for name, group in groups.items() if group.entries}
    return Questionnaire(token, writes, resets), groups


def sample_times(steps: int, num_samples: int) -> Sequence[int]:
    """At most `num_samples` tokens, evenly spaced, the last one of the pass among them."""
    return sorted({(i + 1) * steps // num_samples - 1 for i in range(num_samples)} - {-1})


def _count(pairs: Pairs, group: Group) -> Tensor:
    """Which questions of a group count `[B, n, writes, H]`: no reset between t and j."""
    together = pairs.segment[:, group.token] == pairs.segment[:, group.time]
    return pairs.counts[:, group.token] & together[:, :, None, None]


def _mean_cosine(answer: Tensor, value: Tensor, counts: Tensor) -> Tensor:
    cosine = torch.cosine_similarity(answer, value, dim=-1) * counts
    return cosine.sum((0, 1, 2)) / counts.sum((0, 1, 2))
