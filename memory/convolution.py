"""Short causal convolution over valid tokens: tells a memory "two steps ago" from "now".

    y_t = sum_{i<w} kernel_{w-1-i} * x_{t-i},  i counting valid tokens of the segment backwards

Source: Poli et al. 2023 (Hyena), Yang et al. 2024 (Gated DeltaNet); width 4 in the latter.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .checks import check_at_least
from .precision import state_dtype
from .segments import count_valid
from .transforms import under_torch_func
from .window import extend_window, slide_window, take

INITIAL_MIXING = 0.1  # largest initial weight of an earlier token


class ShortConvolution(nn.Module):
    """A depthwise causal convolution of `width` taps; its state is the last `width - 1` inputs.

    `kernel` `[width, channels]` holds the tap of the oldest input first. It starts near the
    identity: a memory whose keys begin as mixtures of four tokens takes much longer to learn what
    to store.
    """

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        check_at_least("conv_width", width, 2)
        self.kernel = nn.Parameter(torch.empty(width, channels))
        nn.init.uniform_(self.kernel, -INITIAL_MIXING, INITIAL_MIXING)
        with torch.no_grad():
            self.kernel[-1] += 1.0

    def empty_window(self, batch: int) -> Tensor:
        """`[B, width - 1, channels]` zeros: no inputs yet."""
        width, channels = self.kernel.shape
        dtype = state_dtype(self.kernel)
        return torch.zeros(batch, width - 1, channels, dtype=dtype, device=self.kernel.device)

    def forward(
        self, x: Tensor, window: Tensor, reset: Tensor | None, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Outputs for `x` `[B, T, channels]` after the inputs in `window`; the next window."""
        size, steps = window.shape[1], x.shape[1]
        if steps == 1 and reset is None and mask is None:
            earlier = (window * self.kernel[:-1]).sum(1, keepdim=True)
            y = torch.addcmul(earlier, x, self.kernel[-1])
            return y, torch.cat([window[:, 1:], x], dim=1)
        extended = extend_window(window, x, mask)
        visible = occupied = None
        if reset is not None:
            # Empty slots of the window are zeros, so the carried window may be counted as full.
            carried = torch.full((x.shape[0],), size, device=x.device)
            before, occupied = count_valid(carried, steps, reset, mask)
            ages = torch.arange(size, -1, -1, device=x.device)
            visible = (ages <= before.unsqueeze(-1)).to(extended.dtype)
        if mask is None:
            y, extended = _add_taps(extended, self.kernel, visible)
        else:
            y = x * self.kernel[size]
            valid_before = mask.long().cumsum(1) - mask.long()
            for slot in range(size):
                earlier = take(extended, valid_before + slot)
                if visible is not None:
                    earlier = earlier * visible[..., slot : slot + 1]
                y = torch.addcmul(y, earlier, self.kernel[slot])
        return y, slide_window(extended, size, occupied, mask)


class _Taps(torch.autograd.Function):
    """Differentiable again. Autograd's own backward pass of a slice fills and copies all of it."""

    @staticmethod
    def forward(
        ctx: Any, extended: Tensor, kernel: Tensor, visible: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(extended, kernel, visible)
        return _taps(extended, kernel, visible)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        extended, kernel, visible = ctx.saved_tensors
        gradient, for_last = gradients
        steps = gradient.shape[1]
        for_extended, for_kernel = torch.zeros_like(extended), []
        for slot, tap in enumerate(kernel):
            seen = gradient
            if visible is not None and slot < len(kernel) - 1:
                seen = gradient * visible[..., slot : slot + 1]
            for_extended[:, slot : slot + steps].addcmul_(seen, tap)
            for_kernel.append((extended[:, slot : slot + steps] * seen).sum((0, 1)))
        for_extended[:, steps:] += for_last
        return for_extended, torch.stack(for_kernel), None


def _taps(extended: Tensor, kernel: Tensor, visible: Tensor | None) -> tuple[Tensor, Tensor]:
    size = kernel.shape[0] - 1
    steps = extended.shape[1] - size
    y = extended[:, size:] * kernel[-1]
    for slot, tap in enumerate(kernel[:-1]):
        earlier = extended[:, slot : slot + steps]
        if visible is not None:
            earlier = earlier * visible[..., slot : slot + 1]
        y.addcmul_(earlier, tap)
    return y, extended[:, steps:].clone()


def _add_taps(extended: Tensor, kernel: Tensor, visible: Tensor | None) -> tuple[Tensor, Tensor]:
    """`sum_i kernel[i] * extended[:, t + i]` `[B, T, channels]`, where `visible` `[B, T, taps]`.

    Also the last taps - 1 rows of `extended`.
    """
    if not under_torch_func():
        y, last = _Taps.apply(extended, kernel, visible)  # type: ignore[no-untyped-call]
        return y, last
    steps = extended.shape[1] - kernel.shape[0] + 1
    taps = torch.stack([extended[:, slot : slot + steps] for slot in range(len(kernel))], dim=2)
    if visible is not None:
        taps = taps * visible.unsqueeze(-1)
    return (taps * kernel).sum(2), extended[:, steps:]
