"""Who runs a command that decides something, for whoever asks later."""

import getpass
import os


def person() -> str:
    """The user's name, or the number of one that has none, as in a container."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())
