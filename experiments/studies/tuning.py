"""k % tuning: settings are tried on the first part of a life only, then frozen on fresh seeds.

    setting*(group) = argmin over settings of the mean over tuning seeds of the regret in the last
                      tenth of the first `tune` of a life
    tune=0.1 tune.trainer.learning_rate=3e-4,1e-3 tune_seed=1000..1002

No run may be tuned on the whole of a life that never ends (Mesbahi et al. 2024, arXiv 2404.02113).
A trial lives the schedules of the whole life and is stopped early. Where no task has a reference
the return decides. A setting that fails under any seed loses against one that does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ..errors import UsageError
from ..folder import read_json
from .member import Member, Places, read_row
from .sweep import values_of

DEFAULT_SEEDS = "1000..1001"
# A trial is judged on the life it lives; lives for evaluation belong to the frozen settings.
OF_A_TRIAL = ("evaluation.num_lifetimes=0", "evaluation.every=0")

MakeMember = Callable[[Mapping[str, str], Sequence[str]], Member]


@dataclass(frozen=True)
class TuneOptions:
    """`fraction` of the life, every combination of `words` under every one of `seeds`."""

    fraction: float
    words: Sequence[Sequence[str]]
    seeds: Sequence[str]


@dataclass(frozen=True)
class Trial:
    """One setting, as words, under one tuning seed."""

    setting: tuple[str, ...]
    member: Member


@dataclass(frozen=True)
class Tuned:
    """What tuning found for a group: the setting of least `scores`, one score a setting (inf: it
    failed; NaN: nothing can be said).
    """

    group: str
    setting: tuple[str, ...]
    scores: Mapping[tuple[str, ...], float]
    options: TuneOptions

    def line(self) -> str:
        """What a table must say beside the group's result."""
        seeds = len(self.options.seeds)
        tried = f"{len(self.scores)} settings x {seeds} seed{'s' * (seeds > 1)}"
        return f"{' '.join(self.setting)} (of {tried}, first {self.options.fraction:.0%} of a life)"


def tune_options(fraction: str, seeds: str, keys: Mapping[str, str]) -> TuneOptions | None:
    """Read `tune=`, `tune_seed=` and `tune.KEY=`; raises UsageError for a part without the
    others.
    """
    if not fraction:
        if keys or seeds:
            raise UsageError("tune: which part of a life? give tune=0.1 beside tune.KEY=...")
        return None
    try:
        part = float(fraction)
    except ValueError:
        part = math.nan
    if not 0.0 < part < 1.0:
        raise UsageError(f"tune={fraction}: expected a fraction of the life such as 0.1")
    if not keys:
        raise UsageError(
            "tune: which settings? give for example tune.trainer.learning_rate=1e-3,3e-3"
        )
    words = [values_of(f"{key}={text}") or [f"{key}={text}"] for key, text in keys.items()]
    seed_word = f"seed={seeds or DEFAULT_SEEDS}"
    found = [word.partition("=")[2] for word in values_of(seed_word) or [seed_word]]
    return TuneOptions(part, [list(one) for one in product(*words)], found)


def trials_of(
    members: Sequence[Member], options: TuneOptions, make: MakeMember
) -> dict[str, list[Trial]]:
    """The trials of every group; raises UsageError for a setting or a seed that is used twice."""
    shared = {member.choices["seed"] for member in members} & set(options.seeds)
    if shared:
        raise UsageError(f"tune_seed: {', '.join(sorted(shared))} is a seed of the study as well")
    trials: dict[str, list[Trial]] = {}
    for member in members:
        if member.group not in trials:
            trials[member.group] = [
                _trial(member, setting, seed, options.fraction, make)
                for setting, seed in product(options.words, options.seeds)
            ]
    return trials


def is_pending(places: Places, trial: Trial) -> bool:
    """Whether a trial is yet to end; one that has failed is not tried again."""
    return read_row(places, trial.member) is None and not _has_failed(places, trial)


def choose(
    places: Places, trials: Mapping[str, Sequence[Trial]], options: TuneOptions
) -> dict[str, Tuned]:
    """The best setting of every group; a group whose trials all failed is left out."""
    found = {}
    for group, tried in trials.items():
        scores: dict[tuple[str, ...], float] = {}
        for setting in dict.fromkeys(trial.setting for trial in tried):
            values = [score(places, trial) for trial in tried if trial.setting == setting]
            scores[setting] = float(np.mean(values))
        known = {setting: value for setting, value in scores.items() if math.isfinite(value)}
        if known:
            best = min(known, key=known.__getitem__)
            found[group] = Tuned(group, best, scores, options)
    return found


def score(places: Places, trial: Trial) -> float:
    """Regret at the end of a trial, or minus the return where there is none; inf: it failed."""
    row = read_row(places, trial.member)
    if row is None:
        return math.inf
    summary: Mapping[str, Any] = row["summary"]
    regret, reached = summary["regret_end"]["all"]["normalised"], summary.get("return_end")
    if regret is not None:
        return float(regret)
    return math.nan if reached is None else -float(reached)


def _trial(
    member: Member, setting: Sequence[str], seed: str, fraction: float, make: MakeMember
) -> Trial:
    swept = {word.partition("=")[0] for word in setting} & set(member.choices)
    if swept:
        raise UsageError(f"tune.{swept.pop()}: swept by the study already; leave one of them out")
    budget = member.settings["num_steps"]
    if budget is None:
        raise UsageError("tune: an endless life has no part; give num_steps=N")
    end = f"stop_step={math.ceil(fraction * budget)}"
    choices = {key: value for key, value in member.choices.items() if key != "seed"}
    choices |= dict(word.partition("=")[::2] for word in setting)
    choices |= {"tune": f"{fraction:g}", "seed": seed}
    words = [*member.words, *setting, *OF_A_TRIAL, end, f"seed={seed}"]
    return Trial(tuple(setting), make(choices, words))


def _has_failed(places: Places, trial: Trial) -> bool:
    status = places.run(trial.member) / "status.json"
    return status.exists() and read_json(status).get("status") == "failed"
