"""The state of a memory as single tensors of somebody else's tensordict.

    (key, "state", ...)   the leaves of the state, nested as the memory nests them
    (key, "age")          how many tokens the state holds since its last start

A leaf lies there as it is; one number per row gets an axis of its own, since TorchRL's primers
reset along one.
"""

from __future__ import annotations

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torchrl.data import Composite, Unbounded

from sojourn.memory import MemoryCore

Key = str | tuple[str, ...]
Path = tuple[str, ...]


class TensorDictState:
    """Reads and writes the state of `core` and its age under `key`."""

    def __init__(self, core: MemoryCore, key: Key) -> None:
        self.key = key
        self._row = _row_of(core)
        paths = self._row.keys(include_nested=True, leaves_only=True)
        self._leaves = {path: self._row[path] for path in sorted(map(as_path, paths))}
        self.keys = [(*as_path(key), *path) for path in self._leaves]

    def spec(self, core: MemoryCore) -> Composite:
        """The specs of one row, in the type and on the device that `core` has now."""
        row, spec = _row_of(core), Composite({})
        for path, key in zip(self._leaves, self.keys, strict=True):
            leaf = row[path]
            shape = leaf.shape[1:] or (1,)
            spec[key] = Unbounded(shape=shape, dtype=leaf.dtype, device=leaf.device)
        return spec

    def read(self, tensordict: TensorDictBase, rows: int, steps: int) -> TensorDict | None:
        """`state` and `age` before every step `[rows, steps]`; None where they are not there.

        Raises KeyError for a state in part, ValueError for one of another make.
        """
        found = {key: tensordict.get(key, None) for key in self.keys}
        missing = [key for key, leaf in found.items() if leaf is None]
        if missing and len(missing) == len(found):
            return None
        if missing:
            raise KeyError(f"{missing[0]!r} is missing beside {sorted(set(found) - set(missing))}")
        leaves: dict[Path, Tensor] = {}
        for (path, like), (key, leaf) in zip(self._leaves.items(), found.items(), strict=True):
            shape = like.shape[1:]
            got = leaf.shape[tensordict.ndim :]
            if got != (shape or (1,)):
                raise ValueError(
                    f"{key!r}: expected {list(shape or (1,))} per step, got {list(got)}; "
                    "is it the state of another memory?"
                )
            leaves[path] = leaf.reshape(rows, steps, *shape)
        return _nested(self._row, (), leaves, [rows, steps])

    def write(self, tensordict: TensorDictBase, state: TensorDict, age: Tensor) -> None:
        """Put the `state` and `age` `[rows]` after a step under `("next", key)`."""
        for leaf, key in zip(self._ordered(state, age), self.keys, strict=True):
            shape = leaf.shape[1:] or (1,)
            tensordict.set(("next", *key), leaf.reshape(*tensordict.shape, *shape))

    def write_last(self, tensordict: TensorDictBase, state: TensorDict, age: Tensor) -> None:
        """Put the `state` and `age` `[rows]` after all steps under `("next", key)` of the last one.

        Value estimators read what acting has stored at the earlier steps after a module has run
        over all of them: that stays. Where nothing is stored every step gets the state, at age 0.
        """
        rows, steps = age.shape[0], tensordict.shape[-1]
        acted = ("next", *self.keys[0]) in tensordict.keys(include_nested=True)
        if not acted:
            age = torch.zeros_like(age)
        for leaf, key in zip(self._ordered(state, age), self.keys, strict=True):
            shape = leaf.shape[1:]
            if acted:
                stored = tensordict.get(("next", *key)).reshape(rows, steps, *shape)
                leaf = torch.cat([stored[:, :-1], leaf.unsqueeze(1)], dim=1)
            else:
                leaf = leaf.unsqueeze(1).expand(rows, steps, *shape)  # no copies
            tensordict.set(("next", *key), leaf.reshape(*tensordict.shape, *(shape or (1,))))

    def _ordered(self, state: TensorDict, age: Tensor) -> list[Tensor]:
        """The leaves in the order of `keys`."""
        written = TensorDict({"state": state, "age": age}, batch_size=state.batch_size)
        return [written[path] for path in self._leaves]

    def mark_starts(self, tensordict: TensorDictBase, init: Tensor) -> None:
        """Set the age before a start to 0: what is stored there is nobody's past."""
        key = (*as_path(self.key), "age")
        age = tensordict.get(key, None)
        if age is not None:
            tensordict.set(key, torch.where(init.reshape(age.shape), 0, age))


def resumes(age: Tensor, init: Tensor) -> Tensor:
    """Steps `[B, T]` that go on from their stored state and not from the step before.

    Acting counts the tokens of a trajectory; 0 says that nothing is known (a start, padding, a
    state that nobody stored). Where the ages jump another trajectory goes on. A start with an age
    is none: samplers mark the first steps of slices, and value estimators hand over the next
    observations with the marks of the steps before.
    """
    jumps = torch.zeros_like(init)
    jumps[:, 1:] = age[:, 1:] != age[:, :-1] + 1
    return (init | jumps) & (age > 0)


def as_path(key: Key) -> Path:
    """A key as a tuple of names."""
    return key if isinstance(key, tuple) else (key,)


@torch.no_grad()
def _row_of(core: MemoryCore) -> TensorDict:
    """What one row holds: the initial state and its age."""
    state = core.init_state(1)
    device = next((leaf.device for leaf in (*core.parameters(), *core.buffers())), None)
    age = torch.zeros(1, dtype=torch.int64, device=device)
    return TensorDict({"state": state, "age": age}, batch_size=[1])


def _nested(
    like: TensorDict, path: Path, leaves: dict[Path, Tensor], batch: list[int]
) -> TensorDict:
    """The `leaves` nested as those of `like` at `path`, states that hold nothing included."""
    parts = {
        name: leaves[*path, name]
        if isinstance(part, Tensor)
        else _nested(part, (*path, name), leaves, batch)
        for name, part in like.items()
    }
    return TensorDict(parts, batch_size=batch)
