"""A process stops at the first signal, whatever its main thread is about to do."""

import subprocess
import sys

import pytest

from rocket_rides.settings import PROJECT

# The signal comes to another thread, and interrupts no system call of the main one: for that, it is
# as if it had come just before that call began.
WAITS = """
import os, signal, threading
from pathlib import Path
from unified_log import process

stop = process.Stop().on_signals()
channel = Path(f"/proc/self/task/{threading.main_thread().native_id}/wchan")

def end():
    while "poll" not in channel.read_text() and "select" not in channel.read_text():
        pass
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=end, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
raise SystemExit(0 if stop.wait(20) else 1)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux where the main thread waits")
def test_a_signal_that_comes_just_before_a_wait_ends_it() -> None:
    waits = [sys.executable, "-c", WAITS]
    with subprocess.Popen(waits, cwd=PROJECT) as process:
        assert process.wait(10) == 0
