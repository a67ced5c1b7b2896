"""A trained agent back from its run folder, for Python users: inference in five lines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from omegaconf import DictConfig

from sojourn.agents import Agent, Rollout
from sojourn.envs import Crowd, Stream

from . import resume
from .build import build_agent, build_stream
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
    stream = build_stream(config, config.seed)
    agent = build_agent(config, stream)
    load_agent(agent, stream.interface, content)
    return Trained(agent.requires_grad_(False).eval(), config)
