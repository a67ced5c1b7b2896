"""What a life is made of: the agent that learns, its trainer and guard, and the frozen twin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from omegaconf import DictConfig

from sojourn.agents import (
    Agent,
    Guard,
    Judge,
    Measure,
    Recent,
    Replayed,
    Rollout,
    SharedLuck,
    Trainer,
    Trusting,
)
from sojourn.envs import Crowd, Stream

from ..build import (
    build_agent,
    build_stream,
    check_trainer,
    choose_device,
    derived_seed,
    make,
    place,
    seed_everything,
)
from ..errors import UsageError
from ..evaluations.frozen_lives import frozen_copy
from ..evaluations.request import held_out_stream
from ..report import references
from ..schema import target_of
from ..spaces import load_agent
from .request import LIVE_LUCK, LiveRequest


@dataclass(frozen=True)
class LiveParts:
    """`rollout` is lived by `agent`, `twin` (None: not wanted) by `twin_agent`, which is what the
    agent was at the first step.
    """

    agent: Agent
    trainer: Trainer
    rollout: Rollout
    twin_agent: Agent
    twin: Rollout | None
    guard: Guard
    measure: Measure
    crowds: Sequence[Crowd]

    def close(self) -> None:
        """Close all environments."""
        for crowd in self.crowds:
            crowd.close()


def build_parts(request: LiveRequest) -> LiveParts:
    """Make every part and seed the global generators; raises UsageError for a run that cannot
    live for ever.
    """
    config, settings = request.config, request.settings
    device = choose_device(config.device)
    seed_everything(config.seed)
    torch.set_num_threads(int(config.num_threads))
    trained = build_stream(request.trained, config.seed)
    stream = held_out_stream(trained, config, request.seed)
    agent = build_agent(config, stream)
    load_agent(agent, stream.interface, request.content)
    place(agent, device, config)
    _check_endless(config, agent, stream)
    trainer: Trainer = make(config, "trainer", agent=agent)
    if request.same_trainer:
        trainer.load_state_dict(request.content["trainer"])
    luck = SharedLuck(derived_seed(request.seed, LIVE_LUCK))
    crowds: list[Crowd] = []

    def rollout_of(actor: Agent) -> Rollout:
        crowds.append(Crowd(stream, settings.num_lifetimes))
        return Rollout(actor, crowds[-1], config.memory_reset, config.credit, luck=luck)

    measure = measure_of(stream)
    frozen = frozen_copy(agent)
    twin = rollout_of(frozen) if settings.frozen_twin else None
    judges: dict[str, Callable[[], Judge]] = {
        "replay": lambda: Replayed(rollout_of(agent), settings.guard.windows, measure),
        "recent": lambda: Recent(settings.guard.windows, measure),
        "none": Trusting,
    }
    judge = judges[settings.guard.by]()
    guard = Guard(agent, trainer, judge, settings.guard.tolerance)
    rollout = rollout_of(agent)
    check_trainer(trainer, rollout)
    return LiveParts(agent, trainer, rollout, frozen, twin, guard, measure, tuple(crowds))


def _check_endless(config: DictConfig, agent: Agent, stream: Stream) -> None:
    if agent.memory.grows:
        raise UsageError(
            f"memory={config.choices.memory}: it grows with every token and cannot live for ever"
        )
    if stream.schedule.follows_agent:
        raise UsageError(
            f"stream={config.choices.stream}: its order follows the agent, so that no twin can "
            "live the same life; give another schedule"
        )
    if not getattr(target_of(config.trainer._target_, "trainer"), "keeps_slices", True):
        raise UsageError(
            f"trainer={config.choices.trainer}: it learns from lives of its own, not from this "
            "one; give trainer=ppo"
        )


def measure_of(stream: Stream) -> Measure:
    """Regret where every task met first has a floor and a ceiling, else return."""
    known = [reference is not None for reference in references(stream).values()]
    return "regret" if all(known) else "return"
