"""Networks whose weights are written by the stream: the maps a neural memory may be.

    linear      f(x) = M x
    two layers  f(x) = M_2 act(M_1 x)
    SwiGLU      f(x) = M_3 (silu(M_1 x) * M_2 x)

The gradient of one token with respect to a layer has rank one, error times input: these factors are
all a solver needs to write, and applying a layer is all it needs to read.

Sources: Sun et al. 2024 (TTT, arXiv 2407.04620), Behrouz et al. 2025 (Titans, arXiv 2501.00663),
Zhang et al. 2025 (LaCT, arXiv 2505.23884).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from .activations import ACTIVATIONS, silu_derivative
from .checks import check_at_least, check_choice
from .heads import Heads, Piece
from .net_output import OUTPUTS

HIDDEN = 2.0  # of hidden layers, times key_width^-1/2: unit keys then meet a nonlinear net


class Factors(NamedTuple):
    """The gradient of token j for one layer is `errors[j] inputs[j]^T`; `[B, H, n, ...]`."""

    errors: Tensor
    inputs: Tensor


Weights = Mapping[str, Tensor]
Apply = Callable[[str, Tensor], Tensor]


class FastNet(Piece, ABC):
    """A network of dense layers, with its learned initial weights.

    `output`: `plain`, `residual` or `residual_layer_norm`; `bias`: `none`, or `fast` (one more
    column in every layer, applied to a constant 1).
    """

    layers: tuple[str, ...]

    def __init__(self, heads: Heads, output: str, bias: str) -> None:
        super().__init__(heads)
        check_choice("output", output, OUTPUTS)
        check_choice("bias", bias, ("none", "fast"))
        self.output = OUTPUTS[output](heads)
        self.num_bias_columns = int(bias == "fast")

    @abstractmethod
    def factors(
        self, weights: Weights, key: Tensor, gradient: Callable[[Tensor], Tensor]
    ) -> dict[str, Factors]:
        """Gradients of the loss of every key `[B, H, n, K]` at `weights` `[B or 1, H, out, in]`.

        `gradient` gives the loss gradient for a prediction `[B, H, n, V]`.
        """

    @abstractmethod
    def read(self, query: Tensor, apply: Apply) -> Tensor:
        """The prediction for `query` `[B, H, n, K]`; `apply(layer, x)` is M x for a layer."""

    def initial(self, layer: str) -> Tensor:
        """The learned initial weights `[H, out, in]` of a layer."""
        weights: Tensor = getattr(self, f"initial_{layer}")
        return weights

    def _add_layer(self, layer: str, width_out: int, width_in: int, std: float) -> None:
        weights = std * torch.randn(self.heads.num_heads, width_out, width_in)
        weights = functional.pad(weights, (0, self.num_bias_columns))
        self.register_parameter(f"initial_{layer}", nn.Parameter(weights))

    def _with_constant(self, x: Tensor) -> Tensor:
        return functional.pad(x, (0, self.num_bias_columns), value=1.0)

    def _last_factors(
        self, weights: Tensor, x: Tensor, key: Tensor, gradient: Callable[[Tensor], Tensor]
    ) -> Factors:
        """Of the last layer, whose input is `x`."""
        inputs = self._with_constant(x)
        last = inputs @ weights.mT
        return Factors(self.output.backward(last, gradient(self.output(last, key))), inputs)


class LinearNet(FastNet):
    """One matrix: f_W(k) = W k."""

    layers = ("last",)

    def __init__(self, heads: Heads, output: str = "plain", bias: str = "none") -> None:
        super().__init__(heads, output, bias)
        self._add_layer("last", heads.value_width, heads.key_width, self.output.initial_std)

    def factors(
        self, weights: Weights, key: Tensor, gradient: Callable[[Tensor], Tensor]
    ) -> dict[str, Factors]:
        return {"last": self._last_factors(weights["last"], key, key, gradient)}

    def read(self, query: Tensor, apply: Apply) -> Tensor:
        prediction: Tensor = self.output(apply("last", self._with_constant(query)), query)
        return prediction


class TwoLayerNet(FastNet):
    """A hidden layer of `expansion * key_width` units; `activation`: `gelu`, `silu` or `tanh`."""

    layers = ("hidden", "last")

    def __init__(
        self,
        heads: Heads,
        expansion: int = 4,
        activation: str = "gelu",
        output: str = "plain",
        bias: str = "none",
    ) -> None:
        super().__init__(heads, output, bias)
        check_at_least("expansion", expansion, 1)
        check_choice("activation", activation, ACTIVATIONS)
        self.activation = ACTIVATIONS[activation]
        self.hidden_width = expansion * heads.key_width
        self._add_layer(
            "hidden", self.hidden_width, heads.key_width, HIDDEN * heads.key_width**-0.5
        )
        self._add_layer("last", heads.value_width, self.hidden_width, self.output.initial_std)

    def factors(
        self, weights: Weights, key: Tensor, gradient: Callable[[Tensor], Tensor]
    ) -> dict[str, Factors]:
        inputs = self._with_constant(key)
        before = inputs @ weights["hidden"].mT
        last = self._last_factors(weights["last"], self.activation.function(before), key, gradient)
        behind = (last.errors @ weights["last"])[..., : self.hidden_width]
        return {
            "hidden": Factors(behind * self.activation.derivative(before), inputs),
            "last": last,
        }

    def read(self, query: Tensor, apply: Apply) -> Tensor:
        hidden = self.activation.function(apply("hidden", self._with_constant(query)))
        prediction: Tensor = self.output(apply("last", self._with_constant(hidden)), query)
        return prediction


class SwiGLUNet(FastNet):
    """A gated hidden layer of `expansion * key_width` units."""

    layers = ("gate", "hidden", "last")

    def __init__(
        self, heads: Heads, expansion: int = 2, output: str = "plain", bias: str = "none"
    ) -> None:
        super().__init__(heads, output, bias)
        check_at_least("expansion", expansion, 1)
        self.hidden_width = expansion * heads.key_width
        for layer in ("gate", "hidden"):
            self._add_layer(
                layer, self.hidden_width, heads.key_width, HIDDEN * heads.key_width**-0.5
            )
        self._add_layer("last", heads.value_width, self.hidden_width, self.output.initial_std)

    def factors(
        self, weights: Weights, key: Tensor, gradient: Callable[[Tensor], Tensor]
    ) -> dict[str, Factors]:
        inputs = self._with_constant(key)
        before, hidden = inputs @ weights["gate"].mT, inputs @ weights["hidden"].mT
        gate = functional.silu(before)
        last = self._last_factors(weights["last"], gate * hidden, key, gradient)
        behind = (last.errors @ weights["last"])[..., : self.hidden_width]
        return {
            "gate": Factors(behind * hidden * silu_derivative(before), inputs),
            "hidden": Factors(behind * gate, inputs),
            "last": last,
        }

    def read(self, query: Tensor, apply: Apply) -> Tensor:
        inputs = self._with_constant(query)
        hidden = functional.silu(apply("gate", inputs)) * apply("hidden", inputs)
        prediction: Tensor = self.output(apply("last", self._with_constant(hidden)), query)
        return prediction
