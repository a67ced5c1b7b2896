"""One training of a study: a probe, a memory, a seed; and the file of rows it leaves.

A row file is written once, when the member has ended. Its name holds a digest of all settings, so
that a file answers exactly one question; a file without an error is never computed again.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch
from omegaconf import DictConfig, OmegaConf

from ..build import build_memory, make, seed_everything
from ..errors import UsageError
from ..speed_only import without_speed_only
from ..tables import Cell, read_table, write_table
from .control import ResetEveryStep
from .model import ProbeModel
from .task import Task
from .training import Budget, Diverged, score_by_size, train

FORMAT = 1  # of the rows; part of the digest
CONTROLS = ("none", "reset_every_step")
MATCHES = ("none", "parameters", "state_bytes")


@dataclass(frozen=True)
class Member:
    """`settings` is YAML: nodes `probe` and `memory`, and `off`, how far the match is missed."""

    probe: str
    memory: str
    seed: int
    match: str
    control: str
    settings: str

    @property
    def name(self) -> str:
        """File name without its end."""
        parts = [self.probe, self.memory, f"s{self.seed}"]
        parts += [choice for choice in (self.match, self.control) if choice != "none"]
        return "__".join([*parts, self.digest])

    @property
    def digest(self) -> str:
        """Of everything that determines the rows except names, seed and what is speed only."""
        settings = OmegaConf.to_container(OmegaConf.create(self.settings))
        known = OmegaConf.to_yaml(OmegaConf.create(without_speed_only(settings)))
        return hashlib.sha256(f"{FORMAT}\n{known}".encode()).hexdigest()[:8]

    @property
    def group(self) -> tuple[str, str, str, str]:
        """What members that differ in their seed only have in common."""
        return self.probe, self.memory, self.match, self.control


@dataclass(frozen=True)
class Result:
    """What a member found; `seconds` of processor time. With an `error` there are no scores."""

    member: Member
    score: float = float("nan")
    by_size: dict[float, float] = field(default_factory=dict)
    training: dict[float, float] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    error: str = ""


def run_member(member: Member) -> Result:
    """Train and test; a failure is a result with an error. Equal members give equal scores."""
    start = time.process_time()
    try:
        result = _run(member)
    except (UsageError, Diverged) as error:
        return Result(member, error=str(error))
    except Exception as error:  # the study goes on, and the line says what kind of fault it was
        return Result(member, error=f"{type(error).__name__}: {error}")
    result.numbers["seconds"] = time.process_time() - start
    return result


def _run(member: Member) -> Result:
    config = OmegaConf.create(member.settings)
    assert isinstance(config, DictConfig)
    probe = config.probe
    task: Task = make(probe, "task")
    seed_everything(member.seed)
    memory = build_memory(config, probe.width)
    sizes = {
        "parameters": sum(parameter.numel() for parameter in memory.parameters()),
        "state_bytes": memory.state_bytes(),
        "off": config.off,
    }
    seed_everything(member.seed)
    make_memory = partial(build_memory, config, probe.width)
    controlled = make_memory if member.control == "none" else lambda: ResetEveryStep(make_memory())
    model = ProbeModel(task, controlled, probe.depth, probe.mlp_ratio)
    budget = Budget(probe.steps, probe.batch, probe.lr)
    training = dict(train(model, task, budget, member.seed))
    by_size = score_by_size(model, task, member.seed)
    return Result(
        member,
        by_size[task.size],
        {float(size): score for size, score in by_size.items()},
        {float(step): score for step, score in training.items()},
        {name: float(value) for name, value in sizes.items()},
    )


def row_file(folder: Path, member: Member) -> Path:
    """Where a member's rows lie."""
    return folder / "members" / f"{member.name}.csv"


def write_result(folder: Path, result: Result) -> None:
    """Write the row file in one step, and the member's settings beside it."""
    path = row_file(folder, result.member)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".yaml").write_text(result.member.settings, encoding="utf-8")
    rows: list[tuple[str, Cell, Cell]] = [("score", None, result.score)]
    rows += [("score by size", x, score) for x, score in result.by_size.items()]
    rows += [("training score", x, score) for x, score in result.training.items()]
    rows += [(name, None, value) for name, value in result.numbers.items()]
    member = result.member
    columns: dict[str, list[Cell]] = {
        name: [getattr(member, name)] * len(rows)
        for name in ("probe", "memory", "seed", "match", "control")
    }
    for index, name in enumerate(("measure", "x", "value")):
        columns[name] = [row[index] for row in rows]
    columns["error"] = [result.error] * len(rows)
    write_table(path, columns)


def read_result(folder: Path, member: Member) -> Result | None:
    """A member's result from its row file; None when there is none."""
    path = row_file(folder, member)
    if not path.exists():
        return None
    table = read_table(path)
    rows = list(zip(table["measure"], table["x"], table["value"], strict=True))
    error = table["error"]

    def curve(measure: str) -> dict[float, float]:
        return {float(x): float(value) for name, x, value in rows if name == measure}

    plain = {str(n): float(v) for n, x, v in rows if n not in ("score by size", "training score")}
    score = plain.pop("score")
    text = "" if error.dtype.kind == "f" else str(error[0])
    return Result(member, score, curve("score by size"), curve("training score"), plain, text)


def use_one_thread() -> None:
    """Members run side by side, each on one thread; the bits do not depend on their number."""
    torch.set_num_threads(1)
