"""What a handler declares, its kind and its types: looked at when its process begins."""

import inspect
import logging
from collections.abc import Iterable, Mapping

import psycopg

from unified_log import settings
from unified_log.database import one_row
from unified_log.readers.handler import Handler

logger = logging.getLogger("consumer")

NAME_LENGTH = 64  # characters, at most, in a name and in a kind: the schema says so too
OUTSIDE = "outside"  # the kind of readers that are no handlers: no recount is asked of them

# A role may follow the log without the right to read this.
MAY_ASK = "SELECT has_table_privilege('log_kinds', 'SELECT')"
WITHOUT_KIND = """
    SELECT string_agg(quote_literal(type), ' or ' ORDER BY type)
    FROM unnest(%s::text[]) AS type WHERE type NOT IN (SELECT type FROM log_kinds)
"""


def is_name(text: object) -> bool:
    """Whether a consumer, or a kind of consumers, can be called so."""
    return (
        isinstance(text, str)
        and bool(text.strip())
        and len(text) <= NAME_LENGTH
        and text.isprintable()
    )


def require_handler(handler: object) -> None:
    """End the process, with status 2 and a sentence, unless this is the class of a handler."""
    if why := _refusal(handler):
        settings.refuse([f"{getattr(handler, '__name__', handler)} is refused: {why}"])


def _refusal(handler: object) -> str:
    if not (inspect.isclass(handler) and issubclass(handler, Handler)):
        return "a class derived from unified_log.readers.handler.Handler is expected"
    if inspect.isabstract(handler):
        return f"it has no {' and no '.join(sorted(handler.__abstractmethods__))}"
    for name, method in inspect.getmembers(handler, inspect.isfunction):
        if hasattr(Handler, name) and _runs_later(method):
            return f"its {name} is async, or has a yield: it would never run"
    kind, types = getattr(handler, "KIND", None), getattr(handler, "TYPES", None)
    if not is_name(kind):
        return f"its KIND has to be 1 to {NAME_LENGTH} printable characters"
    if kind == OUTSIDE:
        return f"the KIND {OUTSIDE!r} is that of readers without a handler"
    if not (isinstance(types, Mapping) and types):
        return "its TYPES have to map at least one type of record to the function that parses it"
    for type_, parse in types.items():
        if not isinstance(type_, str):
            return f"{type_!r}, one of its TYPES, is no str"
        if not callable(parse):
            return f"its TYPES map {type_!r} to {parse!r}, which can't be called"
        if _runs_later(parse):
            return f"what its TYPES map {type_!r} to is async, or has a yield: it would never run"
    return ""


def _runs_later(function: object) -> bool:
    tests = inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction
    return any(test(function) for test in tests)


def warn_of_types(connection: psycopg.Connection, name: str, types: Iterable[str]) -> None:
    """Warn of those types that no kind of the log has, unless this role may not ask."""
    if not one_row(connection.execute(MAY_ASK))[0]:
        return
    if unknown := one_row(connection.execute(WITHOUT_KIND, [[*types]]))[0]:
        logger.warning(
            "%s: no kind of this log has the type %s: nothing comes of it until one is attached",
            name,
            unknown,
        )
