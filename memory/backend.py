"""Which code runs the chunks of an exact memory: PyTorch, or kernels of flash-linear-attention.

    torch   always PyTorch
    fla     the kernels; an error where memory, device, precision or installation has none
    auto    the kernels where they run, PyTorch elsewhere; a warning says once which, and why

Single tokens and calls with a reset inside are PyTorch's everywhere: kernels know no initial state
in the middle of a call. They have no second derivative, and multiply float32 as the GPU does best.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from .backend_kernels import Kernel
from .checks import check_choice
from .transforms import under_torch_func

BACKENDS = ("torch", "fla", "auto")
PACKAGE = "fla"
DEVICE = "cuda"
LONGEST_KEY = 256
CHOSEN = "kernels of flash-linear-attention; PyTorch for single tokens and calls with a reset"


class Backend:
    """The choice `name` of one solver, whose rule `kernel` runs; None: no kernel does.

    Raises ValueError for an unknown name, and for `fla` without a kernel or without the package.
    """

    def __init__(self, kernel: Kernel | None, name: str = "torch", owner: str = "") -> None:
        check_choice("backend", name, BACKENDS)
        self.kernel, self.name = kernel, name
        self.lack: str | None = None
        if kernel is None:
            self.lack = f"flash-linear-attention has no kernel for {owner}"
        elif name != "torch" and find_spec(PACKAGE) is None:
            self.lack = "flash-linear-attention is not installed"
        self._refuse(self.lack)
        self._tell(self.lack)

    def check_device(self, device: torch.device) -> None:
        """Raise ValueError where `fla` is asked for and `device` runs no kernel."""
        self._refuse(_lack_of_device(device))

    def takes(self, query: Tensor, reset: Tensor | None) -> bool:
        """Whether the kernel runs a call of several tokens; looks into `reset`, if any, once.

        Raises ValueError where `fla` is asked for and device or precision has no kernel.
        """
        if self.name == "torch":
            return False
        lack = self.lack or _lack_of(query)
        self._refuse(lack)
        self._tell(lack or CHOSEN)
        return not lack and (reset is None or not bool(reset.any()))

    def run(self, weights: Tensor, *views: Any) -> tuple[Tensor, Tensor]:
        """Reads `[B, T, M, V]` and the last weights `[B, M, V, K]`; views as the kernel wants."""
        assert self.kernel is not None
        return self.kernel(weights, *views)

    def _refuse(self, lack: str | None) -> None:
        if lack and self.name == "fla":
            raise ValueError(f"backend=fla: {lack}; use backend=torch")

    def _tell(self, what: str | None) -> None:
        if what and self.name == "auto":
            _say_once("backend=auto: " + (what if what == CHOSEN else f"PyTorch, since {what}"))


def _lack_of(query: Tensor) -> str | None:
    """Why no kernel runs a call of such queries."""
    if query.dtype == torch.float64:
        return "kernels have no float64"
    if under_torch_func():
        return "kernels are closed to torch.func"
    if query.shape[-1] > LONGEST_KEY:
        return f"kernels take keys of at most {LONGEST_KEY} channels, not {query.shape[-1]}"
    return _lack_of_device(query.device)


def _lack_of_device(device: torch.device) -> str | None:
    return None if device.type == DEVICE else f"kernels need a {DEVICE} device, not {device}"


@cache
def _say_once(text: str) -> None:
    """Warn, once per process."""
    warnings.warn(text, stacklevel=2)


def choose_backend(solver: nn.Module, name: str) -> None:
    """Give the solver that runs the recurrence inside `solver` the backend called `name`.

    Raises ValueError as `Backend` does.
    """
    inner: Any = solver
    while not hasattr(inner, "backend") and isinstance(getattr(inner, "solver", None), nn.Module):
        inner = inner.solver
    kernel = inner.backend.kernel if hasattr(inner, "backend") else None
    inner.backend = Backend(kernel, name, type(inner).__name__)


def check_backends(module: nn.Module, device: torch.device) -> None:
    """Raise ValueError unless every memory inside `module` can run as asked on `device`."""
    for part in module.modules():
        backend = getattr(part, "backend", None)
        if isinstance(backend, Backend):
            backend.check_device(device)
