"""Dotted configuration keys: which exist, which may be added, what a wrong one was meant to be."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, ListConfig

from .errors import hint, nearest
from .schema import HYDRA_KEYS, parameters, target_of

# Names that other frameworks use for the last part of one of our keys.
ALIASES = {
    "total_timesteps": "num_steps",
    "total_steps": "num_steps",
    "timesteps": "num_steps",
    "num_envs": "num_lifetimes",
    "n_envs": "num_lifetimes",
    "rollout_length": "slice_steps",
    "lr": "learning_rate",
    "gamma": "discount",
    "core": "memory",
    "env": "stream",
    "env_id": "stream",
    "n_heads": "num_heads",
    "hidden_size": "width",
    "cuda": "device",
}

# Arguments that the run itself passes to a group's class, and the keys they come from.
PROVIDED = {"stream.seed": "seed", "memory.width": "agent.width", "trainer.agent": "agent"}


def fault(config: DictConfig, key: str) -> str | None:
    """Why a dotted key may not be set; None when it may.

    Inside a `_target_` node the callable's parameters may be added even where the file does not
    list them; the plain mappings below one are free.
    """
    if key in PROVIDED:
        return f"{key}: set by the run from {PROVIDED[key]}"
    node: Any = config
    inside_target = False
    parts = key.split(".")
    for depth, part in enumerate(parts):
        path = ".".join(parts[:depth])
        if isinstance(node, ListConfig):
            if not (part.isdigit() and int(part) < len(node)):
                return f"{key}: {path} has entries 0 to {len(node) - 1}"
            node = node[int(part)]
            continue
        if not isinstance(node, DictConfig):
            return f"{key}: {path} is a value, it has no keys"
        inside_target = inside_target or "_target_" in node
        if part in node:
            node = node[part]
            continue
        if "_target_" in node:
            known = parameters(target_of(node["_target_"], path))
            return (
                None
                if part in known
                else f"{key}: no such key; {_suggest(config, path, part, known)}"
            )
        return (
            None if inside_target else f"{key}: no such key; {_suggest(config, path, part, node)}"
        )
    return None


def all_keys(config: DictConfig) -> list[str]:
    """Every dotted key of a configuration, groups included, in the order of the files."""
    found: list[str] = []

    def visit(node: DictConfig, path: str) -> None:
        for name in node:
            if name in HYDRA_KEYS:
                continue
            child = f"{path}.{name!s}" if path else str(name)
            found.append(child)
            if isinstance(node[name], DictConfig):
                visit(node[name], child)

    visit(config, "")
    return found


def _suggest(config: DictConfig, path: str, part: str, siblings: Any) -> str:
    """Nearest names: a known alias, the keys beside it, or (for a root key) any key."""
    everywhere = all_keys(config)

    # Inside a part of a group's class, keys of other groups are not what was meant.
    group, nested, _ = path.partition(".")

    def named(name: str) -> str | None:
        meant = [key for key in everywhere if key.rsplit(".", 1)[-1] == name]
        if nested:
            meant = [key for key in meant if key.startswith(f"{group}.")]
        return min(meant, key=lambda key: key.count("."), default=None)

    beside = [str(name) for name in siblings if name not in HYDRA_KEYS]
    beside = [name for name in beside if f"{path}.{name}" not in PROVIDED]
    found = named(ALIASES.get(part, part))
    if found is None and nearest(part, beside):
        return hint(part, beside)
    for alias in nearest(part, ALIASES, count=1):
        found = found or named(ALIASES[alias])
    if found is None and not path:
        leaves = {key.rsplit(".", 1)[-1]: key for key in reversed(everywhere)}
        found = next((leaves[name] for name in nearest(part, leaves, count=1)), None)
    if found is None and not beside:
        return f"{path} takes none"
    return f"did you mean {found}?" if found else hint(part, beside)
