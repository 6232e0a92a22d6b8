"""Errors that every process can raise, and an error's message for a person."""

import re

from unified_log.words import escaped

UNDEFINED_TABLE = "42P01"
THE_VIEW = re.compile(r"(?<![\w.])log_records(?![\w.])")
MAKE_IT_ANEW = "SELECT generate_log_records() makes it anew; then grant rights to it again"


class Unavailable(Exception):
    """Something that this process needs is missing for now; the message says what."""


class Refused(Unavailable):
    """Only a person can change what is wrong: a process that needs it ends, with this message."""


class Overtaken(Unavailable):
    """Another process moved what this one was about to move: nothing is committed; start over."""


class RecordRefused(Exception):
    """A handler can't count this record, and says why: it is held out, and all others count."""


def in_one_line(error: BaseException) -> str:
    """An exception's message for a person: one printable line, never empty, and any advice."""
    said = str(error)
    if what_to_do := advice(error):
        said = f"{said.splitlines()[0]}: {what_to_do}"
    return escaped(" ".join(said.split())) or type(error).__name__


def advice(error: BaseException) -> str:
    """What to do about an error of Postgres', in whatever language; empty where that is unknown.

    DROP TABLE ... CASCADE takes the view of all records along.
    """
    is_table = getattr(error, "sqlstate", None) == UNDEFINED_TABLE
    named = str(error).partition("\n")[0]  # next comes the statement, which names others, too
    return MAKE_IT_ANEW if is_table and THE_VIEW.search(named) else ""
