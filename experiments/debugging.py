"""`debug=true`: a short run that stops at the first NaN and says which module made it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf
from torch import Tensor, nn

WORKERS = "stream.workers"
COMPILE = "agent.compile"


@contextmanager
def watched(model: nn.Module) -> Iterator[None]:
    """Anomaly mode, deterministic kernels (a warning names an operation that has none) and a check
    of every module's output; all of it is taken back at the end.

    Inside, FloatingPointError names the innermost module whose output holds a NaN, and RuntimeError
    the operation whose gradient does.
    """
    before = torch.are_deterministic_algorithms_enabled()
    warned = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with torch.autograd.set_detect_anomaly(True), ExitStack() as hooks:
            for name, module in model.named_modules():
                hooks.callback(_watch(name or type(model).__name__, module).remove)
            yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warned)


def in_one_process(config: DictConfig) -> DictConfig:
    """A copy whose environments and memory are run operation by operation in this process, where a
    debugger can follow.
    """
    config = config.copy()
    if OmegaConf.select(config, WORKERS) is not None:
        OmegaConf.update(config, WORKERS, 0, merge=False)
    if OmegaConf.select(config, COMPILE) is not None:
        OmegaConf.update(config, COMPILE, False)
    return config


def _watch(name: str, module: nn.Module) -> Any:
    def check(_: nn.Module, __: Any, output: Any) -> None:
        if _has_nan(output):
            raise FloatingPointError(f"NaN in the output of {name} ({type(module).__name__})")

    return module.register_forward_hook(check)


def _has_nan(output: Any) -> bool:
    """Whether a tensor of floats anywhere in the output holds a NaN; infinities mask actions."""
    if isinstance(output, Tensor):
        return bool(output.is_floating_point() and output.isnan().any())
    if isinstance(output, Mapping) or hasattr(output, "values"):
        return any(_has_nan(part) for part in output.values())
    return isinstance(output, (list, tuple)) and any(_has_nan(part) for part in output)
