"""Tab completion in the shells themselves: the key is pressed, and the line read back."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sojourn.experiments.command import main
from sojourn.experiments.complete import SCRIPTS

READY, TOLD = "ready> ", "told"
CLEAR, TAB, SHOW = b"\x15", b"\t", b"\x19"  # control-U, the tab key, control-Y
# What makes a prompt that can be waited for, and a key that writes the line to a file.
RC = {
    "bash": f"PS1='{READY}'\nbind -x '\"\\C-y\": printf %s \"$READLINE_LINE\" > {TOLD}'\n",
    "zsh": f"PS1='{READY}'\nshow() {{ print -rn -- $BUFFER > {TOLD} }}\n"
    "zle -N show\nbindkey '^Y' show\nbindkey '^U' kill-whole-line\n",
    "fish": f"function fish_prompt; echo -n '{READY}'; end\nset -g fish_greeting\n"
    "function bind_keys --on-event fish_prompt\n"
    f"bind \\cy 'commandline > {TOLD}'\nbind \\cu 'commandline \"\"'\nend\n",
}
START: dict[str, Callable[[Path], list[str]]] = {
    "bash": lambda place: ["--noprofile", "--rcfile", str(place / "rc"), "-i"],
    "zsh": lambda place: ["-i"],
    "fish": lambda place: ["-i", "--init-command", f"source {place / 'rc'}"],
}
LINES = {
    "sojourn tra": "sojourn train ",
    "sojourn train memory=delta_n": "sojourn train memory=delta_net ",
    "sojourn train num_lif": "sojourn train num_lifetimes=",
    "sojourn study memory=gru,ls": "sojourn study memory=gru,lstm ",
    "sojourn list st": "sojourn list st",  # stream and study: nothing more is sure
}
SHELLS = [
    pytest.param(name, marks=pytest.mark.skipif(not shutil.which(name), reason=f"no {name} here"))
    for name in SCRIPTS
]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_accepted_by_its_shell(
    shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["completion", shell]) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)
    checked = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_tab_key_finishes_the_line(shell: str, tmp_path: Path) -> None:
    stub = tmp_path / "bin" / "sojourn"
    stub.parent.mkdir()
    stub.write_text(f'#!/bin/sh\nexec {sys.executable} -m sojourn.experiments.command "$@"\n')
    stub.chmod(0o755)
    for name in ("rc", ".zshrc"):
        (tmp_path / name).write_text(SCRIPTS[shell] + RC[shell])
    with session(shell, tmp_path) as terminal:
        wait_for(terminal, lambda said: READY in said)
        for line, expected in LINES.items():
            (tmp_path / TOLD).unlink(missing_ok=True)
            os.write(terminal, line.encode() + TAB + SHOW)
            wait_for(terminal, lambda _: bool(told(tmp_path)))
            assert told(tmp_path) == expected
            os.write(terminal, CLEAR)


@contextmanager
def session(shell: str, place: Path) -> Iterator[int]:
    """A shell at a terminal of its own; the file to type into."""
    environment = os.environ | {
        "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
        "ZDOTDIR": str(place),
        "HOME": str(place),
        "TERM": "dumb" if shell == "bash" else "vt100",
    }
    outer, inner = pty.openpty()
    process = subprocess.Popen(
        [shell, *START[shell](place)],
        cwd=place,
        env=environment,
        preexec_fn=lambda: os.login_tty(inner),
    )
    os.close(inner)
    try:
        yield outer
    finally:
        process.kill()
        process.wait()
        os.close(outer)


def wait_for(terminal: int, seen: Callable[[str], bool]) -> None:
    """Read what the shell writes until it is as expected; a shell that is stuck fails the test."""
    said, deadline = "", time.monotonic() + 300
    while not seen(said):
        assert time.monotonic() < deadline, said
        if select.select([terminal], [], [], 0.1)[0]:
            said += os.read(terminal, 4096).decode(errors="replace")


def told(place: Path) -> str:
    """The line of the shell, once it has been written down."""
    path = place / TOLD
    return path.read_text().removesuffix("\n") if path.exists() else ""
