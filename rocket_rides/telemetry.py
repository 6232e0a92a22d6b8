"""Spans and metrics for OpenTelemetry, where OTEL_EXPORTER_OTLP_ENDPOINT is set; else nothing.

Requests, statements and webhooks have the spans that OpenTelemetry's own instrumentations make
(`rocket_rides.instrumented`). Here is what those don't know: the traces of records, spans of
batches and of a job's stages. While nothing is exported, a span is `NOTHING`, and no package of
OpenTelemetry is imported: `rocket_rides.otlp` and `rocket_rides.instrumented` are only where it is.
"""

import gc
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from pydantic import ValidationError

from rocket_rides.settings import Settings
from rocket_rides.trouble import Trouble
from rocket_rides.urls import http
from unified_log import spans
from unified_log.errors import in_one_line
from unified_log.tracing import Trace

if TYPE_CHECKING:
    from flask import Flask
    from opentelemetry.metrics import Meter  # noqa: TID251 (for the type checker)
    from sqlalchemy import Engine

    from rocket_rides.otlp import Exporter

logger = logging.getLogger(__name__)

NOT_EXPORTED = "OTEL_EXPORTER_OTLP_ENDPOINT is set, but nothing is exported: %s"
HOW_TO_INSTALL = "pip install -r requirements/telemetry.txt"

NOTHING: AbstractContextManager[None] = nullcontext()
_exporter: "Exporter | None" = None


def configure(config: Settings, service: str) -> None:
    """Export from now on, as `service`, if the settings say so.

    Call it after a fork, since exporting takes threads. If nothing can be exported, because a
    package is missing or one of OpenTelemetry's variables makes no sense, a warning says so: a
    platform may set them for all that runs there, and no ride waits for telemetry.
    """
    global _exporter
    if config.otel_exporter_otlp_endpoint:
        with _warning():
            http(config.otel_exporter_otlp_endpoint)
            trouble = Trouble()
            # What a record carries. Else a client's `baggage` would be read, too, for nothing.
            os.environ["OTEL_PROPAGATORS"] = "tracecontext"
            os.environ.setdefault("OTEL_SEMCONV_STABILITY_OPT_IN", "http,database")
            from rocket_rides.otlp import Exporter

            exporter = Exporter(f"rocket-rides-{service}", trouble)
            spans.register(exporter.batch_sent, exporter.batch_taken)
            _exporter = exporter
        gc.freeze()  # as `service.configure` did with what was imported by then


def is_on() -> bool:
    """Whether this process exports anything."""
    return _exporter is not None


def end() -> None:
    """Export what is left, for a second at most. When Python exits, that happens by itself."""
    if _exporter:
        _exporter.end()


def instrument_api(app: "Flask", engine: "Engine") -> None:
    """Give each request that `app` answers a span, and each statement of the engine's in it.

    Call it before anything else looks at the requests. Probes get none.
    """
    if _exporter:
        with _warning():
            from rocket_rides import instrumented

            instrumented.api(app, engine, _exporter)


def instrument_client() -> None:
    """Give each request that aiohttp sends from now on a span, which its headers name."""
    if _exporter:
        with _warning():
            from rocket_rides import instrumented

            instrumented.client(_exporter)


def measure(make: Callable[["Meter"], None]) -> None:
    """Have `make` make this process's instruments, if its metrics are exported."""
    if _exporter:
        with _warning():  # such as of an OTEL_METRIC_EXPORT_INTERVAL that is no number
            make(_exporter.meter())


def current(clients: Trace | None) -> Trace | None:
    """The span that we are in, of a request whose client sent this trace; else the client's."""
    return _exporter.current(clients) if _exporter else clients


def below(trace: Trace | None) -> AbstractContextManager[None]:
    """A block whose spans are below this one."""
    return _exporter.below(trace) if _exporter and trace else NOTHING


def stage(name: str) -> AbstractContextManager[None]:
    """A part of a job, below the part that it is in."""
    return _exporter.span(name) if _exporter else NOTHING


@contextmanager
def _warning() -> Iterator[None]:
    """Have a warning say what fails in a block, and go on."""
    try:
        yield
    except ModuleNotFoundError as missing:
        logger.warning(NOT_EXPORTED, f"{missing}; {HOW_TO_INSTALL}")
    except ValidationError as error:  # whose text has the URL, and what may be a password
        logger.warning(NOT_EXPORTED, error.errors()[0]["msg"])
    except Exception as error:
        logger.warning(NOT_EXPORTED, in_one_line(error))
