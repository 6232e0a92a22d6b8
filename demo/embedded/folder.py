"""A fleet has its data folder to itself: its process `servers` holds a lock on it."""

import fcntl
import os
from pathlib import Path

from demo.embedded.failures import NeverStarts
from rocket_rides import fleet


def lock(data: Path) -> None:
    """Lock the data folder for this process' lifetime; NeverStarts if another process holds it."""
    try:
        data.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(data / fleet.LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(descriptor, 100).split()
            if not owner:  # it has not written its identity yet
                raise NeverStarts(f"another fleet is starting on {data}") from None
            pid = int(owner[0])
            raise NeverStarts(
                f"another fleet (process {pid}) uses {data}: `kill {pid}` stops it;"
                " or set another DATA_DIR"
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, fleet.identity(os.getpid()).encode())
    except OSError as error:
        raise NeverStarts(f"the folder {data} can't be used: {error.strerror}") from None
