"""What is written and shown before the first step: configuration, origin, size."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from omegaconf import OmegaConf
from rich.text import Text
from rich.tree import Tree

from sojourn.envs import Stream

from .build import Parts
from .checkpoint import newest_first
from .folder import RunFolder, write_atomically
from .provenance import command_line, versions
from .report import NO_REFERENCE, Sizes, comparators
from .request import Request
from .resume import drop_later, flat
from .run import last_step

MOST_NAMES = 5  # of tasks in a line
ADAM_COPIES = 3  # a checkpoint holds every parameter and Adam's two moments


def write_origin(folder: RunFolder, request: Request, device: str) -> None:
    """config.yaml, overrides.txt, command.txt and versions.json; a resumed run adds to them."""
    write_atomically(folder.config_file, OmegaConf.to_yaml(request.config, resolve=True))
    folder.append("overrides.txt", shlex.join(request.words))
    folder.append("command.txt", command_line("train", request.words))
    folder.write_json("versions.json", versions(device))


def rewind(folder: RunFolder, request: Request) -> list[str]:
    """Forget what an earlier process did after the checkpoint; returns remarks for the log."""
    if request.resumption is None:
        return []
    remarks = [*request.resumption.remarks, f"resumed at step {request.start_step}"]
    file = next(
        path
        for path in newest_first(folder.checkpoints)
        if path.name == request.resumption.file.name
    )
    remarks += [f"dropped {path.name}, written after it" for path in drop_later(file)]
    return remarks + [f"changed {change}" for change in request.changes]


def measure(parts: Parts) -> Sizes:
    """Parameters of the agent and bytes of one lifetime's memory."""
    return Sizes(
        sum(parameter.numel() for parameter in parts.agent.parameters()),
        parts.agent.memory.state_bytes(),
    )


def config_tree(request: Request) -> Tree:
    """The resolved configuration as a tree."""
    tree = Tree("configuration")
    container = OmegaConf.to_container(request.config, resolve=True)
    _grow(tree, container)
    return tree


def estimate(request: Request, sizes: Sizes) -> str:
    """What the run will take: steps, updates, parameters, bytes."""
    settings = request.settings
    total = last_step(settings)
    steps = "endless" if total is None else f"{total:,} steps"
    updates = "" if total is None else f", {-(-total // settings.steps_per_update):,} updates"
    memory = sizes.state_bytes * settings.num_lifetimes
    checkpoint = 4 * ADAM_COPIES * sizes.num_parameters + memory
    return (
        f"{steps}{updates} of {settings.num_lifetimes} lifetimes x {settings.slice_steps} steps; "
        f"{sizes.num_parameters:,} parameters; "
        f"memory state {sizes.state_bytes:,} bytes per lifetime; "
        f"a checkpoint takes about {max(0.1, checkpoint / 1e6):.1f} MB"
    )


def unreferenced(stream: Stream) -> list[str]:
    """A line about the tasks that no regret speaks of, where there are any.

    Nothing where tasks follow the agent: to ask for a segment there is to draw it.
    """
    if stream.schedule.follows_agent:
        return []
    kinds = comparators(stream)
    names = [name for name, kind in kinds.items() if kind == NO_REFERENCE]
    if not names:
        return []
    shown = ", ".join(names[:MOST_NAMES]) + (" ..." if len(names) > MOST_NAMES else "")
    spoken = "is of the other tasks alone" if len(names) < len(kinds) else "is not known"
    return [f"without a reference (sojourn reference): {shown}; regret {spoken}"]


def hyperparameters(request: Request) -> Mapping[str, Any]:
    """Dotted key -> value of the whole configuration."""
    return flat(request.config)


def _grow(tree: Tree, node: Any) -> None:
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for name, value in items:
        if isinstance(value, (dict, list)) and value:
            _grow(tree.add(Text(str(name))), value)
        else:
            tree.add(Text(f"{name}: {'null' if value is None else value}"))
