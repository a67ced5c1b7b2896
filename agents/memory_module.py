"""A memory as a recurrent module of TorchRL, with the contract of its `LSTMModule`.

    step mode       y_t, S_t = memory(x_t, S_{t-1})              an entry of the batch is a step
    recurrent mode  y_1 .. y_T, S_T = memory(x_1 .. x_T, S_0)    the last batch axis is time

In both modes the memory goes back to its learned initial state where `is_init` is set, before the
token is consumed, so that training on a slice recomputes what acting did.

Source: `torchrl.modules.LSTMModule`, torchrl 0.14.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from tensordict import TensorDict, TensorDictBase
from tensordict.nn import TensorDictModuleBase
from torch import Tensor
from torch._C._functorch import is_batchedtensor
from torchrl.envs.transforms import TensorDictPrimer
from torchrl.modules import recurrent_mode

from sojourn.memory import MemoryCore, where_reset

from .tensordict_state import Key, TensorDictState, resumes


class MemoryModule(TensorDictModuleBase):  # type: ignore[misc]  # tensordict has no type hints
    """A `core` that reads tokens `[*B, core.width]` at `in_key` and writes as wide to `out_key`.

    The state lies in the tensordict under `state_key` (read) and `("next", state_key)` (written);
    the environment carries it with the primer of `make_tensordict_primer` and marks starts with an
    `InitTracker`: TorchRL's `get_env_transforms_from_module` gives both. TorchRL's losses are in
    recurrent mode by themselves, its value estimators are not: call those inside
    `set_recurrent_mode(True)`, with `shifted=True` or `deactivate_vmap=True`.

    Recurrent mode starts from the state stored at the first step, and from a stored one again where
    the tokens that acting counted say that a step does not follow the one before it: in slices of a
    replay buffer, and in the next observations that value estimators hand over. It writes the state
    after the last step. At a start the clock of an `anchored` memory is the stored one.

    `commit_key` names the flag that moves the snapshot of a memory that reads from one (such as
    `("observation", "episode_start")` of a `LifetimeEnv`); value estimators want `shifted=True` for
    it, as next observations alone do not say where a commit was. Raises ValueError for a memory
    that grows with every token, and for one that reads from a snapshot without a `commit_key`.
    """

    def __init__(
        self,
        core: MemoryCore,
        in_key: Key = "embed",
        out_key: Key = "features",
        state_key: Key = "memory",
        init_key: Key = "is_init",
        commit_key: Key | None = None,
        default_recurrent_mode: bool = False,
    ) -> None:
        super().__init__()
        if core.grows:
            raise ValueError(
                "core: a tensordict holds states of one size, and this memory grows with every "
                "token; use a SlidingWindow as long as an episode in place of the GrowingCache"
            )
        if core.reads_commits and commit_key is None:
            raise ValueError(
                "commit_key: this memory reads a snapshot that only a commit moves, expected the "
                "key of a flag such as ('observation', 'episode_start'), got None"
            )
        self.core = core
        self.in_key, self.out_key, self.init_key = in_key, out_key, init_key
        self.commit_key = commit_key if core.reads_commits else None
        self.state = TensorDictState(core, state_key)
        flags = [key for key in (init_key, self.commit_key) if key is not None]
        self.in_keys = [in_key, *self.state.keys, *flags]
        self.out_keys = [out_key, *(("next", *key) for key in self.state.keys)]
        self._default_recurrent_mode = default_recurrent_mode

    @property
    def recurrent_mode(self) -> bool:
        """What `set_recurrent_mode` says, else the default of this module."""
        mode = recurrent_mode()
        return self._default_recurrent_mode if mode is None else bool(mode)

    def make_tensordict_primer(self) -> TensorDictPrimer:
        """The transform through which an environment carries the state from step to step.

        It fills in zeros at a reset; `is_init` then puts the learned initial state in their place.
        """
        return TensorDictPrimer(self.state.spec(self.core), expand_specs=True)

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Write the outputs and the next state into `tensordict`, which is also returned.

        Raises KeyError for a missing input, ValueError for one of a wrong shape and for a mode that
        does not fit.
        """
        rows, steps = self._rows_and_steps(tensordict)
        x = self._tokens(tensordict).reshape(rows, steps, self.core.width)
        if is_batchedtensor(x):
            raise RuntimeError(
                "vmap: a memory cannot be vectorised over value networks; make the value estimator "
                "with shifted=True or deactivate_vmap=True"
            )
        init = self._flags(tensordict, self.init_key, x)
        commit = None
        if self.commit_key is not None:
            commit = self._flags(tensordict, self.commit_key, x)
        carried = self.state.read(tensordict, rows, steps)
        if carried is None:
            carried = self._started(init)
        if self.recurrent_mode:
            y, state, age = self._sequence(x, carried, init, commit)
            self.state.write_last(tensordict, state, age)
        else:
            y, state, age = self._step(x, carried, init, commit)
            self.state.write(tensordict, state, age)
            self.state.mark_starts(tensordict, init)
        tensordict.set(self.out_key, y.reshape(*tensordict.shape, self.core.width))
        return tensordict

    def _step(
        self, x: Tensor, carried: TensorDict, init: Tensor, commit: Tensor | None
    ) -> tuple[Tensor, TensorDict, Tensor]:
        """Outputs of single tokens, next states and their ages."""
        y, state = self.core(x, carried[:, 0]["state"], init, commit=commit)
        return y, state, torch.where(init, 0, carried["age"])[:, 0] + 1

    def _sequence(
        self, x: Tensor, carried: TensorDict, init: Tensor, commit: Tensor | None
    ) -> tuple[Tensor, TensorDict, Tensor]:
        """Outputs, last state and its age; `carried` holds the states before every token."""
        rows, steps = init.shape
        if steps == 0:
            return x, self.core.init_state(rows), init.new_zeros(rows, dtype=torch.int64)
        age = carried["age"]
        resumed = resumes(age, init)
        reset = init & ~resumed
        # Resets leave the clock of an anchored memory alone, the primer of an environment does not:
        # such a memory goes on from what was stored at its starts.
        stored = resumed | init if self.core.anchored else resumed
        borders = [t for t, cut in enumerate(stored.any(0).tolist()) if cut and t]
        outputs, state, states = [], carried[:, 0]["state"], carried["state"]
        for begin, end in pairwise([0, *borders, steps]):
            if begin:
                state = where_reset(stored[:, begin], states[:, begin], state)
            part = slice(begin, end)
            flag = None if commit is None else commit[:, part]
            y, state = self.core(x[:, part], state, reset[:, part], commit=flag)
            outputs.append(y)
        return torch.cat(outputs, dim=1), state, age[:, -1] + 1

    def _rows_and_steps(self, tensordict: TensorDictBase) -> tuple[int, int]:
        shape = tensordict.shape
        if self.recurrent_mode:
            if not shape:
                raise ValueError("recurrent mode: expected a batch axis for time, got one step")
            return math.prod(shape[:-1]), int(shape[-1])
        if shape and tensordict.names[-1] == "time":
            raise ValueError(
                f"step mode: got {shape[-1]} steps of a trajectory, expected single ones; call "
                "inside torchrl.modules.set_recurrent_mode(True)"
            )
        return math.prod(shape), 1

    def _tokens(self, tensordict: TensorDictBase) -> Tensor:
        x: Tensor | None = tensordict.get(self.in_key, None)
        if x is None:
            raise KeyError(f"{self.in_key!r} is missing: expected tokens, got {_names(tensordict)}")
        if x.shape != (*tensordict.shape, self.core.width):
            raise ValueError(
                f"{self.in_key!r}: expected {[*tensordict.shape, self.core.width]}, got "
                f"{list(x.shape)}; put a Linear(..., {self.core.width}) before the memory"
            )
        return x

    def _flags(self, tensordict: TensorDictBase, key: Key, x: Tensor) -> Tensor:
        flags: Tensor | None = tensordict.get(key, None)
        if flags is None:
            hint = "append an InitTracker to the environment, " if key == self.init_key else ""
            raise KeyError(f"{key!r} is missing: {hint}got {_names(tensordict)}")
        return flags.reshape(x.shape[:2])

    def _started(self, init: Tensor) -> TensorDict:
        """What is carried where nothing is stored, which only a start excuses."""
        rows, steps = init.shape
        if not bool(init[:, :1].all()):
            raise KeyError(
                f"{self.state.key!r} is missing at a step that is no start: append "
                "get_env_transforms_from_module(policy) to the environment, or store the state"
            )
        state = self.core.init_state(rows).unsqueeze(1).expand(rows, steps)
        age = torch.zeros_like(init, dtype=torch.int64)
        return TensorDict({"state": state, "age": age}, batch_size=[rows, steps])


def _names(tensordict: TensorDictBase) -> list[str]:
    return sorted(map(str, tensordict.keys()))
