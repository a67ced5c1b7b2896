"""The verb `live`: an endless life whose outer parameters keep learning, until interrupted."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress

from omegaconf import OmegaConf

from .errors import EXIT_FAILURE, EXIT_OK, RunError
from .folder import LATEST_LIFE, RunFolder, write_atomically
from .lives.life import Life
from .lives.parts import LiveParts, build_parts
from .lives.request import LiveRequest, prepare
from .progress import Display, choose_display
from .provenance import command_line, versions
from .resume import drop_later
from .stopping import StopRequest, exit_code


def live(words: Sequence[str]) -> int:
    """Run `sojourn live`; returns the exit code. Nothing of the run it begins from is changed."""
    request = prepare(words)
    parts = build_parts(request)
    folder = request.open_folder()
    settings = request.settings
    start = int(request.content["step"]) if request.goes_on else 0
    display = choose_display(settings.quiet, settings.num_steps, start)
    try:
        with StopRequest("window") as stop:
            _open(request, folder, str(parts.agent.device))
            return _live(request, parts, folder, display, stop)
    except OSError as error:
        raise RunError(f"{folder.path}: cannot be written ({error})") from error
    finally:
        display.close()
        folder.close()


def _open(request: LiveRequest, folder: RunFolder, device: str) -> None:
    """Write where the life comes from; forget what was lived after the checkpoint it goes on
    from.
    """
    folder.mark_latest(LATEST_LIFE)
    if request.goes_on:
        drop_later(folder.checkpoints / request.file.name)
    write_atomically(folder.config_file, OmegaConf.to_yaml(request.config, resolve=True))
    write_atomically(folder.path / "live.yaml", OmegaConf.to_yaml(request.live))
    folder.append("command.txt", command_line("live", request.words))
    if not request.goes_on:
        begun = {"from": str(request.origin), "step": int(request.content["step"])}
        folder.write_json("begin.json", begun | {"seed": request.seed})
    folder.write_json("versions.json", versions(device))


def _live(
    request: LiveRequest, parts: LiveParts, folder: RunFolder, display: Display, stop: StopRequest
) -> int:
    """Live to the end of the budget or to a stop, and leave the folder in order either way."""
    life = Life(request, parts, folder, display)
    go_on = command_line("live", [f"resume={folder.path}"])
    display.say(f"life {folder.path}, root seed {request.seed}, from step {life.step:,}")
    try:
        finished = life.live(stop)
    except Exception as error:
        return _fail(folder, life.step, error, go_on)
    finally:
        life.tables.close()
        parts.close()
    folder.set_status("done" if finished else "interrupted", life.step)
    display.say(life.tally.line(parts.measure))
    if finished:
        display.say(f"go on with: {go_on} num_steps=N")
        return EXIT_OK
    assert stop.signal is not None
    display.say(f"interrupted at step {life.step:,}, resume with: {go_on}")
    return exit_code(stop.signal)


def _fail(folder: RunFolder, step: int, error: Exception, go_on: str) -> int:
    """Leave a failed life: the traceback in its log, two lines for the person."""
    message = f"{type(error).__name__}: {error}"
    with suppress(OSError):  # on a full disk the lines below are all that is left
        folder.append("log.txt", traceback.format_exc())
        folder.set_status("failed", step, message)
    print(f"sojourn: failed at step {step:,}: {message}", file=sys.stderr)
    print(f"sojourn: see {folder.log_file}; resume with: {go_on}", file=sys.stderr)
    return EXIT_FAILURE
