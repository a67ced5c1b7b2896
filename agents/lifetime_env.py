"""Lifetimes of a stream, stepped together, as one batched environment of TorchRL.

    done = truncated = the lifetime ended      episode and task ends are data

Memories, value bootstraps and `is_init` of TorchRL all act on `done`: so a memory survives episodes
and tasks, and credit crosses them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torchrl.data import Binary, Composite, Unbounded
from torchrl.envs import EnvBase

from sojourn.envs import Array, Crowd, CrowdStep, EpisodeRecord, Observation, Stream, random_actions

from .tensor_specs import ActionTensors, observation_spec

LARGEST_SEED = 2**63
DONE = ("done", "terminated", "truncated")
EVENTS = ("episode_done", "episode_terminated", "episode_truncated", "task_end")
NUMBERS = ("expected_reward", "reward_scale")


class LifetimeEnv(EnvBase):  # type: ignore[misc]  # torchrl has no type hints
    """`num_lifetimes` rows, each living one lifetime of `stream` after another.

    Under `observation` lie the channels of the stream and what an agent is told beside them,
    `action_mask` included (`sojourn.envs.Crowd`); after a step also `episode_terminated`,
    `episode_truncated`, `episode_done` and `task_end` bool, `expected_reward` (NaN unknown) and
    `reward_scale` float32 (1 without a reference), all `[B, 1]`. `action` is int64 `[B]`; float32
    `[B, num_reals]` where there is nothing to choose; else nested `choices` int64
    `[B, num_choices]` and `reals`. Actions that the mask rules out are refused; `rand_action` draws
    legal ones.

    A finite lifetime ends truncated, an endless one never. A reset of rows whose lifetime has
    ended, or of all rows, begins their next lifetimes, and leaves those alone that have just begun;
    `set_seed(b)` makes the next reset of all rows begin lifetime b in the first row, b + 1 in the
    second and so on. A row in the middle of its lifetime cannot be reset alone. `on_episode` is
    called with the record of every episode that ends. Raises ValueError for less than one lifetime.
    """

    def __init__(
        self,
        stream: Stream,
        num_lifetimes: int,
        first_lifetime: int = 0,
        on_episode: Callable[[EpisodeRecord], None] | None = None,
    ) -> None:
        super().__init__(device=None, batch_size=[num_lifetimes])
        self.crowd = Crowd(stream, num_lifetimes, first_lifetime)
        self.stream, self.num_lifetimes = stream, num_lifetimes
        self.on_episode = on_episode
        self._actions = ActionTensors(stream.interface)
        self._next_lifetime: int | None = None
        self._at_start: Array = np.ones(num_lifetimes, bool)
        batch = (num_lifetimes,)
        self.observation_spec = Composite(
            observation=observation_spec(stream.interface, num_lifetimes),
            **{name: Binary(shape=(*batch, 1), dtype=torch.bool) for name in EVENTS},
            **{name: Unbounded(shape=(*batch, 1)) for name in NUMBERS},
            shape=batch,
        )
        self.full_action_spec = self._actions.spec(num_lifetimes)
        self.reward_spec = Unbounded(shape=(*batch, 1))
        done = {name: Binary(shape=(*batch, 1), dtype=torch.bool) for name in DONE}
        self.full_done_spec = Composite(done, shape=batch)

    def rand_action(self, tensordict: TensorDictBase | None = None) -> TensorDictBase:
        """Random legal actions, drawn with torch's generator."""
        if tensordict is None:
            tensordict = TensorDict({}, batch_size=self.batch_size)
        rng = np.random.default_rng(int(torch.randint(LARGEST_SEED - 1, ())))
        mask = self.crowd.observation["action_mask"]
        self._actions.write(tensordict, random_actions(self.stream.interface, mask, rng))
        return tensordict

    def close(self, *, raise_if_closed: bool = True) -> None:
        """Close the environments of the stream."""
        self.crowd.close()
        super().close(raise_if_closed=raise_if_closed)

    def _reset(self, tensordict: TensorDictBase | None = None, **kwargs: Any) -> TensorDict:
        del kwargs  # what other environments take
        rows = np.ones(self.num_lifetimes, bool)
        asked = None if tensordict is None else tensordict.get("_reset", None)
        if asked is not None:
            rows = asked.reshape(-1).cpu().numpy()
        begun = rows & ~self._at_start
        if rows.all() and (begun.any() or self._next_lifetime is not None):
            self._restart()
        elif begun.any():
            raise RuntimeError(
                f"reset: row {int(begun.argmax())} is in the middle of its lifetime; expected rows "
                "whose lifetime has ended, or all rows"
            )
        column = (self.num_lifetimes, 1)
        events = {name: torch.zeros(column, dtype=torch.bool) for name in (*DONE, *EVENTS)}
        numbers = {name: torch.zeros(column) for name in NUMBERS}
        parts = {"observation": self._tensors(self.crowd.observation), **events, **numbers}
        return TensorDict(parts, batch_size=self.batch_size)

    def _step(self, tensordict: TensorDictBase) -> TensorDict:
        step = self.crowd.step(self._actions.read(tensordict))
        if self.on_episode is not None:
            for record in step.episodes:
                self.on_episode(record)
        self._at_start = step.lifetime_end
        ended = _column(step.lifetime_end)
        parts = {
            "observation": self._tensors(_seen(step)),
            "reward": _column(step.reward),
            "done": ended,
            "truncated": ended.clone(),
            "terminated": torch.zeros_like(ended),
            "episode_terminated": _column(step.terminated),
            "episode_truncated": _column(step.truncated),
            "episode_done": _column(step.terminated | step.truncated),
            "task_end": _column(step.task_end),
            "expected_reward": _column(step.expected_reward),
            "reward_scale": _column(np.nan_to_num(step.reward_scale, nan=1.0)),
        }
        return TensorDict(parts, batch_size=self.batch_size)

    def _set_seed(self, seed: int | None) -> None:
        self._next_lifetime = seed

    def _restart(self) -> None:
        """Begin lifetimes that no row has begun, or those that a seed asked for."""
        first = self._next_lifetime
        if first is None:
            first = 1 + int(self.crowd.state_dict()["counters"]["lifetime"].max())
        self.crowd.close()
        self.crowd = Crowd(self.stream, self.num_lifetimes, first)
        self._next_lifetime = None
        self._at_start[:] = True

    def _tensors(self, observation: Observation) -> TensorDict:
        tensors = {name: torch.from_numpy(array) for name, array in observation.items()}
        return TensorDict(tensors, batch_size=self.batch_size)


def _seen(step: CrowdStep) -> Observation:
    """What every row sees after a step: where its lifetime ended, the last of that one."""
    final = step.final_observation
    if final is None or not step.lifetime_end.any():
        return step.observation
    rows = step.lifetime_end
    return {
        name: np.where(rows.reshape(-1, *(1,) * (array.ndim - 1)), final[name], array)
        for name, array in step.observation.items()
    }


def _column(numbers: Array) -> Tensor:
    return torch.from_numpy(numbers).unsqueeze(-1)
