"""The constructor is the schema: a configuration node is checked against what it is passed to.

A node with a `_target_` may hold that callable's parameters and nothing else, with values of the
annotated types.
"""

from __future__ import annotations

import inspect
import logging
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hydra.utils import get_object
from omegaconf import DictConfig, OmegaConf

from .errors import UsageError, hint

# Hydra logs what it cannot import before it raises; we say it in one line of our own.
logging.getLogger("hydra").addHandler(logging.NullHandler())

HYDRA_KEYS = ("_target_", "_partial_", "_args_", "_convert_", "_recursive_")


def check(config: DictConfig) -> None:
    """Check every `_target_` node; raises UsageError at the first fault."""
    container = OmegaConf.to_container(config, resolve=True)
    assert isinstance(container, dict)
    _check_node(container, "")


def check_against(target: Callable[..., Any], values: Mapping[str, Any], path: str) -> None:
    """Names and types of `values` against the parameters of `target`; `path` names the node."""
    known = parameters(target)
    prefix = f"{path}." if path else ""
    for name, value in values.items():
        if name in HYDRA_KEYS:
            continue
        if name not in known:
            raise UsageError(f"{prefix}{name}: no such key; {hint(name, known)}")
        if not accepts(known[name], value):
            raise UsageError(f"{prefix}{name}: expected {describe(known[name])}, got {value!r}")


def parameters(target: Callable[..., Any]) -> dict[str, Any]:
    """Parameter name -> annotation (`Any` where there is none or it cannot be resolved)."""
    function = target.__init__ if inspect.isclass(target) else target
    try:
        annotations = get_type_hints(function)
    except (NameError, TypeError):
        annotations = {}
    return {
        name: annotations.get(name, Any)
        for name, parameter in inspect.signature(target).parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }


def target_of(name: str, path: str) -> Callable[..., Any]:
    """The callable a `_target_` names; raises UsageError when it cannot be imported."""
    try:
        found: Callable[..., Any] = get_object(name)
    except Exception as error:
        reason = str(error).splitlines()[-1]
        raise UsageError(f"{path}._target_: cannot import {name!r} ({reason})") from error
    return found


def accepts(annotation: Any, value: Any) -> bool:
    """Whether a plain value may be passed where `annotation` is declared; unknown kinds pass."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return any(accepts(option, value) for option in arguments)
    if origin is Literal:
        return value in arguments
    if annotation in (type(None), None):
        return value is None
    if isinstance(annotation, type) and annotation in (bool, int, float, str):
        return _is_scalar(annotation, value)
    if isinstance(value, Mapping) and "_target_" in value:
        return True
    kind = origin if isinstance(origin, type) else annotation
    if not isinstance(kind, type) or kind is object:
        return True
    if issubclass(kind, (Mapping, Sequence)):
        return isinstance(value, Mapping if issubclass(kind, Mapping) else list)
    return False


def describe(annotation: Any) -> str:
    """An annotation in words a user can act on: `int`, `one of 'a', 'b'`, `number or null`."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return " or ".join(describe(option) for option in arguments)
    if origin is Literal:
        return "one of " + ", ".join(repr(option) for option in arguments)
    if annotation in (type(None), None):
        return "null"
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    if isinstance(annotation, type):
        return words.get(annotation, f"a {annotation.__name__} (a node with `_target_`)")
    return str(annotation).replace("typing.", "")


def _is_scalar(kind: type, value: Any) -> bool:
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def _check_node(node: Any, path: str) -> None:
    if isinstance(node, list):
        for index, item in enumerate(node):
            _check_node(item, f"{path}.{index}")
    elif isinstance(node, dict):
        if "_target_" in node:
            check_against(target_of(node["_target_"], path), node, path)
        for name, value in node.items():
            _check_node(value, f"{path}.{name}" if path else str(name))
