"""Read-only measures of a memory and of one pass through it, layer by layer and head by head.

What a layer stores and how it is gated is watched while it runs; what it has learned is asked from
it afterwards by masked tokens. Nothing is changed: no state, parameter, gradient or generator.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from .attention import AttentionMemory
from .channel_memory import ChannelGatedMemory
from .checks import check_at_least
from .composite import Composite
from .containment import bad_rows
from .core import MemoryCore
from .diagnostics_gates import gate_measures
from .diagnostics_pairs import pair_measures
from .diagnostics_probe import Flags, Seen, watch
from .diagnostics_solver import Watch, watch_solver
from .diagnostics_state import state_measures
from .fast_weight import FastWeightMemory

Measures = dict[str, dict[str, Tensor]]
"""Layer -> measure -> one number per head, `[H]`, or `[1]` for what a layer has only once."""


def layers_of(core: MemoryCore) -> dict[str, MemoryCore]:
    """The single memories that a memory is made of, by their dotted path in its state.

    A memory that is no `Composite` is its own layer, `memory`.
    """
    found: dict[str, MemoryCore] = {}
    parts = core.members() if isinstance(core, Composite) else {}
    for name, part in parts.items():
        for path, layer in layers_of(part).items():
            found[name if path == "memory" else f"{name}.{path}"] = layer
    return found or {"memory": core}


@torch.no_grad()
def observe(
    core: MemoryCore,
    x: Tensor,
    state: TensorDict,
    reset: Tensor | None = None,
    mask: Tensor | None = None,
    commit: Tensor | None = None,
) -> tuple[dict[str, Seen], TensorDict]:
    """Run `core` as its `forward` does: what its associative layers saw, and the state after."""
    with ExitStack() as watches:
        found: dict[str, dict[str, Any]] = {}
        inner: dict[str, list[Watch]] = {}
        for path, layer in layers_of(core).items():
            if isinstance(layer, FastWeightMemory | ChannelGatedMemory | AttentionMemory):
                found[path] = watches.enter_context(watch(layer))
            if isinstance(layer, FastWeightMemory):
                inner[path] = watches.enter_context(watch_solver(layer))
        _, after = core(x, state, reset, mask, commit)
    seen = {
        path: Seen(parts["x"], parts["views"][0], parts.get("gates"), parts["openings"])
        for path, parts in found.items()
        if "x" in parts
    }
    for path, one in seen.items():
        for of_solver in inner.get(path, ()):
            one.inner |= of_solver.measures()
    return seen, after


@torch.no_grad()
def diagnose(
    core: MemoryCore,
    x: Tensor,
    state: TensorDict,
    reset: Tensor | None = None,
    mask: Tensor | None = None,
    commit: Tensor | None = None,
    num_samples: int = 8,
) -> Measures:
    """The measures that exist for each layer of `core`, from the pass of `x` `[B, T, width]`.

    - every layer: `finite_rows`, the share of rows whose input and state were finite; all other
      measures are over these rows, of the state after the pass (`state_measures`);
    - layers with gates: `half_life_*`, `write_strength`, `*_saturated` (`gate_measures`);
    - layers that store pairs: `loss_*`, `cosine_*`, `gain_over_*` (`pair_measures`), the distant
      ones at `num_samples` tokens;
    - layers that solve or descend inside: `solve_*`, `inner_*` (`diagnostics_solver`).

    A pass without tokens has only the measures of the state. Raises ValueError as `forward` does.
    """
    check_at_least("num_samples", num_samples, 1)
    finite = _finite_rows(x, state)
    share = finite.to(x.dtype).mean(0, True)
    if not finite.any():
        return {path: {"finite_rows": share} for path in layers_of(core)}
    flags = Flags(*(None if flag is None else flag[finite] for flag in (reset, mask, commit)))
    x, state = x[finite], state[finite]
    seen, after = observe(core, x, state, *flags)
    measures: Measures = {}
    for path, layer in layers_of(core).items():
        parts = {"finite_rows": share} | state_measures(layer, _part(after, path))
        if path in seen:
            parts |= _of_pass(layer, seen[path], _part(state, path), flags, num_samples)
        measures[path] = parts
    return measures


def _of_pass(
    layer: MemoryCore, seen: Seen, state: TensorDict, flags: Flags, num_samples: int
) -> dict[str, Tensor]:
    measures: dict[str, Tensor] = {}
    if isinstance(layer, FastWeightMemory | ChannelGatedMemory):
        mask = flags.mask
        valid = torch.ones_like(seen.x[..., 0], dtype=torch.bool) if mask is None else mask
        measures |= gate_measures(layer, seen.tokens, seen.gates, seen.openings, valid)
    if isinstance(layer, FastWeightMemory | ChannelGatedMemory | AttentionMemory):
        measures |= pair_measures(layer, seen, state, flags, num_samples)
        measures |= seen.inner
    return measures


def _part(state: TensorDict, path: str) -> TensorDict:
    """The state of the layer at a path of `layers_of`."""
    if path == "memory":
        return state
    for name in path.split("."):
        state = state.get(name)
    return state


def _finite_rows(x: Tensor, state: TensorDict) -> Tensor:
    """`[B]`: rows without a non-finite number in their tokens or their state."""
    return torch.isfinite(x).flatten(1).all(1) & ~bad_rows(state, x)
