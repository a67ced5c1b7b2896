"""Evaluation beside the training: a few held-out lives of a copy, the same ones every time.

The agent that trains, its memories and all generators stay as they are: a run with and one without
it are the same bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from omegaconf import DictConfig

from sojourn.agents import Agent, MemoryReset, SharedLuck
from sojourn.envs import Stream

from ..build import derived_seed
from ..measures.lifetimes import mean_regret, regret_of_index
from ..measures.lives import Lives
from ..measures.paired import paired_regret
from ..settings import Settings
from ..statistics import interval
from ..tracker import MAX_EPISODES
from .conditions import checked_conditions
from .frozen_lives import (
    EVALUATION_LUCK,
    EVALUATION_STREAM,
    Budget,
    Condition,
    ending_row,
    frozen_copy,
    lives,
)
from .measures import CARRIED, TWIN
from .request import held_out_config, held_out_stream

FEW = 16  # lifetimes lived beside the training at most
RESETS: Mapping[str, MemoryReset] = {CARRIED: "lifetime", TWIN: "task"}


class PeriodicEvaluation:
    """Numbers of the carried life and of its reset twin, by `eval/<name>`.

    `stream` is the held-out one of the run. Raises UsageError where `evaluation.stream` names one
    that an agent of `trained` cannot live in, or `evaluation.conditions` what there is not.
    """

    def __init__(self, config: DictConfig, settings: Settings, trained: Stream) -> None:
        self.settings, self.seed = settings, int(config.seed)
        if settings.evaluation.conditions:
            checked_conditions(settings.evaluation.conditions)
        changed = held_out_config(config, settings.evaluation.stream)
        seed = derived_seed(self.seed, EVALUATION_STREAM)
        self.stream = held_out_stream(trained, changed, seed)

    def __call__(self, agent: Agent) -> dict[str, float]:
        """Live `evaluation.steps` steps of at most 16 lifetimes under both conditions."""
        wanted = self.settings.evaluation
        budget = Budget(min(wanted.num_lifetimes, FEW), wanted.steps)
        luck = SharedLuck(derived_seed(self.seed, EVALUATION_LUCK))
        frozen = frozen_copy(agent)
        tables = {}
        for name, memory_reset in RESETS.items():
            slices = lives(Condition(frozen, memory_reset), self.stream, budget, luck)
            rows = [ending_row(ending, lived) for lived, ended in slices for ending in ended]
            names = rows[0] if rows else {}
            tables[name] = Lives.from_columns(
                {column: np.array([row[column] for row in rows]) for column in names}
            )
        return _numbers(tables)


def _numbers(tables: Mapping[str, Lives]) -> dict[str, float]:
    """Means over lifetimes; NaN where no episode tells."""
    carried = tables[CARRIED]
    numbers = {
        "eval/num_lifetimes": float(len(np.unique(carried.lifetime))),
        **{f"eval/regret_{name}": interval(mean_regret(t)).mean for name, t in tables.items()},
    }
    for index in range(min(int(carried.episode.max(initial=-1)) + 1, MAX_EPISODES)):
        value = interval(regret_of_index(carried, index)).mean
        numbers[f"eval/regret_episode_{index + 1}"] = value
    paired = paired_regret(carried, tables[TWIN])
    utility = interval(paired.where(paired.segment > 0).per_lifetime())
    parts = {"utility": utility.mean, "utility_low": utility.low, "utility_high": utility.high}
    return numbers | {f"eval/{name}": value for name, value in parts.items()}
