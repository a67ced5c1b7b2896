"""When hand-written gradients are of use; under torch.func they step aside for autograd's own.

A custom gradient is a matter of speed. torch.func would ask it for a forward derivative and a rule
for batches, and a forward derivative of one's own would keep torch.compile out.
"""

from __future__ import annotations

import torch


def under_torch_func() -> bool:
    """Inside grad, vmap, jvp or another transformation of `torch.func`, in eager execution."""
    if torch.compiler.is_compiling():
        return False
    return bool(torch._C._are_functorch_transforms_active())


def gradients_by_hand() -> bool:
    """Whether a gradient may be asked for, and not by `torch.func`."""
    return torch.is_grad_enabled() and not under_torch_func()
