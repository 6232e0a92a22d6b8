"""Folders for servers, which leave nothing behind.

Servers' folders are in memory where it is large enough: there, fsync costs nothing. Tests end
servers by SIGKILL at worst, which data in memory survives as data on a disk would.
"""

import ctypes
import glob
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY, DISK = Path("/dev/shm"), Path("/tmp")  # noqa: S108 (a folder made in them is ours alone)
ENOUGH = 4 << 30  # bytes: a cluster has a tenth of a gigabyte, and a dozen may be there at a time
REMOVE = 0  # IPC_RMID


def roomy() -> Path:
    """The folder below which servers' data is put."""
    if os.access(MEMORY, os.W_OK | os.X_OK):
        room = os.statvfs(MEMORY)
        if room.f_bavail * room.f_frsize >= ENOUGH:
            return MEMORY
    return DISK


def cache() -> Path:
    """What tests keep for this user's later runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rocket-rides-tests"


@contextmanager
def short_folder() -> Iterator[Path]:
    """A short-named folder: the servers' socket paths must stay under 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="rr-", dir=roomy(), ignore_cleanup_errors=True) as name:
        path = Path(name)
        path.chmod(0o755)  # the embedded servers' user must get through
        try:
            yield path
        finally:
            forget_the_killed(path)


def forget_the_killed(folder: Path) -> None:
    """Remove the shared memory of each Postgres below `folder` that was killed: it outlives it.

    The seventh line of a postmaster.pid, if it came to that, has the segment's key and id.
    """
    for name in glob.glob(f"{folder}/**/postmaster.pid", recursive=True):
        for line in Path(name).read_text().splitlines()[6:7]:
            ctypes.CDLL(None).shmctl(int(line.split()[1]), REMOVE, None)
