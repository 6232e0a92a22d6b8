"""A fleet has its data folder to itself: its process `servers` holds a lock on it."""

import fcntl
import os
from pathlib import Path

from demo.embedded.account import require_trusted
from demo.embedded.failures import NeverStarts
from rocket_rides import fleet


def require_unused(data: Path) -> None:
    """Raise NeverStarts if a fleet uses the folder.

    Takes no lock, so two that start at once don't refuse each other: one of them gets the folder.
    """
    if pid := fleet.servers(data):
        raise NeverStarts(
            f"another fleet (process {pid}) uses {data}: `kill {pid}` stops it;"
            " or set another DATA_DIR"
        )


def require_usable(data: Path) -> None:
    """Make the folder. Raises NeverStarts if that can't be, or this user can't write into it."""
    before = os.umask(0o022)  # the servers' user has to get in
    try:
        data.mkdir(parents=True, exist_ok=True)
        os.close(os.open(data / fleet.LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        raise NeverStarts(f"the folder {data} can't be used: {error.strerror}") from None
    finally:
        os.umask(before)


def lock(data: Path) -> None:
    """Lock the data folder for this process' lifetime.

    Raises NeverStarts if another process holds it, or another user owns it.
    """
    try:
        data.mkdir(parents=True, exist_ok=True)
        require_trusted(data)
        descriptor = os.open(data / fleet.LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, fleet.identity(os.getpid()).encode())
    except BlockingIOError:
        require_unused(data)
        raise NeverStarts(f"another fleet is starting on {data}") from None
    except OSError as error:
        raise NeverStarts(f"the folder {data} can't be used: {error.strerror}") from None
