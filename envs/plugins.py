"""Environments of installed packages: the entry points of the group `sojourn.envs`.

    [project.entry-points."sojourn.envs"]
    my-maze = "my_package.mazes:make_maze"

An entry point names a function or class that gives, for keyword arguments, a `Family` or a
`gymnasium.Env`; its name is then a task, as an id is.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

GROUP = "sojourn.envs"


def plugins() -> dict[str, EntryPoint]:
    """The installed entry points by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def origin(point: EntryPoint) -> str:
    """The package an entry point comes from, and what it names there."""
    package = point.dist.name if point.dist is not None else "unknown package"
    return f"{point.value} of {package}"
