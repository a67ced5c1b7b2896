"""A small set of an agent's outer parameters, chosen by name, as one vector.

Patterns are those of the shell: `*.rule.*` names the gates of every fast-weight memory (biases of
retention and write rate, time steps, feedback), `*.free_ridge` the ridges of Mesa.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn

MOST_NUMBERS = 1_000


class ChosenParameters:
    """The parameters of `module` whose name one of `patterns` matches, in the module's order.

    Raises ValueError where a pattern matches nothing, and for more than 1,000 numbers: the noise of
    an estimate from whole lifetimes grows with their count.
    """

    def __init__(self, module: nn.Module, patterns: Sequence[str]) -> None:
        named = dict(module.named_parameters())
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in named):
                near = get_close_matches(pattern, named, n=3, cutoff=0.0)
                raise ValueError(
                    f"parameters: {pattern!r} matches none of the agent's; nearest {near}"
                )
        self.names = [name for name in named if any(fnmatchcase(name, p) for p in patterns)]
        self.parameters: list[nn.Parameter] = [named[name] for name in self.names]
        if not self.names:
            raise ValueError("parameters: expected at least one pattern such as '*.rule.*'")
        if self.count > MOST_NUMBERS:
            largest = max(self.names, key=lambda name: named[name].numel())
            raise ValueError(
                f"parameters: {self.count:,} numbers are chosen, at most {MOST_NUMBERS:,} can be "
                f"estimated from lifetimes; leave out {largest} ({named[largest].numel():,})"
            )

    @property
    def count(self) -> int:
        """How many numbers they are."""
        return sum(parameter.numel() for parameter in self.parameters)

    def read(self) -> Tensor:
        """A copy as one vector `[count]`, float64 on the CPU."""
        parts = [p.detach().flatten().double().cpu() for p in self.parameters]
        return torch.cat(parts)

    def write(self, vector: Tensor) -> None:
        """Set them to `vector` `[count]`, in place."""
        with torch.no_grad():
            for parameter, part in zip(self.parameters, self._split(vector), strict=True):
                parameter.copy_(part.view_as(parameter))

    def put_gradient(self, vector: Tensor) -> None:
        """Make `vector` `[count]` their gradient."""
        for parameter, part in zip(self.parameters, self._split(vector), strict=True):
            parameter.grad = part.view_as(parameter).to(parameter)

    def _split(self, vector: Tensor) -> tuple[Tensor, ...]:
        return torch.split(vector, [parameter.numel() for parameter in self.parameters])
