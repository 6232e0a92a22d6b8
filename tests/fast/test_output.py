"""What a process of the package says, where nobody reads it, or it can't be written."""

import subprocess
import sys
from pathlib import Path

from rocket_rides.settings import PROJECT

ROUNDS = """
import logging
from unified_log import process
stop = process.Stop().on_signals()
process.log_to_stdout("INFO")
for _ in range(1000):  # more than a pipe holds
    if not stop:
        logging.info("%1000s", "a round")
"""
SHOWN = """
from unified_log import process
process.show(["a report"])
"""


def test_a_process_whose_reader_has_seen_enough_ends_as_if_it_was_asked_to() -> None:
    """As in `| head`."""
    with subprocess.Popen(
        [sys.executable, "-c", ROUNDS], cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline().endswith(b" a round\n")
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 0)


def test_a_report_on_a_full_disk_is_one_clear_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", SHOWN],
            cwd=PROJECT,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == b"stdout can't be written: No space left on device\n"
