"""Errors that every process can raise, and an error's message for a person."""

from unified_log.words import escaped


class Unavailable(Exception):
    """Something that this process needs is missing for now; the message says what."""


class Refused(Unavailable):
    """Only a person can change what is wrong: a process that needs it ends, with this message."""


class Overtaken(Unavailable):
    """Another process moved what this one was about to move: nothing is committed; start over."""


class RecordRefused(Exception):
    """A handler can't count this record, and says why: it is held out, and all others count."""


def in_one_line(error: BaseException) -> str:
    """An exception's message for a person: one printable line, never empty."""
    return escaped(" ".join(str(error).split())) or type(error).__name__
