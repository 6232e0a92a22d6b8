"""What a process says, as text or, with LOG_FORMAT=json, as an object on each line."""

import io
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from honcho.printer import Message

from demo.processes import Objects
from rocket_rides.settings import PROJECT

# The ways in which a process says something.
PROGRAM = """
import logging, sys, threading, warnings
from decimal import Decimal
from rocket_rides import logs, service, settings
service.configure(settings.load(), consumer="main")
logger = logging.getLogger("program")
logger.info("counted", extra={"trace_ids": ["a", "b"], "sum": Decimal("0.1"), "what": object()})
logger.warning("two\\nlines", extra={"ride_id": 5, "trace_id": "a"})
logging.getLogger("psycopg").warning("chatter")
try:
    1 / 0
except ArithmeticError:
    logger.exception("failed")
logs.say("listening on 80")
warnings.warn("old", FutureWarning)
for ends in (lambda: 1 / 0, sys.exit):
    thread = threading.Thread(target=ends)
    thread.start()
    thread.join()
class Worse:
    def __del__(self):
        1 / 0
Worse()
"""
UNCAUGHT = f"{PROGRAM}\n[][0]"
REFUSED = f"{PROGRAM}\nservice.run(lambda: sys.exit('refused: ü'))"


THREADS = """
import logging, sys, threading
from rocket_rides import logs, service, settings
service.configure(settings.load())
sys.setswitchinterval(1e-5)
def log(logger=logging.getLogger("program")):
    for number in range(500):
        logger.info("logged %d", number)
def say():
    for number in range(500):
        logs.say(f"said {number}")
threads = [threading.Thread(target=each) for each in (log, say, log, say)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
FULL = """
import sys
from rocket_rides import logs, service, settings
service.configure(settings.load())
try:
    logs.say("a report")
except OSError as error:
    sys.stderr.write(f"told: {error.strerror}")
    sys.stderr.flush()
    import os
    os._exit(0)
"""


def said(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=PROJECT,
        env={**os.environ, "PYTHONIOENCODING": "ascii", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("program", "last"),
    [
        (UNCAUGHT, ("uncaught", "list index out of range")),
        (REFUSED, ("-c", "refused: ü")),
    ],
)
def test_whatever_a_process_says_is_an_object_on_a_line_of_its_own(
    program: str, last: tuple[str, str]
) -> None:
    done = said(program, LOG_FORMAT="JSON")
    assert done.stderr == ""
    assert done.returncode == 1
    events: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    for event in events:
        moment = datetime.fromisoformat(event["time"])
        assert moment.utcoffset() == UTC.utcoffset(None)
        assert abs((datetime.now(UTC) - moment).total_seconds()) < 3600
        assert event["process"]
        assert event["consumer"] == "main"
    told = [(event["level"], event["logger"], event["message"]) for event in events]
    assert told[:5] == [
        ("INFO", "program", "counted"),
        ("WARNING", "program", "two\nlines"),
        ("ERROR", "program", "failed"),
        ("INFO", "-c", "listening on 80"),
        ("WARNING", "py.warnings", told[4][2]),
    ]
    assert "FutureWarning: old" in told[4][2]
    assert told[5:7] == [("CRITICAL", "uncaught", "division by zero")] * 2
    assert (events[0]["trace_ids"], events[0]["sum"]) == (["a", "b"], "0.1")
    assert (events[1]["ride_id"], events[1]["trace_id"]) == (5, "a")
    for event in (events[2], events[5], events[6]):
        assert event["exception"].startswith("Traceback")
        assert event["exception"].endswith("ZeroDivisionError: division by zero")
    assert told[7:] == [("CRITICAL", *last)]


def test_a_person_reads_lines_with_the_traces_at_their_ends() -> None:
    done = said(REFUSED, LOG_FORMAT="text")
    lines = done.stdout.splitlines()
    assert lines[:3] == [
        "INFO    counted trace_ids=a,b",
        "WARNING two",
        "        lines trace_id=a",
    ]
    assert lines[-1] == "listening on 80"
    assert done.stderr.endswith("refused: \\xfc\n")


def test_threads_that_log_and_say_divide_no_line() -> None:
    done = said(THREADS, LOG_FORMAT="json")
    messages = [json.loads(line)["message"] for line in done.stdout.splitlines()]
    once = [f"{what} {number}" for what in ("logged", "said") for number in range(500)]
    assert sorted(messages) == sorted(once * 2)


@pytest.mark.parametrize("style", ["text", "json"])
def test_whoever_says_what_can_not_be_written_is_told_so_in_either_format(style: str) -> None:
    """The disk is full."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", FULL],
            cwd=PROJECT,
            env={**os.environ, "LOG_FORMAT": style},
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"told: No space left on device")


def test_a_setting_that_is_refused_is_an_object_too() -> None:
    done = said(PROGRAM, LOG_FORMAT="json", BATCH_SIZE="many")
    event = json.loads(done.stdout)
    assert event["message"].startswith("BATCH_SIZE=many is refused: ")
    assert (done.returncode, done.stderr) == (2, "")


def test_the_fleets_output_is_objects_also_where_a_program_writes_none() -> None:
    output = io.StringIO()
    printer = Objects(output)
    for data in ('{"message": "own"}\n', b"Java's\nown \xff\n"):
        printer.write(Message("line", data, datetime.now(UTC), "servers.1", None))
    own, *others = [json.loads(line) for line in output.getvalue().splitlines()]
    assert own == {"message": "own"}
    assert [(event["process"], event["message"]) for event in others] == [
        ("servers.1", "Java's"),
        ("servers.1", "own \N{REPLACEMENT CHARACTER}"),
    ]


HOSTILE = r"""
import logging
from rocket_rides import service, settings
service.configure(settings.load())
text = "\x1b[2J\x9b1m\u202e\r"
logging.warning("one %s\ntwo", text)
try:
    raise ValueError(text)
except ValueError:
    logging.exception("three")
"""


def test_a_text_that_somebody_sent_drives_no_terminal() -> None:
    """Nor does the traceback that shows it."""
    lines = said(HOSTILE, LOG_FORMAT="text", PYTHONIOENCODING="utf-8").stdout.split("\n")
    shown = r"\x1b[2J\x9b1m\u202e\r"
    assert lines[:2] == [f"WARNING one {shown}", "        two"]
    assert lines[-2:] == [f"ValueError: {shown}", ""]
    assert all(line.isprintable() for line in lines)
