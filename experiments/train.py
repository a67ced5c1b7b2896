"""The verb `train`: a run from its first step, or from a checkpoint, to the end of its budget."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from omegaconf import OmegaConf

from sojourn.agents import rank

from . import launch, together
from .build import Parts, build
from .debugging import watched
from .errors import EXIT_FAILURE, EXIT_OK, RunError, UsageError
from .evaluations.beside import PeriodicEvaluation
from .finish import finish
from .folder import RunFolder
from .progress import Display, choose_display, plain_console
from .provenance import command_line
from .recorder import Recorder
from .request import Request, open_folder, prepare
from .run import Run, last_step
from .spaces import check_spaces
from .stopping import StopRequest, exit_code


def train(words: Sequence[str]) -> int:
    """Run `sojourn train`; returns the exit code. Raises UsageError before anything is written.

    Processes that `torchrun` started share the run.
    """
    with together.joined():
        return _train(words)


def _train(words: Sequence[str]) -> int:
    request = prepare(words)
    together.check(request)
    if request.settings.estimate:
        return _estimate(request)
    parts = build(request.config, request.settings)
    together.check_parts(request, parts)
    if rank() > 0:
        return together.follow(request, parts)
    if request.resumption is not None:
        check_spaces(parts.agent, parts.stream.interface, request.resumption.content)
    beside = PeriodicEvaluation(request.config, request.settings, parts.stream)
    folder = open_folder(request)
    total = last_step(request.settings)
    display = choose_display(request.settings.quiet, total, request.start_step)
    try:
        with StopRequest() as stop:
            run = _start(request, parts, folder, display, beside)
            return _live(request, parts, run, stop)
    except OSError as error:
        raise RunError(f"{folder.path}: cannot be written ({error})") from error
    finally:
        parts.rollout.crowd.close()
        display.close()
        folder.close()


def _estimate(request: Request) -> int:
    """Say what the run would take, and leave nothing."""
    if request.resumption is not None:
        raise UsageError("estimate: of a new run; one that goes on soon says what is left of it")
    from .forecast import forecast  # imported where asked for: it makes runs itself

    for line in forecast(request.words).lines():
        plain_console().print(line, markup=False, highlight=False)
    return EXIT_OK


def _start(
    request: Request,
    parts: Parts,
    folder: RunFolder,
    display: Display,
    beside: PeriodicEvaluation,
) -> Run:
    """Write and show what the run is."""
    remarks = launch.rewind(folder, request)
    launch.write_origin(folder, request, str(parts.agent.device))
    folder.set_status("running", request.start_step)
    folder.mark_latest()
    found = request.resumption
    recorder = Recorder(
        folder,
        display,
        request.settings.log_every,
        found.content["rows"] if found else None,
        found.content["step"] if found else None,
    )
    if found is None:
        display.say(launch.config_tree(request))
        recorder.hyperparameters(launch.hyperparameters(request))
    sizes = launch.measure(parts)
    remarks += launch.unreferenced(parts.stream)
    for remark in (launch.estimate(request, sizes), f"run folder {folder.path}", *remarks):
        recorder.note(remark)
    config = OmegaConf.to_yaml(request.config)
    return Run(
        parts.agent,
        parts.rollout,
        parts.trainer,
        recorder,
        folder,
        request.settings,
        config,
        beside,
    )


def _live(request: Request, parts: Parts, run: Run, stop: StopRequest) -> int:
    """Live to the end of the budget or to a stop, and leave the folder in order either way."""
    try:
        with _warnings_noted(run.recorder), ExitStack() as debugging:
            if request.settings.debug:
                debugging.enter_context(watched(run.agent))
            if request.resumption is not None:
                run.load_state_dict(request.resumption.content)
            finished = run.live(stop)
            run.recorder.record_running(run.step, parts.rollout.crowd.running_episodes())
            finished = finish(request, parts, run, stop) and finished
        run.folder.set_status("done" if finished else "interrupted", run.step)
        return _last_words(run, finished, stop)
    except Exception as error:
        return _fail(request, run, error)
    finally:
        run.recorder.close()


@contextmanager
def _warnings_noted(recorder: Recorder) -> Iterator[None]:
    """Warnings become lines of the log instead of tearing up the display."""

    def note(message: Warning | str, *_: object, **__: object) -> None:
        recorder.note(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = note
        yield


def _last_words(run: Run, finished: bool, stop: StopRequest) -> int:
    """Say how to go on; returns the exit code."""
    note = run.recorder.note
    if stop.signal is not None and not finished:
        note(f"interrupted at step {run.step:,}, resume with: {_resume(run)}")
        return exit_code(stop.signal)
    note(f"continue with: {_resume(run)} num_steps=N")
    note(f"compare with: {command_line('compare', [str(run.folder.path), 'RUN'])}")
    return EXIT_OK


def _fail(request: Request, run: Run, error: Exception) -> int:
    """Leave a failed run: the traceback in its log, two lines for the person."""
    message = f"{type(error).__name__}: {error}"
    if isinstance(error, FloatingPointError):  # it names the parameter, which many memories have
        message += f" (memory={request.config.choices.memory})"
    with suppress(OSError):  # on a full disk the lines below are all that is left
        run.recorder.log(traceback.format_exc())
        run.folder.set_status("failed", run.step, message)
    if run.settings.debug:
        traceback.print_exc()
    print(f"sojourn: failed at step {run.step:,}: {message}", file=sys.stderr)
    print(f"sojourn: see {run.folder.log_file}; resume with: {_resume(run)}", file=sys.stderr)
    return EXIT_FAILURE


def _resume(run: Run) -> str:
    return command_line("train", [f"resume={run.folder.path}"])
