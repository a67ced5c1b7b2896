"""A trained agent back from its run folder, for Python users: inference in five lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from sojourn.agents import Agent, Rollout
from sojourn.envs import Crowd, Stream

from . import resume
from .build import build_agent, build_stream, seed_everything
from .evaluations.frozen_lives import frozen_copy
from .settings import Settings
from .spaces import load_agent


@dataclass(frozen=True)
class Trained:
    """A frozen agent and the configuration of the run it comes from."""

    agent: Agent
    config: DictConfig

    def stream(self, seed: int) -> Stream:
        """The run's stream under another root seed: the same kind of life, other tasks."""
        return build_stream(self.config, seed)

    def rollout(self, num_lifetimes: int, seed: int = 0, greedy: bool = False) -> Rollout:
        """Fresh lifetimes of the agent on `stream(seed)`, memories at their learned start."""
        memory_reset = Settings.from_config(self.config).memory_reset
        crowd = Crowd(self.stream(seed), num_lifetimes)
        return Rollout(self.agent, crowd, memory_reset, seed=seed, greedy=greedy)


def load(where: str | Path = "latest") -> Trained:
    """The agent of `latest`, of a run folder (its newest checkpoint) or of a checkpoint file.

    Raises UsageError for a path that is none of these and where the environments have other spaces
    than the checkpoint, RunError when nothing can be read.
    """
    content = resume.find(str(where)).content
    config = resume.saved_config(content)
    return Trained(agent_of(config, content), config)


def agent_of(config: DictConfig, content: Mapping[str, Any] | None) -> Agent:
    """The agent of a checkpoint's content, or (None) as it was made at the start of the run.

    A copy with frozen parameters. Raises UsageError as `load`. Where the agent is made anew the
    global generators are seeded as the run seeded them.
    """
    if content is None:
        seed_everything(int(config.seed))
    stream = build_stream(config, config.seed)
    agent = build_agent(config, stream)
    if content is not None:
        load_agent(agent, stream.interface, content)
    return frozen_copy(agent)
