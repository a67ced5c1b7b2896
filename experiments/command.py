"""The command `sojourn VERB [words ...]`: a mistake gets one line of ours and exit code 2."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

from .errors import EXIT_FAILURE, EXIT_OK, EXIT_USAGE, RunError, UsageError, hint
from .processes import num_processes
from .provenance import version_of
from .stopping import exit_code


class Verb(NamedTuple):
    """A module of this room, imported when used, and its `function(words) -> exit code`."""

    module: str
    function: str
    words: str
    duty: str


VERBS = {
    "train": Verb("train", "train", "[key=value ...]", "train an agent on a stream of tasks"),
    "evaluate": Verb("evaluate", "evaluate", "RUN [key=value ...]", "live held-out lifetimes"),
    "live": Verb("live", "live", "RUN [key=value ...]", "live on and on, learning all the while"),
    "explain": Verb("explain", "explain", "[METRIC ...]", "what a number is, and what it hides"),
    "compare": Verb(
        "compare", "compare", "RUN|STUDY ... [key=value ...]", "compare runs, with a page"
    ),
    "check-core": Verb(
        "check_core", "check_core", "memory=NAME|FILE.yaml [key=value ...]", "check a memory's laws"
    ),
    "probe": Verb("probe", "probe", "[key=value ...]", "test memories on supervised tasks"),
    "study": Verb("study", "study", "[key=value,value ...]", "run settings x seeds, resumable"),
    "check-env": Verb("check_env", "check_env", "ID ... [key=value ...]", "try an environment"),
    "reference": Verb("reference", "reference", "ID [key=value ...]", "measure floor and ceiling"),
    "record": Verb("record", "record", "RUN [key=value ...]", "a lifetime as a moving picture"),
    "list": Verb("listing", "list_groups", "[GROUP]", "list memories, streams, experiments"),
    "completion": Verb("complete", "completion", "bash|zsh|fish", "finish words on the tab key"),
}
SHOW = Verb("manual.help", "show", "VERB", "what a verb reads")
HELP_WORDS = ("--help", "-h", "help")


def main(words: Sequence[str] | None = None) -> int:
    """Entry point of the command; `words` defaults to the process's own. Returns the exit code."""
    words = list(sys.argv[1:] if words is None else words)
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # a `_target_` or a task may name a module of the user's
    try:
        return _dispatch(words)
    except UsageError as error:
        print(f"sojourn: {error}", file=sys.stderr)
        return EXIT_USAGE
    except RunError as error:
        print(f"sojourn: {error}", file=sys.stderr)
        return EXIT_FAILURE
    except KeyboardInterrupt:
        return exit_code(signal.SIGINT)
    except BrokenPipeError:  # the reader of our output left, as `| head` does
        return EXIT_OK


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in HELP_WORDS:
        print(usage())
        return EXIT_OK if words else EXIT_USAGE
    if words[0] in ("--version", "version"):
        print(f"sojourn {version_of('sojourn')}")
        return EXIT_OK
    name, rest = words[0], words[1:]
    if name not in VERBS:
        raise UsageError(f"{name}: no such verb; {hint(name, VERBS)}")
    if not all(word.strip() for word in rest):
        raise UsageError(f"{name}: a word is empty; expected sojourn {name} {VERBS[name].words}")
    if num_processes() > 1 and name != "train":
        raise UsageError(f"{name}: one process only; torchrun is for sojourn train")
    if any(word in HELP_WORDS for word in rest):
        return _call(SHOW, [name, *(word for word in rest if word not in HELP_WORDS)])
    return _call(VERBS[name], rest)


def usage() -> str:
    """The help of the command itself."""
    lines = ["sojourn VERB [words ...]", ""]
    lines += [f"  {f'{name} {verb.words}':48s} {verb.duty}" for name, verb in VERBS.items()]
    lines += ["", "sojourn VERB --help tells more; sojourn --version"]
    return "\n".join(lines)


def _call(verb: Verb, words: list[str]) -> int:
    module = import_module(f".{verb.module}", __package__)
    function: Callable[[list[str]], int] = getattr(module, verb.function)
    return function(words)


if __name__ == "__main__":
    sys.exit(main())
