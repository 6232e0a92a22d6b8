"""What every long-running process does alike: stop when told, wait for a lost server, log."""

import argparse
import ctypes
import logging
import multiprocessing
import os
import random
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import TextIO

from rocket_rides.faults import InjectedCrash
from rocket_rides.fleet import end_with_honcho

logger = logging.getLogger(__name__)

FIRST_DELAY = 0.05
LONGEST_DELAY = 2.0
REPEAT_AFTER = 10.0
STARTING_UP = 5.0  # for so long, to wait for a server is nothing to warn of
AN_HOUR = 3600.0
PR_SET_PDEATHSIG = 1


class Stop:
    """Becomes true when the process is asked to end.

    A pipe and not a threading.Event: a signal handler that sets an Event can deadlock with the
    main thread's own wait on it.
    """

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self._asked = False

    def __bool__(self) -> bool:
        return self._asked

    def ask(self) -> None:
        if not self._asked:
            self._asked = True
            os.write(self._writer, b"!")

    def wait(self, seconds: float) -> bool:
        """Sleep for `seconds`, or until asked to stop; True when asked."""
        if not self._asked:
            select.select([self._reader], [], [], seconds)
        return self._asked

    def on_signals(self) -> "Stop":
        """Ask on SIGTERM and SIGINT, and when the honcho that started us is gone.

        A second signal ends the process, whatever it waits for.
        """

        def ask(number: int, _frame: FrameType | None) -> None:
            signal.signal(number, signal.SIG_DFL)
            self.ask()

        signal.signal(signal.SIGTERM, ask)
        signal.signal(signal.SIGINT, ask)
        end_with_honcho(self.ask)
        return self


def delays(first: float = FIRST_DELAY, longest: float = LONGEST_DELAY) -> Iterator[float]:
    """Exponential back-off with full jitter in its upper half, in seconds, without end."""
    delay = first
    while True:
        yield delay * random.uniform(0.5, 1)
        delay = min(delay * 2, longest)


class Progress:
    """What a process says of how it is doing, over all of its sessions: once per real change."""

    def __init__(self) -> None:
        self.waits = delays()  # between attempts, since the last progress
        # A server may just be coming up, together with us.
        self._complaint = Complaint(STARTING_UP)
        self._announced = self._held_back = ""
        self._in_trouble = False
        self._is_new = True

    def announce(self, line: str) -> None:
        """Log `line`, unless it was the last one; after a failure, once there is progress."""
        if self._in_trouble:
            self._held_back = line
        elif line != self._announced:
            logger.info(line)
            self._announced = line
            self._has_started()

    def made(self) -> None:
        """Something worked: a failure is over."""
        self._has_started()
        if self._in_trouble:
            self.waits, self._complaint = delays(), Complaint()
            self._in_trouble, self._announced = False, ""
            if self._held_back:
                self.announce(self._held_back)

    def _has_started(self) -> None:
        if self._is_new:
            self._is_new, self._complaint = False, Complaint()

    def failed(self, reason: str) -> None:
        """Nothing works, and why: a warning, but of a process that has only just been started."""
        if self._is_new and not self._in_trouble:
            logger.info("waiting: %s", reason)
        self._in_trouble, self._held_back = True, ""
        self._complaint(reason)


class Once:
    """Lines that are logged when they become true, and while they stay so, once an hour."""

    def __init__(self, level: int) -> None:
        self._level = level
        self._due: dict[str, float] = {}

    def say(self, lines: Iterable[str]) -> None:
        """Log those of the lines, which are all that is true now, whose time has come."""
        now = time.monotonic()
        was_due, self._due = self._due, {}
        for line in lines:
            due = was_due.get(line, now)
            if now >= due:
                logger.log(self._level, line)
                due = now + AN_HOUR
            self._due[line] = due


def keep_running(
    session: Callable[[Progress], None], stop: Stop, *failures: type[Exception]
) -> None:
    """Run `session` again and again until `stop`: it connects, works, and raises when it can't.

    A server that is lost or refuses (`failures`, and Unavailable) is waited for with back-off; an
    injected crash starts over at once, as a supervisor would. Neither ends the process. `session`
    is handed the process' Progress, and tells it whenever something worked.
    """
    expected: tuple[type[Exception], ...] = (Unavailable, *failures)
    progress = Progress()
    while not stop:
        try:
            session(progress)
        except InjectedCrash as crash:
            logger.warning("%s: starting again from the checkpoint", crash)
            stop.wait(FIRST_DELAY)
        except expected as error:
            progress.failed(in_one_line(error))
            stop.wait(next(progress.waits))


class Complaint:
    """Says why a process waits: after `patience` seconds, and again every REPEAT_AFTER."""

    def __init__(self, patience: float = 0) -> None:
        self._said = ""
        self._quiet_until = time.monotonic() + patience
        self._due = 0.0

    def __call__(self, reason: str) -> None:
        now = time.monotonic()
        if now >= self._quiet_until and (reason != self._said or now >= self._due):
            logger.warning("%s; trying again until it works", reason)
            self._said, self._due = reason, now + REPEAT_AFTER


class Unavailable(Exception):
    """Something that this process needs is not there yet; the message says what."""


def in_one_line(error: BaseException) -> str:
    """An exception's message for a person: one line, never empty."""
    return " ".join(str(error).split()) or type(error).__name__


def end_with_parent() -> None:
    """Have the kernel end this process of multiprocessing's when its parent is killed (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        parent = multiprocessing.parent_process()
        if parent and os.getppid() != parent.pid:  # it died before we asked
            os._exit(1)


def ending_with_parent(
    orphan_signal: signal.Signals = signal.SIGKILL,
) -> Callable[[], None] | None:
    """The same for a child of subprocess's, as its `preexec_fn`; None where there is no such thing.

    The signal comes when the very thread that started the child is gone: let it wait for the child.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # not in the child: after a fork nothing may be loaded
    parent = os.getpid()

    def ask_for_signal() -> None:
        # subprocess calls this after it has changed the user, which would undo it.
        prctl(PR_SET_PDEATHSIG, orphan_signal)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)

    return ask_for_signal


def terminate() -> None:
    """End this process as if it had been told to from outside."""
    os.kill(os.getpid(), signal.SIGTERM)


class _Output(logging.StreamHandler[TextIO]):
    """Ends the process, in good order, when nobody reads its output any more."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (logging's name)
        if isinstance(sys.exc_info()[1], BrokenPipeError):
            # From now on nothing is written: a second SIGTERM would cut the good order short.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())
            terminate()
        else:
            super().handleError(record)


def take_no_arguments(module: str, description: str | None) -> None:
    """Answer --help, and refuse arguments, for a process that has none: it has settings."""
    formatter = argparse.RawDescriptionHelpFormatter
    argparse.ArgumentParser(
        prog=f"python -m {module}", description=description, formatter_class=formatter
    ).parse_args()


def log_to_stdout(level: str) -> None:
    """Log one line per event. Under honcho or a container each process's lines are named there."""
    logging.basicConfig(
        handlers=[_Output(sys.stdout)],
        level=level,
        format="%(levelname)-7s %(message)s",
        force=True,
    )
    # psycopg warns, in several lines, of an error that it drops because another one is on its way.
    for chatty in ("psycopg", "alembic"):
        logging.getLogger(chatty).setLevel(logging.ERROR)
