"""When hand-written gradients are of use; under torch.func they step aside for autograd's own.

A custom gradient is a matter of speed. torch.func would ask it for a forward derivative and a rule
for batches, and a forward derivative of one's own would keep torch.compile out.
"""

from __future__ import annotations

import torch


def gradients_by_hand() -> bool:
    """Whether a gradient may be asked for, and not by a transformation of `torch.func`."""
    if torch.compiler.is_compiling():
        return True
    return torch.is_grad_enabled() and not torch._C._are_functorch_transforms_active()
