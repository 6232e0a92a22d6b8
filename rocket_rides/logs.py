"""What a process says: a line for each event, on stdout, for a person or for a program.

With LOG_FORMAT=json each line is an object, and so is whatever else the process, or Python itself,
would print: a refusal, a traceback, a report.
"""

import io
import logging
import sys
import threading
from pathlib import Path
from types import TracebackType

from pythonjsonlogger.json import JsonFormatter

from unified_log.process import Output
from unified_log.words import escaped

JSON = "json"
# psycopg logs, in several lines, an error that it drops in favour of another one.
CHATTY = ("psycopg", "alembic")
TRACES = ("trace_id", "trace_ids")  # see `unified_log.tracing.fields`


def begin(level: str, style: str, **about: str) -> None:
    """Log events from this level on, as text or JSON; `about` are fields of every object.

    honcho, or the container, adds the process' name to a text.
    """
    formatter = objects(_program(), **about) if style == JSON else _Text()
    output = Output(sys.__stdout__ if style == JSON else sys.stdout)
    output.setFormatter(formatter)
    logging.basicConfig(handlers=[output], level=level, force=True)
    for chatty in CHATTY:
        logging.getLogger(chatty).setLevel(logging.ERROR)
    if style == JSON:
        sys.stdout = _Written(output, "stdout", logging.INFO)
        sys.stderr = _Written(output, "stderr", logging.ERROR)
        sys.excepthook = _uncaught
        threading.excepthook = _uncaught_in_a_thread
        sys.unraisablehook = lambda lost: _uncaught(
            lost.exc_type, lost.exc_value, lost.exc_traceback
        )
        logging.captureWarnings(True)


def objects(process: str, **about: str) -> logging.Formatter:
    """Makes each event one JSON object on a line, with what its `extra` says as fields."""
    return JsonFormatter(
        ["levelname", "name", "message"],
        rename_fields={"levelname": "level", "name": "logger", "exc_info": "exception"},
        static_fields={"process": process, **about},
        timestamp="time",
    )


def written(text: str, name: str, level: int) -> logging.LogRecord:
    """The event for text that was written past any logger."""
    return logging.LogRecord(name, level, "", 0, text.rstrip("\n"), None, None)


class _Text(logging.Formatter):
    """A line for a person, or a block; what its `extra` says of traces comes last."""

    def __init__(self) -> None:
        super().__init__("%(levelname)-7s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (logging's name)
        about = [
            f" {name}={value if isinstance(value, str) else ','.join(value)}"
            for name in TRACES
            if (value := record.__dict__.get(name))
        ]
        message = super().formatMessage(record).replace("\n", f"\n{' ' * 8}")
        return message + "".join(about)

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(escaped, super().format(record).split("\n")))


class _Written(io.TextIOBase):
    """A standard stream: each text that is written to it, up to an end of line, is an event.

    An error of the real stream is raised to whoever writes, as always.
    """

    def __init__(self, output: Output, name: str, level: int) -> None:
        self._output = output
        self._name = name
        self._level = level
        self._of_thread = threading.local()

    def fileno(self) -> int:
        """The real stream's."""
        return self._output.stream.fileno()

    def write(self, text: str) -> int:
        """Take text as `print` writes it: in pieces, the last of which ends the line."""
        begun = self._of_thread.begun = getattr(self._of_thread, "begun", "") + text
        if begun.endswith("\n"):
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Write what this thread has begun; Python does so, too, when it exits."""
        whole = getattr(self._of_thread, "begun", "")
        self._of_thread.begun = ""
        if whole:
            event = self._output.format(written(whole, self._name, self._level))
            self._output.acquire()  # as for the events of loggers: a line is never divided
            try:
                self._output.stream.write(f"{event}\n")
                self._output.stream.flush()
            finally:
                self._output.release()


def _uncaught(
    kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
) -> None:
    """The traceback of what nobody has caught, in one event."""
    if error:
        logging.getLogger("uncaught").critical("%s", error, exc_info=(kind, error, trace))


def _uncaught_in_a_thread(args: threading.ExceptHookArgs) -> None:
    """The same, except where a thread just ends itself."""
    if args.exc_type is not SystemExit:
        _uncaught(args.exc_type, args.exc_value, args.exc_traceback)


def _program() -> str:
    """The module that was run, such as `streamer`."""
    if spec := sys.modules["__main__"].__spec__:
        return spec.name.removesuffix(".__main__")
    path = Path(sys.argv[0])  # of a worker of granian's, which knows only the file
    return path.parent.name if path.stem == "__main__" else path.stem
