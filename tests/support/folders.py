"""Folders for servers, in memory where it is large enough: there, fsync costs nothing.

Tests end servers by SIGKILL at worst, which data in memory survives as data on a disk would.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108 (a folder made in it is ours alone)
ENOUGH = 4 << 30  # bytes: a cluster has a tenth of a gigabyte, and a dozen may be there at a time


def roomy() -> Path:
    """The folder below which servers' data is put."""
    if os.access(MEMORY, os.W_OK | os.X_OK):
        room = os.statvfs(MEMORY)
        if room.f_bavail * room.f_frsize >= ENOUGH:
            return MEMORY
    return Path("/tmp")  # noqa: S108


@contextmanager
def short_folder() -> Iterator[Path]:
    """A short-named folder: the servers' socket paths must stay under 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="rr-", dir=roomy(), ignore_cleanup_errors=True) as name:
        path = Path(name)
        path.chmod(0o755)  # the embedded servers' user must get through
        yield path
