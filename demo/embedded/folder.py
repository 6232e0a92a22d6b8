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
    """Make the folder. Raises NeverStarts if that can't be, or if another user owns it."""
    os.close(_lock_file(data))


def lock(data: Path) -> None:
    """Lock the data folder for this process' lifetime.

    Raises NeverStarts if another process holds it, and as `require_usable` does.
    """
    descriptor = _lock_file(data)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        require_unused(data)
        raise NeverStarts(f"another fleet is starting on {data}") from None
    os.ftruncate(descriptor, 0)
    os.write(descriptor, fleet.identity(os.getpid()).encode())


def _lock_file(data: Path) -> int:
    before = os.umask(0o022)  # the servers' user has to get into the folder
    try:
        data.mkdir(parents=True, exist_ok=True)
        require_trusted(data)
        return os.open(data / fleet.LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise NeverStarts(f"the folder {data} can't be used: {error.strerror}") from None
    finally:
        os.umask(before)
