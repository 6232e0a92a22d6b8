"""What a process says: a line for each event, on stdout, for a person or for a program.

With LOG_FORMAT=json each line is an object, and so are warnings, the traceback of what nobody has
caught, and what a program says to a person (`say`): a report, or why it ends.
"""

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


def configure(level: str, style: str, **about: str) -> None:
    """Log events from this level on, as text or JSON; `about` are fields of every object.

    honcho, or the container, adds the process' name to a text.
    """
    formatter = objects(_program(), **about) if style == JSON else _Text()
    output = Output(sys.stdout)
    output.setFormatter(formatter)
    logging.basicConfig(handlers=[output], level=level, force=True)
    for chatty in CHATTY:
        logging.getLogger(chatty).setLevel(logging.ERROR)
    if style == JSON:
        sys.excepthook = _uncaught
        threading.excepthook = _uncaught_in_a_thread
        sys.unraisablehook = lambda lost: _uncaught(
            lost.exc_type, lost.exc_value, lost.exc_traceback
        )
        logging.captureWarnings(True)


def say(text: str, level: int = logging.INFO) -> None:
    """Say to a person, on stdout, or on stderr what is amiss; in JSON, it is an event like others.

    Raises OSError where it can't be written.
    """
    stream = sys.stderr if level > logging.INFO else sys.stdout
    for formatter in [handler.formatter for handler in logging.root.handlers]:
        if isinstance(formatter, JsonFormatter):
            text, stream = formatter.format(written(text, _program(), level)), sys.stdout
    stream.write(f"{text}\n")  # as one piece, between the lines of other threads
    stream.flush()


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
