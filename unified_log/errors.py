"""Errors that every process can raise, and an error's message for a person."""

from rocket_rides.words import escaped


class Unavailable(Exception):
    """Something that this process needs is missing for now; the message says what."""


class Refused(Unavailable):
    """Only a person can change what is wrong: a process that needs it ends, with this message."""


class Overtaken(Unavailable):
    """Another process moved what this one was about to move: nothing is committed; start over."""


def in_one_line(error: BaseException) -> str:
    """An exception's message for a person: one printable line, never empty."""
    return escaped(" ".join(str(error).split())) or type(error).__name__
