"""From configuration to objects: the only place where classes are made from names."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig

from sojourn.agents import Agent, Rollout, Trainer, num_ranks, rank
from sojourn.envs import Crowd, Stream
from sojourn.memory import MemoryCore, Stack, check_backends, compile_calls

from .debugging import in_one_process
from .errors import UsageError, first_line
from .settings import Settings


@dataclass(frozen=True)
class Parts:
    """What a run is made of."""

    stream: Stream
    agent: Agent
    rollout: Rollout
    trainer: Trainer


def build(config: DictConfig, settings: Settings) -> Parts:
    """Make every part of a run and seed the global generators; raises UsageError for a bad key."""
    device = choose_device(settings.device)
    seed_everything(config.seed)
    torch.set_num_threads(1 if settings.debug else settings.num_threads)
    config = in_one_process(config) if settings.debug else config
    stream = build_stream(config, config.seed)
    agent = place(build_agent(config, stream), device, config)
    own = settings.num_lifetimes // num_ranks()
    crowd = Crowd(stream, own, first_lifetime=rank() * own, stride=settings.num_lifetimes)
    rollout = Rollout(
        agent, crowd, settings.memory_reset, settings.credit, seed=derived_seed(config.seed, 1)
    )
    trainer: Trainer = make(config, "trainer", agent=agent)
    check_trainer(trainer, rollout)
    if settings.diagnostics_every and not trainer.keeps_slices:
        raise UsageError(
            f"diagnostics_every: trainer={config.choices.trainer} keeps no slice to measure; "
            "expected 0 (off)"
        )
    return Parts(stream, agent, rollout, trainer)


def check_trainer(trainer: Trainer, rollout: Rollout) -> None:
    """Raise UsageError where a trainer cannot learn from these lives."""
    try:
        trainer.check(rollout)
    except ValueError as error:
        raise UsageError(f"trainer: {error}") from error


def build_stream(config: DictConfig, seed: int) -> Stream:
    """The stream of a configuration under a root seed."""
    stream: Stream = make(config, "stream", seed=seed)
    return stream


def build_agent(config: DictConfig, stream: Stream) -> Agent:
    """An agent with a fresh stack of memories for the stream's observations and actions."""
    agent = config.agent
    cores = [build_memory(config, agent.width) for _ in range(agent.depth)]
    try:
        stack = Stack(cores, agent.mlp_ratio, agent.get("recompute_every"))
        return Agent(stream.interface, stack)
    except ValueError as error:
        raise UsageError(f"agent: {error}") from error


def build_memory(config: DictConfig, width: int) -> MemoryCore:
    """One fresh memory for tokens of `width` numbers; raises UsageError when it is none."""
    core = make(config, "memory", width=width)
    if not isinstance(core, MemoryCore):
        raise UsageError(
            f"memory._target_: expected a sojourn.memory.MemoryCore, got {type(core).__name__}"
        )
    return core


def place(agent: Agent, device: torch.device, config: DictConfig) -> Agent:
    """Move an agent to its device, its memory compiled if the configuration says so.

    Raises UsageError where the memory cannot run there or cannot be compiled.
    """
    try:
        check_backends(agent, device)
    except ValueError as error:
        raise UsageError(f"memory: {error}") from error
    if config.agent.get("compile"):
        try:
            compile_calls(agent.memory)
        except ValueError as error:
            raise UsageError(f"agent.{error}") from error
    return agent.to(device)


def choose_device(name: str) -> torch.device:
    """`auto` takes a GPU when there is one; raises UsageError for a GPU that is not there."""
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise UsageError("device=cuda: torch sees no GPU here; use device=cpu or device=auto")
    return torch.device("cuda" if name == "cuda" or (name == "auto" and available) else "cpu")


def derived_seed(seed: int, purpose: int) -> int:
    """A root seed for another purpose than training, so that no stream or luck is shared."""
    return int(np.random.SeedSequence([seed, purpose]).generate_state(1, np.uint32)[0])


def seed_everything(seed: int) -> None:
    """Seed the global generators of torch, NumPy and Python."""
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)


def make(config: DictConfig, group: str, **extra: Any) -> Any:
    """Make a group's object; a refusal by a constructor becomes one line naming the group.

    Objects are passed to a partial: Hydra would copy them into its configuration.
    """
    try:
        return instantiate(config[group], _partial_=True)(**extra)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{group}: {first_line(error)}") from error
    except InstantiationException as error:
        cause = error.__cause__
        if not isinstance(cause, (ValueError, TypeError)):
            raise
        raise UsageError(f"{group}: {first_line(cause)}") from error
