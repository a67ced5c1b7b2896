"""The verb `reference`: how well and how badly an environment can be played, written to a file.

    ceiling  the best of several single-task agents, chosen on some episodes, estimated on others
    floor    the uniformly random policy, simulated

The three sets of episodes come from three root seeds, and none of them was trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sojourn.agents import RandomPolicy
from sojourn.envs import Evidence, Reference, is_provisional, reference_problem, reference_text

from .errors import EXIT_OK
from .evaluations.frozen_lives import Condition
from .folder import write_atomically
from .loading import load
from .progress import plain_console
from .provenance import version_of
from .references.play import Sample, play
from .references.request import ReferenceRequest, request
from .settings import Settings
from .train import train

MEASURED_WITH = ("sojourn", "gymnasium", "minigrid")


@dataclass(frozen=True)
class Candidate:
    """A trained agent: the seed of its run and how it played the episodes that choose."""

    seed: int
    folder: Path
    sample: Sample


def reference(words: Sequence[str]) -> int:
    """Run `sojourn reference ID`; returns the exit code. Finished runs are not trained again."""
    wanted = request(words)
    console = plain_console()
    for seed in wanted.seeds:
        code = train(wanted.training_words(seed)) if wanted.is_missing(seed) else EXIT_OK
        if code != EXIT_OK:
            return code
    candidates = []
    for seed in wanted.seeds:
        sample = _play_trained(wanted, wanted.folder_of(seed), wanted.selection_seed, selects=True)
        candidates.append(Candidate(seed, wanted.folder_of(seed), sample))
        console.print(f"seed {seed}: {sample.text()} on the episodes that choose", highlight=False)
    best = max(candidates, key=lambda candidate: candidate.sample.mean)
    ceiling = _play_trained(wanted, best.folder, wanted.estimation_seed, selects=False)
    interface = wanted.stream(wanted.floor_seed).interface
    floor = play(wanted, Condition(RandomPolicy(interface)), wanted.floor_seed, wanted.num_episodes)
    found = _reference(wanted, ceiling, floor)
    _write(wanted, found, best)
    for line in _told(wanted, found, best):
        console.print(line, markup=False, highlight=False)
    return EXIT_OK


def _play_trained(wanted: ReferenceRequest, run: Path, root_seed: int, selects: bool) -> Sample:
    agent = load(run).agent
    condition = Condition(agent, Settings.from_config(wanted.config).memory_reset)
    num = wanted.num_selection_episodes if selects else wanted.num_episodes
    return play(wanted, condition, root_seed, num)


def _reference(wanted: ReferenceRequest, ceiling: Sample, floor: Sample) -> Reference:
    evidence = Evidence(
        num_ceiling=ceiling.num_episodes,
        num_floor=floor.num_episodes,
        estimation_seeds=(wanted.estimation_seed,),
        floor_seeds=(wanted.floor_seed,),
        selection_seeds=(wanted.selection_seed,),
        training_seeds=tuple(wanted.seeds),
        config_hash=wanted.config_hash(),
    )
    return Reference(
        floor=floor.mean,
        ceiling=ceiling.mean,
        kind="trained",
        floor_error=floor.error,
        ceiling_error=ceiling.error,
        evidence=evidence,
    )


def _write(wanted: ReferenceRequest, found: Reference, best: Candidate) -> None:
    title = (
        f"{wanted.task['id']}: seed {best.seed} of {len(wanted.seeds)} agents with memory "
        f"{wanted.config.choices.memory}, {wanted.config.num_steps:,} steps each; "
        "made by sojourn reference"
    )
    versions = {name: version_of(name) for name in MEASURED_WITH}
    wanted.output.parent.mkdir(parents=True, exist_ok=True)
    text = reference_text(found, wanted.task, versions, title)
    write_atomically(wanted.output, text)


def _told(wanted: ReferenceRequest, found: Reference, best: Candidate) -> list[str]:
    """What was found, in lines."""
    evidence = found.evidence
    assert evidence is not None
    lines = [
        f"ceiling {found.ceiling:.4g} ± {found.ceiling_error:.2g} (s.e., n = "
        f"{evidence.num_ceiling}), seed {best.seed}, root seed {wanted.estimation_seed}",
        f"floor {found.floor:.4g} ± {found.floor_error:.2g} (s.e., n = {evidence.num_floor}), "
        f"root seed {wanted.floor_seed}",
    ]
    problem = reference_problem(found)
    if problem is not None:
        lines.append(f"no regret can be measured against it: {problem}")
    elif is_provisional(found):
        lines.append("provisional: the ceiling's s.e. is above 10 % of the gap; play more episodes")
    return [*lines, f"written to {wanted.output}", f"use it as {wanted.use()}"]
