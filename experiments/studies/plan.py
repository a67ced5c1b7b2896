"""From the words of `sojourn study` to its members, every one checked before the first runs.

A word may sweep: `memory=gru,lstm`, `seed=0..4`, `trainer.loss.clip=0.1,0.2`. Members are the
product of all sweeps. A study file adds sweeps of its own and words for some of the members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache

from omegaconf import DictConfig

from ..backends import check_backends
from ..config import compose_config, parse
from ..errors import UsageError, hint
from ..scale import scale_among
from .file import StudyFile, read_study
from .matching import Sizes, Unmatched
from .member import Member, settings_of
from .options import Options, read_options
from .sweep import choose_each, first_seeds
from .tuning import Trial, trials_of


@dataclass(frozen=True)
class Plan:
    """`left_out`: choices whose memory cannot be matched in size, and why. `trials`: what is run
    before the members to choose the settings of each group, by the group's name.
    """

    members: Sequence[Member]
    options: Options
    left_out: Sequence[str] = ()
    trials: Mapping[str, Sequence[Trial]] = field(default_factory=dict)

    @property
    def num_jobs(self) -> int:
        """How many run side by side."""
        return self.options.jobs_of(len(self.members) + sum(map(len, self.trials.values())))

    @property
    def trial_members(self) -> list[Member]:
        """The trials of all groups, in the share of this machine."""
        found = [trial.member for trials in self.trials.values() for trial in trials]
        return share(found, self.options.part)

    def tuned(self, chosen: Mapping[str, Sequence[str]]) -> list[Member]:
        """The members of the groups in `chosen`, with the words that were chosen for them."""
        found = []
        for member in self.members:
            if member.group in chosen:
                seed = [word for word in member.words if word.startswith("seed=")]
                words = [w for w in member.words if w not in seed]
                found.append(make_member(member.choices, [*words, *chosen[member.group], *seed]))
        return found


def plan(words: Sequence[str]) -> Plan:
    """Read the words; raises UsageError naming the first that is wrong."""
    options, own = read_options(words)
    file = read_study(options.study) if options.study else StudyFile()
    sizes = Sizes(options.match, options.reference)
    scale = scale_among([*file.words, *own])
    most_seeds = None if any(word.startswith("seed=") for word in own) else scale.seeds
    members: dict[frozenset[str], Member] = {}  # by its words: two sweeps may ask for the same
    left_out: list[str] = []
    for sweep in file.sweeps:
        keys = [word.partition("=")[0] for word in sweep]
        given = _last_of_each_key([*scale.reduce_words([*file.words, *sweep]), *own])
        for choices, chosen in choose_each(first_seeds(given, most_seeds), keys):
            added = scale.reduce_words(file.added_to(choices, own))
            try:
                member = _matched(choices, [*chosen, *added], sizes)
            except Unmatched as error:
                left_out.append(str(error))
                continue
            members.setdefault(frozenset(member.words), member)
    if not members:
        raise UsageError(f"no member is left: {'; '.join(dict.fromkeys(left_out))}")
    found = list(members.values())
    check_backends({m.name: m.backend for m in found}, options.mix_backends)
    named = found if options.only == ["*"] else _named(found, options.only)
    ordered = sorted(named, key=lambda m: int(m.choices.get("seed", 0)))
    trials = {} if options.tune is None else trials_of(ordered, options.tune, make_member)
    return Plan(share(ordered, options.part), options, list(dict.fromkeys(left_out)), trials)


def make_member(choices: Mapping[str, str], words: Sequence[str]) -> Member:
    """A member by its words, of which one names the seed; raises UsageError for a wrong one."""
    words = _last_of_each_key(words)
    seeds = [word.partition("=")[2] for word in words if word.startswith("seed=")]
    if not seeds or not seeds[0].isdecimal():
        given = f"seed={seeds[0]}" if seeds else "seed"
        raise UsageError(f"{given}: a study needs seeds given as whole numbers, as in seed=0..4")
    words = [word for word in words if not word.startswith("seed=")]
    config = _settings(tuple(words)).copy()
    config.seed = int(seeds[0])
    return Member([*words, f"seed={seeds[0]}"], choices, settings_of(config))


def share(members: Sequence[Member], part: tuple[int, int]) -> list[Member]:
    """Part (2, 4) is every fourth member from the second on: one share for each machine."""
    number, count = part
    return list(members[number - 1 :: count])


def _named(members: Sequence[Member], patterns: Sequence[str]) -> list[Member]:
    """The members whose names, with or without the digest, match one of the patterns."""
    for pattern in patterns:
        if not any(_matches(member, pattern) for member in members):
            stems = [member.stem for member in members]
            raise UsageError(f"only={pattern}: no such member; {hint(pattern, stems)}")
    return [m for m in members if any(_matches(m, pattern) for pattern in patterns)]


def _matches(member: Member, pattern: str) -> bool:
    return fnmatchcase(member.name, pattern) or fnmatchcase(member.stem, pattern)


def _matched(choices: Mapping[str, str], words: Sequence[str], sizes: Sizes) -> Member:
    """A member whose memory has the size of the reference; raises Unmatched."""
    of_all = tuple(word for word in _last_of_each_key(words) if not word.startswith("seed="))
    return make_member(choices, [*words, *sizes.words(_settings(of_all))])


@cache
def _settings(words: tuple[str, ...]) -> DictConfig:
    """The checked settings of the members that differ by seed only."""
    return compose_config([*parse(words), *parse(["seed=0"])])


def _last_of_each_key(words: Sequence[str]) -> list[str]:
    return list({word.partition("=")[0]: word for word in words}.values())
