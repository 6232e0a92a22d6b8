"""Ctrl-C for what make runs is no failure, and SIGTERM for make ends it, too."""

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from lab.processes import clean_environment
from rocket_rides.settings import PROJECT

PATIENCE = 30  # seconds; only a broken test waits that long
# make ends by the signal or, if that comes while it looks after the program's end, with status 2.
INTERRUPTED = (-signal.SIGINT, 2)
# As this project's programs end: by their own status, or by the signal.
PROGRAM = """
import signal, sys, time
signal.signal(signal.SIGINT, {handler})
signal.signal(signal.SIGTERM, lambda *_: (print("told to end"), sys.exit(7)))
print("ready", input(), flush=True)
time.sleep(60)
"""
BY_STATUS, BY_SIGNAL = "lambda *_: sys.exit(130)", "signal.SIG_DFL"


@contextmanager
def making(folder: Path, recipe: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """make, in the foreground of a terminal of its own."""
    (folder / "Makefile").write_text(f"program:\n\t@{recipe}\n\t@echo went on\n")
    shutil.copy(PROJECT / "demo/foreground", folder)
    terminal, inside = pty.openpty()

    def enter() -> None:
        os.close(os.open(os.ttyname(inside), os.O_RDWR))  # now it controls the session
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    process = subprocess.Popen(
        ["make", "--no-print-directory"],  # noqa: S607
        cwd=folder,
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
        preexec_fn=enter,
    )
    os.close(inside)
    os.write(terminal, b"line\n")
    yield process, terminal
    os.close(terminal)


def said(terminal: int, until: str = "\0") -> str:
    """What it prints, up to some text or to its end."""
    text = ""
    while until not in text:
        try:
            text += os.read(terminal, 1000).decode()
        except OSError:
            break
    return text


@pytest.mark.parametrize("handler", [BY_STATUS, BY_SIGNAL])
def test_ctrl_c_ends_make_without_a_word(tmp_path: Path, handler: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.format(handler=handler))
    with making(tmp_path, f"exec ./foreground '{sys.executable}' program.py") as (make, terminal):
        said(terminal, "ready line")
        os.write(terminal, b"\x03")
        assert "Error" not in (rest := said(terminal))
        assert "went on" not in rest
        assert make.wait(PATIENCE) in INTERRUPTED


def test_without_it_make_reports_an_error(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.format(handler=BY_STATUS))
    with making(tmp_path, f"exec '{sys.executable}' program.py") as (make, terminal):
        said(terminal, "ready line")
        os.write(terminal, b"\x03")
        assert "***" in said(terminal)  # "Error 130", or make loses sight of the program
        make.wait(PATIENCE)


def test_a_program_that_alone_was_interrupted_ends_make(tmp_path: Path) -> None:
    """Or make would go on with the next line."""
    with making(tmp_path, "exec ./foreground sh -c 'exit 130'") as (make, terminal):
        assert "went on" not in said(terminal)
        assert make.wait(PATIENCE) in INTERRUPTED


def test_sigterm_for_make_reaches_the_program(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.format(handler=BY_STATUS))
    with making(tmp_path, f"exec ./foreground '{sys.executable}' program.py") as (make, terminal):
        said(terminal, "ready line")
        make.terminate()
        assert "told to end" in said(terminal)
        assert make.wait(PATIENCE) == -signal.SIGTERM


def test_a_program_starts_without_a_standard_input(tmp_path: Path) -> None:
    with making(tmp_path, "exec ./foreground echo ready <&-") as (_, terminal):
        # The terminal echoes, at any time, what `making` types into it.
        assert said(terminal).replace("line\r\n", "", 1).split() == ["ready", "went", "on"]


@pytest.mark.parametrize("program", ["lab.specification", "demo.honcho run sleep 60"])
def test_each_program_that_make_starts_heeds_ctrl_c(program: str) -> None:
    """It begins with Ctrl-C ignored, and so do all that it starts."""
    with subprocess.Popen(
        [sys.executable, "-m", *program.split()],
        cwd=PROJECT,
        env=clean_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    ) as process:
        until = time.monotonic() + PATIENCE
        try:
            while process.poll() is None and time.monotonic() < until:
                os.killpg(process.pid, signal.SIGINT)
                time.sleep(0.05)
            assert process.poll() == -signal.SIGINT
            assert process.stderr
            assert process.stderr.read() == b""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_any_other_failure_is_one(tmp_path: Path) -> None:
    with making(tmp_path, "exec ./foreground sh -c 'exit 3'") as (make, terminal):
        assert "Error 3" in said(terminal)
        assert make.wait(PATIENCE) == 2
