"""Watches a pass through a memory, and asks a memory what it has stored.

A masked token changes no state and is read all the same: with a stored key in place of its query
and no value, its read is the memory's answer to that key. A questionnaire is a pass in which such
questions stand between the writes; it holds for every solver and cache, at the cost of one pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from tensordict import TensorDict
from torch import Tensor, nn

from .attention import AttentionMemory
from .channel_memory import ChannelGatedMemory
from .diagnostics_gates import opening
from .fast_weight import FastWeightMemory
from .slabs import in_one_piece
from .views import Tokens

AssociativeMemory = FastWeightMemory | ChannelGatedMemory | AttentionMemory
"""Memories that store pairs of keys and values."""
PART = 256
"""Entries of a questionnaire in one call: attention takes memory quadratic in them."""


class Flags(NamedTuple):
    """The flags of a pass, `[B, T]` bool or None for nowhere, as `MemoryCore` takes them."""

    reset: Tensor | None = None
    mask: Tensor | None = None
    commit: Tensor | None = None


@dataclass
class Seen:
    """What one memory saw of a pass."""

    x: Tensor
    """`[B, T, width]`: its input."""
    tokens: Tokens
    gates: Any = None
    """What its rule made of the tokens, None for attention."""
    openings: dict[str, Tensor] = field(default_factory=dict)
    """Where each learned gate stood in its range, `[B, T, ...]`."""
    inner: dict[str, Tensor] = field(default_factory=dict)
    """Measures `[H]` of its solver (`diagnostics_solver`)."""


@dataclass(frozen=True)
class Questionnaire:
    """Which tokens are written and asked for, in the order of time; the same in every row."""

    token: Sequence[int]
    """The token whose pair is written, or whose key is the question."""
    writes: Sequence[bool]
    resets: Sequence[bool]
    """Where a reset of that token happens: at its first mention."""


@contextmanager
def watch(core: AssociativeMemory) -> Iterator[dict[str, Any]]:
    """Records the parts of `Seen` while the memory runs, in a dict that fills meanwhile."""
    found: dict[str, Any] = {"openings": {}}
    with ExitStack() as hooks:
        hooks.enter_context(in_one_piece(core))

        def record(module: nn.Module, name: str) -> None:
            def hook(_: nn.Module, args: tuple[Any, ...], output: Any) -> None:
                found[name] = args[0] if name == "x" else output

            hooks.callback(module.register_forward_hook(hook).remove)

        def record_opening(gate: nn.Module, name: str) -> None:
            def hook(_: nn.Module, args: tuple[Any, ...], output: Any) -> None:
                place = opening(gate, output)
                if place is not None:
                    found["openings"][name] = place

            hooks.callback(gate.register_forward_hook(hook).remove)

        record(core.projection, "x")
        record(core.views, "views")
        if not isinstance(core, AttentionMemory):
            record(core.rule, "gates")
            for path, module in core.rule.named_modules():
                record_opening(module, path.rsplit(".", 1)[-1])
        yield found


def ask(
    core: AssociativeMemory,
    seen: Seen,
    state: TensorDict,
    flags: Flags,
    questions: Questionnaire,
) -> Tensor:
    """Reads `[B, n, writes, H, V]` of the n entries of a questionnaire, taken from `state`.

    Reads of entries that write are meaningless. Of a token that writes several pairs every one is
    asked for.
    """
    token = torch.tensor(questions.token, device=seen.x.device)
    writes = torch.tensor(questions.writes, device=seen.x.device)
    resets = torch.tensor(questions.resets, device=seen.x.device)
    x = seen.x[:, token]
    _, key, value = (view[:, token] for view in seen.tokens)
    value = torch.where(writes[:, None, None], value, 0.0)
    mask = writes.expand(x.shape[:2]) if flags.mask is None else flags.mask[:, token] & writes
    reset = None if flags.reset is None else flags.reset[:, token] & resets
    commit = None if flags.commit is None else flags.commit[:, token] & writes
    answers = []
    for stored in torch.split(key, core.views.token_heads.num_heads, dim=2):
        replaced = Tokens(as_query(core, stored), key, value)
        answers.append(_read(core, replaced, x, state, Flags(reset, mask, commit)))
    return torch.stack(answers, dim=2)


def as_query(core: AssociativeMemory, key: Tensor) -> Tensor:
    """The query that asks for a stored key.

    A matrix answers to the key itself. A network meets keys as they are but lengthens its queries;
    attention has the scale of its scores in the query.
    """
    if isinstance(core, AttentionMemory) or core.anchored:
        return key / math.sqrt(core.views.token_heads.key_width)
    return key


def _read(
    core: AssociativeMemory, tokens: Tokens, x: Tensor, state: TensorDict, flags: Flags
) -> Tensor:
    """What `tokens` in place of the memory's own read, `[B, n, H, V]`, before the readout."""
    reads: list[Tensor] = []
    parts = zip(*(torch.split(view, PART, dim=1) for view in tokens), strict=True)

    def replace(_: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        return Tokens(*next(parts)), output[1]

    def keep(_: nn.Module, args: tuple[Any, ...]) -> None:
        reads.append(args[0])

    with ExitStack() as hooks:
        hooks.enter_context(in_one_piece(core))
        hooks.callback(core.views.register_forward_hook(replace).remove)
        hooks.callback(core.readout.register_forward_pre_hook(keep).remove)
        for start in range(0, x.shape[1], PART):
            part = slice(start, start + PART)
            flags_of_part = (None if flag is None else flag[:, part] for flag in flags)
            state = core(x[:, part], state, *flags_of_part)[1]
    return torch.cat(reads, dim=1)
