"""Running a process: it stops when asked to, survives a lost server, and logs to stdout."""

import argparse
import logging
import os
import select
import signal
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import NoReturn, TextIO

from unified_log.errors import Refused, Unavailable, in_one_line
from unified_log.faults import InjectedCrash
from unified_log.waiting import FIRST_DELAY, Progress
from unified_log.words import escaped

logger = logging.getLogger(__name__)


class Stop:
    """Becomes true when the process is asked to end.

    A pipe and not a threading.Event: a signal handler that sets an Event can deadlock with the
    main thread's own wait on it. And Python runs a handler only once a system call returns, which
    may have begun just after the signal: so the signal itself is written into the pipe, too.
    """

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self._asked = False

    def __bool__(self) -> bool:
        return self._asked

    def fileno(self) -> int:
        """What select() finds readable once the process was asked to end."""
        return self._reader

    def ask(self) -> None:
        if not self._asked:
            self._asked = True
            os.write(self._writer, b"!")

    def wait(self, seconds: float) -> bool:
        """Sleep for `seconds`, or until asked to stop; returns whether it was asked."""
        if not self._asked:
            select.select([self._reader], [], [], seconds)
        return self._asked

    def on_signals(self) -> "Stop":
        """Ask on SIGTERM and SIGINT.

        The same signal again ends the process at once, whatever it is waiting for.
        """

        def ask(number: int, _frame: FrameType | None) -> None:
            signal.signal(number, signal.SIG_DFL)
            self.ask()

        signal.signal(signal.SIGTERM, ask)
        signal.signal(signal.SIGINT, ask)
        os.set_blocking(self._writer, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        return self


class Output(logging.StreamHandler[TextIO]):
    """Ends the process in an orderly way when nobody reads its output any more."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (logging's name)
        if isinstance(sys.exc_info()[1], BrokenPipeError):
            # Write nothing from now on: a second SIGTERM would end the process abruptly.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())
            terminate()
        else:
            super().handleError(record)


class _Line(logging.Formatter):
    """An event in lines for a person, with what can't be printed made visible."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(escaped, super().format(record).split("\n")))


def log_to_stdout(level: str) -> None:
    """Log events from this level on, unless the process logs somewhere already."""
    output = Output(sys.stdout)
    output.setFormatter(_Line("%(levelname)-7s %(message)s"))
    logging.basicConfig(handlers=[output], level=level)
    # psycopg logs, in several lines, an error that it drops in favour of another one.
    logging.getLogger("psycopg").setLevel(logging.ERROR)


def keep_running(
    session: Callable[[Progress], None],
    stop: Stop,
    *failures: type[Exception],
) -> None:
    """Run `session` again and again until `stop`: it connects, works, and raises when it can't.

    After `failures` and Unavailable it is retried with back-off; after an injected crash at once,
    as a supervisor would. Neither ends the process; Refused does, with its message. `session` is
    given the process' Progress, and tells it whenever something worked.
    """
    expected: tuple[type[Exception], ...] = (Unavailable, *failures)
    progress = Progress()
    while not stop:
        try:
            session(progress)
        except InjectedCrash as crash:
            logger.warning("%s: starting again", crash)
            stop.wait(FIRST_DELAY)
        except Refused as reason:
            raise SystemExit(in_one_line(reason)) from None
        except expected as error:
            progress.failed(in_one_line(error))
            stop.wait(next(progress.waits))


def terminate() -> None:
    """Send this process a SIGTERM."""
    os.kill(os.getpid(), signal.SIGTERM)


def show(lines: Iterable[str]) -> None:
    """Print lines for a person, who may have seen enough before the last, as in `| head`.

    Ends the process, with one line, where they can't be written.
    """
    try:
        print("\n".join(map(escaped, lines)), flush=True)  # noqa: T201
    except OSError as error:  # of stdout, which would be tried again at the end of the process
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise SystemExit(f"stdout can't be written: {error.strerror}") from None


class Parser(argparse.ArgumentParser):
    """The options of `prog`; its `--help` shows the description as it is written."""

    def __init__(self, prog: str, description: str | None) -> None:
        super().__init__(
            prog=prog,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,  # a new option must not change what an old command means
        )

    def error(self, message: str) -> NoReturn:
        """Refuse in one line, without the usage; the exit status is 2."""
        self.exit(2, f"{self.prog}: {message}; --help explains\n")


def take_no_arguments(module: str, description: str | None) -> None:
    """Answer --help and refuse arguments, for a process that only has settings."""
    Parser(f"python -m {module}", description).parse_args()
