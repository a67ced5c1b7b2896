"""What `sojourn reference` is asked for: which task, which agents, how many episodes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from omegaconf import DictConfig, OmegaConf

from sojourn.envs import Stream, TaskSpec, family_of, reference_path, reference_task, spec_of

from ..build import build_stream, derived_seed
from ..config import compose_config, parse
from ..errors import UsageError, hint
from ..folder import read_json
from ..option_values import whole
from ..resume import flat

DEFAULT_STEPS = 200_000
OPTIONS = {"runs": 5, "selection_episodes": 200, "episodes": 400, "most_steps": 100_000}
PATHS = ("output", "folder")
LIFE_EPISODES = 10
SELECTION, ESTIMATION, FLOOR = 21, 22, 23
"""Numbers that derive the root seeds of the three sets of episodes from the first training seed."""


@dataclass(frozen=True)
class ReferenceRequest:
    """A checked request; `config` is that of the first run, `words` what all runs are told."""

    name: str
    task: dict[str, Any]
    words: Sequence[str]
    config: DictConfig
    num_runs: int
    num_selection_episodes: int
    num_episodes: int
    most_steps: int
    folder: Path
    output: Path

    @property
    def seeds(self) -> list[int]:
        """Seeds of the training runs."""
        return [int(self.config.seed) + run for run in range(self.num_runs)]

    @property
    def selection_seed(self) -> int:
        """Root seed of the episodes that choose an agent."""
        return derived_seed(self.config.seed, SELECTION)

    @property
    def estimation_seed(self) -> int:
        """Root seed of the episodes that the ceiling is the mean of."""
        return derived_seed(self.config.seed, ESTIMATION)

    @property
    def floor_seed(self) -> int:
        """Root seed of the random policy's episodes."""
        return derived_seed(self.config.seed, FLOOR)

    def stream(self, seed: int) -> Stream:
        """The task in segments of `LIFE_EPISODES` episodes."""
        config = self.config.copy()
        OmegaConf.update(config, "stream.length.amount", LIFE_EPISODES)
        return build_stream(config, seed)

    def folder_of(self, seed: int) -> Path:
        """The run folder of a training seed."""
        return self.folder / f"seed{seed}"

    def is_missing(self, seed: int) -> bool:
        """Whether a run is yet to be finished; raises UsageError where it had other settings."""
        folder = self.folder_of(seed)
        if not (folder / "config.yaml").is_file():
            return True
        found = OmegaConf.load(folder / "config.yaml")
        assert isinstance(found, DictConfig)
        if _hash(found) != self.config_hash():
            raise UsageError(
                f"folder={self.folder}: holds runs with other settings; choose another folder"
            )
        return read_json(folder / "status.json").get("status") != "done"

    def training_words(self, seed: int) -> list[str]:
        """The words of `sojourn train` for a run that is missing."""
        folder = self.folder_of(seed)
        if (folder / "checkpoints").is_dir():
            return [f"resume={folder}", "quiet=true"]
        return [*self.words, f"seed={seed}", f"folder={folder}", "quiet=true"]

    def config_hash(self) -> str:
        """Of everything the runs have in common."""
        return _hash(self.config)

    def use(self) -> str:
        """An example of a task with this reference."""
        inner = {key: value for key, value in self.task.items() if key != "id"}
        rest = "".join(f", {key}: ..." for key in inner)
        return f"stream.tasks=[{{id: {self.task['id']}{rest}, reference: {self.output}}}]"


def request(words: Sequence[str]) -> ReferenceRequest:
    """Read the words of the verb; raises UsageError for a wrong one."""
    if not words or "=" in words[0].split("{")[0]:
        raise UsageError("reference: expected an id first, as in sojourn reference CartPole-v1")
    name, rest = words[0], list(words[1:])
    spec = _spec(name)
    options, paths, training = _sorted(rest)
    # Where returns count an agent must feel that an episode ends, where the rate does it must not.
    defaults = {
        "num_steps": DEFAULT_STEPS,
        "credit": "lifetime" if spec.unit == "rate" else "episode",
    }
    given = {word.partition("=")[0] for word in training}
    training += [f"{key}={value}" for key, value in defaults.items() if key not in given]
    training.insert(0, f"stream.tasks=[{name}]")
    config = compose_config(parse(training))
    slug = reference_path(Path(), str(spec.id)).stem
    return ReferenceRequest(
        name=name,
        task=reference_task(spec),
        words=training,
        config=config,
        num_runs=options["runs"],
        num_selection_episodes=options["selection_episodes"],
        num_episodes=options["episodes"],
        most_steps=options["most_steps"],
        folder=Path(paths.get("folder", f"runs/references/{slug}")),
        output=Path(paths.get("output", f"references/{slug}.yaml")),
    )


def _spec(name: str) -> TaskSpec:
    """The task, which can be played and has no reference yet."""
    try:
        spec = spec_of(yaml.safe_load(name) if name.startswith("{") else name)
        family_of(spec)
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[-1].strip()
        raise UsageError(f"reference {name}: not readable as YAML ({reason})") from error
    except (TypeError, ValueError) as error:
        raise UsageError(f"reference {name}: {error}") from error
    if spec.reference is not None:
        raise UsageError(f"reference {name}: the task has a reference already; leave it out")
    if not isinstance(spec.id, str):
        raise UsageError(f"reference {name}: expected an id of text, got {spec.id!r}")
    return spec


def _sorted(words: Sequence[str]) -> tuple[dict[str, int], dict[str, str], list[str]]:
    """Options, paths, and the words that are meant for training."""
    options, paths, training = dict(OPTIONS), {}, []
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"reference {word}: expected key=value; one id at a time")
        if key in PATHS:
            paths[key] = value
        elif key in OPTIONS:
            options[key] = whole(f"reference {key}", value, 1)
        elif key == "resume" or key == "stream" or key.startswith("stream."):
            raise UsageError(f"reference {word}: not read here; {hint(key, [*OPTIONS, *PATHS])}")
        else:
            training.append(word)
    return options, paths, training


def _hash(config: DictConfig) -> str:
    """Of every leaf but seeds and what belongs to one process."""
    own = ("seed", "folder", "resume", "quiet")
    leaves = sorted((key, repr(value)) for key, value in flat(config).items())
    text = "\n".join(f"{key}={value}" for key, value in leaves if key.split(".")[-1] not in own)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
