"""`sojourn VERB --help`: every key with its default and meaning, and the choices of every group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.table import Table
from rich.text import Text

from . import catalog
from .config import ROOT, compose_config, parse
from .errors import EXIT_OK
from .help_environments import CHECK_ENV, REFERENCE
from .help_evaluation import EVALUATE, EXPLAIN
from .help_live import LIVE
from .help_reports import COMPARE, RECORD
from .live_settings import default_config
from .progress import plain_console
from .schema import HYDRA_KEYS

TRAIN = """sojourn train [key=value ...]

Train an agent's outer parameters while it lives through a stream of tasks.

  sojourn train experiment=quickstart                 a preset
  sojourn train memory=delta_net seed=2               other choices of a group
  sojourn train memory=./my_core.yaml                 a file of your own
  sojourn train trainer.num_epochs=2                  a key of a group
  sojourn train resume=latest                         go on where a run stopped

Any other argument of a class named by a `_target_` may be set too, as group.key=value.
"""
CHECK_CORE = """sojourn check-core memory=NAME|FILE.yaml [key=value ...]

Check that a memory obeys the laws that training relies on: one line for each, exit code 1 if one
is broken. Any key of a training run may be given, such as memory.num_heads=4 or agent.width=32.

  sojourn check-core memory=./my_core.yaml            your own: its class may lie beside the file
  sojourn check-core memory=gated_delta_net           one of ours
"""
PROBE = """sojourn probe [probe=NAMES] [memory=NAMES] [seed=NUMBERS] [key=value ...]

Train memories on supervised tasks, without reinforcement learning, and compare their scores.

  sojourn probe probe=mqar memory=delta_net,mesa_net,ttt_mlp seed=0..2
  sojourn probe probe=all memory=all jobs=2           every memory on every probe
  sojourn probe memory=gru match=parameters           at the size of another memory

  probe      names, comma list or all; sojourn list probe
  memory     names, comma list or all; sojourn list memory
  seed       0 | 0,1 | 0..2
  match      none | parameters | state_bytes: widths are solved so that this equals the reference's
  reference  the memory whose size is matched; default gated_delta_net
  control    none | reset_every_step: the short convolution alone, without the memory
  jobs       members trained side by side, one thread each; default 1
  output     folder of rows, tables and figures; default runs/probes

Members found in the output folder with the same settings are not trained again, failed ones are:
give the same command to go on. steps, batch, lr, width, depth, mlp_ratio, task.KEY and memory.KEY
hold for all members; their defaults for one probe:
"""
STUDY = """sojourn study [study=NAME] [key=value,value ...]

Train every combination of settings and seeds, side by side, and compare them.

  sojourn study experiment=bandit memory=delta_net,gru seed=0..4
  sojourn study study=bandit                        a shipped study, or a YAML file of your own
  sojourn study study=bandit seed=7..9 jobs=8       words here go before those of the file
  sojourn study study=bandit part=2/4               the second of four machines

  study      a file of words, sweeps and where; sojourn list study
  jobs       runs side by side, one thread each; default auto: one for every core
  part       a share such as 2/4: one job of an array on a cluster, all with the same output
  match      none | parameters | state_bytes: widths are solved so that this equals the reference's
  reference  the memory whose size is matched; default gated_delta_net
  output     folder of the study; default runs/studies/NAME
  mix_backends  true: members with stream.backend=envpool beside others

All other words are those of sojourn train; a comma or a range such as 0..4 makes several members.
A member that is finished is kept as a small row file in members/ and is not run again; one that was
cut is resumed; one that fails is told at the end (exit code 1) and tried again by the same command.
"""
LIST = """sojourn list [GROUP ...] [pictures=FILE.png]

List what can be chosen: memory, stream, agent, trainer, experiment, probe, study. With the group
stream, pictures=FILE.png draws what the first tasks of every stream look like.
"""


def help_train(words: Sequence[str]) -> int:
    """Print the keys of a training run, under the choices given in `words`."""
    config = compose_config(parse(words))
    console = plain_console()
    console.print(TRAIN, markup=False, highlight=False)
    console.print(_choices(config))
    console.print(_keys("run", OmegaConf.to_container(config), _comments(None, ROOT), ""))
    for group in catalog.GROUPS[:-1]:
        name = config.choices[group]
        values = OmegaConf.to_container(config[group])
        console.print(_keys(f"{group}={name}", values, _comments(group, name), f"{group}."))
    return EXIT_OK


def help_evaluate(words: Sequence[str]) -> int:
    """Print the help of `evaluate`."""
    return _say(EVALUATE, words)


def help_explain(words: Sequence[str]) -> int:
    """Print the help of `explain`."""
    return _say(EXPLAIN, words)


def help_live(words: Sequence[str]) -> int:
    """Print the help of `live` and its keys."""
    del words
    console = plain_console()
    console.print(LIVE, markup=False, highlight=False)
    values, comments = OmegaConf.to_container(default_config()), _comments(None, "live")
    console.print(_keys("life", values, comments, ""))
    return EXIT_OK


def help_compare(words: Sequence[str]) -> int:
    """Print the help of `compare`."""
    return _say(COMPARE, words)


def help_check_core(words: Sequence[str]) -> int:
    """Print the help of `check-core`."""
    return _say(CHECK_CORE, words)


def help_probe(words: Sequence[str]) -> int:
    """Print the help of `probe` and the keys of the first probe named in `words`."""
    options = dict(word.split("=", 1) for word in words if "=" in word)
    name = options.get("probe", "mqar").split(",")[0]
    known = catalog.options("probe")
    name = name if name in known else known[0]
    config = OmegaConf.create(catalog.text_of("probe", name))
    console = plain_console()
    console.print(PROBE, markup=False, highlight=False)
    values = OmegaConf.to_container(config)
    console.print(_keys(f"probe={name}", values, _comments("probe", name), ""))
    return EXIT_OK


def help_check_env(words: Sequence[str]) -> int:
    """Print the help of `check-env`."""
    return _say(CHECK_ENV, words)


def help_reference(words: Sequence[str]) -> int:
    """Print the help of `reference`."""
    return _say(REFERENCE, words)


def help_study(words: Sequence[str]) -> int:
    """Print the help of `study`."""
    return _say(STUDY, words)


def help_record(words: Sequence[str]) -> int:
    """Print the help of `record`."""
    return _say(RECORD, words)


def help_list(words: Sequence[str]) -> int:
    """Print the help of `list`."""
    return _say(LIST, words)


def _say(text: str, words: Sequence[str]) -> int:
    del words
    Console().print(text, markup=False, highlight=False)
    return EXIT_OK


def _choices(config: DictConfig) -> Table:
    table = Table(title="Choices", title_justify="left")
    table.add_column("group")
    table.add_column("chosen")
    table.add_column("of")
    for group in catalog.GROUPS:
        table.add_row(group, str(config.choices[group]), ", ".join(catalog.options(group)))
    return table


def _comments(group: str | None, name: str) -> dict[str, str]:
    text = catalog.text_of(group, name)
    own = catalog.key_comments(text)
    for parent in catalog.parents(text):
        inherited = _comments(group, parent)
        own = inherited | {key: said for key, said in own.items() if said or key not in inherited}
    return own


def _keys(title: str, values: Any, comments: dict[str, str], prefix: str) -> Table:
    """A row for every leaf of `values`; keys that are groups have a table of their own."""
    table = Table(title=title, title_justify="left")
    for column in ("key", "default", "meaning"):
        table.add_column(column, overflow="fold")
    skipped = (*catalog.GROUPS, "choices") if not prefix else ()

    def visit(node: Any, path: str) -> None:
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for name, value in items:
            child = f"{path}.{name}" if path else str(name)
            if name in HYDRA_KEYS or child in skipped:
                continue
            if isinstance(value, (dict, list)) and value:
                kind = value.get("_target_", "") if isinstance(value, dict) else ""
                if kind or comments.get(child):
                    table.add_row(
                        prefix + child, Text(kind.rpartition(".")[2]), Text(comments.get(child, ""))
                    )
                visit(value, child)
            else:
                shown = "null" if value is None else str(value)
                table.add_row(prefix + child, Text(shown), Text(comments.get(child, "")))

    visit(values, "")
    return table
