"""What everyone raises, and how an error is put to a person."""


class Unavailable(Exception):
    """Something that this process needs is not there yet; the message says what."""


class Overtaken(Unavailable):
    """Another process has moved what this one was about to move: nothing was done, start over."""


def in_one_line(error: BaseException) -> str:
    """An exception's message for a person: one line, never empty."""
    return " ".join(str(error).split()) or type(error).__name__
