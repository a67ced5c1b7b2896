"""A first signal is remembered; a second one ends the process at once."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from sojourn.experiments.stopping import StopRequest

SCRIPT = """
import time
from sojourn.experiments.stopping import StopRequest
with StopRequest() as stop:
    print("ready", flush=True)
    while stop.signal is None:
        time.sleep(0.01)
    print("saving", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_quits_at_once(number: signal.Signals, code: int) -> None:
    command = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == "saving\n"
        begin = time.monotonic()
        process.send_signal(number)
        assert process.wait(timeout=30) == code
        assert time.monotonic() - begin < 10
        assert "once more to quit at once" in process.stderr.read()


def test_the_handlers_before_are_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with StopRequest() as stop:
        assert signal.getsignal(signal.SIGINT) != before
        signal.raise_signal(signal.SIGINT)
        assert stop.signal == signal.SIGINT
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_that_was_blocked_is_let_through() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with StopRequest() as stop:
            signal.raise_signal(signal.SIGINT)
            assert stop.signal == signal.SIGINT
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_what_is_to_be_ended_is_ended_before_a_second_signal_ends_the_process() -> None:
    script = (
        "import os, signal\n"
        "from sojourn.experiments.stopping import StopRequest\n"
        "with StopRequest(at_once=lambda: os.write(1, b'called')):\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert (ended.returncode, ended.stdout) == (143, b"called")
