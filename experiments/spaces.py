"""Whether a checkpoint and the environments it goes on in have the same spaces, key by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sojourn.agents import Agent
from sojourn.envs import PREVIOUS_PARTS, Array, Interface

from .errors import UsageError

NONE = "nothing"


def load_agent(agent: Agent, interface: Interface, content: Mapping[str, Any]) -> None:
    """Give an agent, made for `interface`, the parameters of a checkpoint that fits it."""
    check_spaces(agent, interface, content)
    agent.load_state_dict(content["agent"])


def check_spaces(agent: Agent, interface: Interface, content: Mapping[str, Any]) -> None:
    """Raise UsageError with a line for every key that a checkpoint and `interface` differ in.

    Compared is what was last seen and how many values it could have; where all of that fits, the
    shapes of the parameters of `agent`.
    """
    seen = content.get("rollout", {}).get("crowd", {}).get("observation", {})
    shown = interface.zeros(1) if seen else {}
    expected = _told(seen, content.get("num_values", {}))
    found = _told(shown, num_values(interface) if "num_values" in content else {})
    for name in interface.inputs if seen else ():
        found[name] = expected.get(name, NONE)
        if name == "action_mask":
            found[name] = f"bool [{interface.mask_width}]"
        if name == PREVIOUS_PARTS:
            found[name] = f"float32 [{interface.num_parts - 1}]"
    lines = _differences(expected, found)
    if not lines:
        parameters = agent.state_dict().items()
        lines = _differences(
            {name: str(list(value.shape)) for name, value in content["agent"].items()},
            {name: str(list(value.shape)) for name, value in parameters},
        )
    if lines:
        told = "\n  ".join(lines)
        raise UsageError(
            f"the checkpoint is of another space than the environments have:\n  {told}"
        )


def num_values(interface: Interface) -> dict[str, int]:
    """How many values every channel of codes has: what no array shows, kept in a checkpoint."""
    return {name: c.num_values for name, c in interface.channels.items() if c.num_values}


def _told(arrays: Mapping[str, Array], values: Mapping[str, int]) -> dict[str, str]:
    told = {}
    for name, array in arrays.items():
        text = f"{array.dtype} {list(array.shape[1:])}"
        told[name] = f"{text} of {values[name]} values" if name in values else text
    return told


def _differences(expected: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """A line for every key; `expected` is what the checkpoint has."""
    return [
        f"{name}: expected {expected.get(name, NONE)}, found {found.get(name, NONE)}"
        for name in sorted({*expected, *found})
        if expected.get(name) != found.get(name)
    ]
