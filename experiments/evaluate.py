"""The verb `evaluate`: a trained agent on held-out lifetimes, beside its controls."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence

import torch
from omegaconf import OmegaConf

from .errors import EXIT_OK, RunError, UsageError
from .evaluations.figures import draw_figures, pictures
from .evaluations.findings import Findings
from .evaluations.living import carry_out, checkpoint_files
from .evaluations.page import PAGE, evaluation_page
from .evaluations.report import lines, rich_table, write_tables
from .evaluations.request import Evaluation, request
from .folder import write_atomically
from .loading import agent_of
from .progress import plain_console
from .provenance import command_line, versions
from .stopping import StopRequest, exit_code


def evaluate(words: Sequence[str]) -> int:
    """Run `sojourn evaluate`; returns the exit code. Nothing of the run is changed."""
    wanted = request(words)
    # What cannot be lived is refused before anything is written.
    wanted.streams()
    agent = agent_of(wanted.trained, wanted.content)
    if wanted.checkpoints != 0:
        checkpoint_files(wanted)
    torch.set_num_threads(int(wanted.trained.num_threads))
    console = plain_console()

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False)

    open_folder(wanted, words)
    try:
        with StopRequest() as stop, warnings.catch_warnings():
            warnings.simplefilter("default")
            found = carry_out(wanted, agent, stop, say)
        if found is None:
            assert stop.signal is not None
            say(f"stopped; what was lived is in {wanted.output}")
            return exit_code(stop.signal)
        write_findings(wanted, found)
    except OSError as error:
        raise RunError(f"{wanted.output}: cannot be written ({error})") from error
    console.print(rich_table(found.rows))
    for line in (*lines(found.rows), *found.notes, f"tables and figures in {wanted.output}"):
        say(line)
    return EXIT_OK


def open_folder(wanted: Evaluation, words: Sequence[str]) -> None:
    """Make the folder and write where its numbers come from."""
    folder = wanted.output
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise UsageError(f"output={folder}: exists already; choose another") from error
    except OSError as error:
        raise UsageError(f"output={folder}: cannot be made here ({error})") from error
    write_atomically(folder / "command.txt", command_line("evaluate", words) + "\n")
    write_atomically(folder / "config.yaml", OmegaConf.to_yaml(wanted.config, resolve=True))
    write_atomically(folder / "versions.json", json.dumps(versions("cpu"), indent=2) + "\n")


def write_findings(wanted: Evaluation, found: Findings) -> None:
    """Tables, figures and the page."""
    write_tables(wanted.output, found)
    shown = pictures(found)
    draw_figures(wanted.output, shown)
    write_atomically(wanted.output / PAGE, evaluation_page(found, shown))
