"""Runs calls of a memory as compiled code, in place of one operation after the other.

    eager      every operation is a call from Python and a pass over memory
    compiled   one graph for every shape of a call, passes that can be one are one

Compiled are single tokens without gradients, which is acting, and several tokens with them, which
is training; all others are eager. The first call of a shape waits for the compiler. Nothing is
kept in a module: a copy of a memory runs the code that was compiled for the memory.

Source: `torch.compile`, Ansel et al. 2024 (PyTorch 2).
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

import torch
from tensordict import TensorDict
from torch import Tensor

from .state import map_leaves
from .transforms import under_torch_func

if TYPE_CHECKING:
    from .core import MemoryCore

BACKEND = "inductor"
"""What makes code of a graph."""
MOST_GRAPHS = 64
"""Of all memories and shapes of a process; PyTorch's own limit of 8 leaves later ones eager."""
Flags = Tensor | None
Consume = Callable[..., tuple[Tensor, TensorDict]]
TRACING_NOISE = (
    ("The .grad attribute", UserWarning),
    (".*should not be instantiated", DeprecationWarning),
)
"""What tracing says of its own doing: it looks at gradients and makes instances of functions."""


def compile_calls(core: MemoryCore) -> None:
    """Let the calls of `core` run as compiled code from now on.

    Raises ValueError for a memory that grows, whose every call would be compiled anew, and where no
    C++ compiler is found.
    """
    if core.grows:
        raise ValueError(
            "compile: this memory grows with every token, so that no two calls have one shape; "
            "use a SlidingWindow in place of the GrowingCache, or compile=false"
        )
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    if shutil.which(shlex.split(compiler)[0]) is None:
        raise ValueError(
            f"compile: needs a C++ compiler, and there is no {compiler!r} here; install one, name "
            "it in the environment variable CXX, or use compile=false"
        )
    core.compiled = True


@contextmanager
def eager(core: MemoryCore) -> Iterator[None]:
    """Calls of `core` are not compiled meanwhile: for shapes that change, and second gradients."""
    compiled, core.compiled = core.compiled, False
    try:
        yield
    finally:
        core.compiled = compiled


def pays_off(x: Tensor) -> bool:
    """Whether a call with `x` `[B, T, width]` is one of those that are compiled."""
    acting = x.shape[1] == 1
    if acting is torch.is_grad_enabled() or under_torch_func():
        return False
    return not torch.compiler.is_compiling()


def run_compiled(
    core: MemoryCore, x: Tensor, state: TensorDict, reset: Flags, mask: Flags, commit: Flags
) -> tuple[Tensor, TensorDict]:
    """`core.consume_eagerly` as compiled code."""
    # Code is made for strides, too: a resumed run must have those of the unbroken one.
    state = map_leaves(Tensor.contiguous, state)
    return _compiled_consume()(core, x.contiguous(), state, reset, mask, commit)


@cache
def _compiled_consume() -> Consume:
    """One for all memories, which finds by its guards what was compiled for the call at hand."""
    for message, category in TRACING_NOISE:
        warnings.filterwarnings("ignore", message, category)
    # The declared overloads of `compile` leave its limit out.
    compiled: Consume = torch.compile(  # type: ignore[call-overload]
        _consume, backend=BACKEND, dynamic=False, recompile_limit=MOST_GRAPHS
    )
    return compiled


def _consume(
    core: MemoryCore, x: Tensor, state: TensorDict, reset: Flags, mask: Flags, commit: Flags
) -> tuple[Tensor, TensorDict]:
    return core.consume_eagerly(x, state, reset, mask, commit)
