"""Folders for servers and for temporary files, which leave nothing behind; what is left is named.

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
SEGMENTS = Path("/proc/sysvipc/shm")
REMOVE = 0  # IPC_RMID


def roomy() -> Path:
    """The folder below which servers' data is put."""
    if os.access(MEMORY, os.W_OK | os.X_OK):
        room = os.statvfs(MEMORY)
        if room.f_bavail * room.f_frsize >= ENOUGH:
            return MEMORY
    return DISK


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


def what_is_there() -> set[str]:
    """What there is in folders that all programs share, and memory to which nobody is attached.

    pytest keeps its own folders for a while, and this process' own go with it.
    """
    found = {str(path) for place in (MEMORY, DISK) if place.exists() for path in place.iterdir()}
    if SEGMENTS.exists():
        for line in SEGMENTS.read_text().splitlines()[1:]:
            _key, segment, _mode, _size, _creator, _last, attached, *_ = line.split()
            if attached == "0":
                found.add(f"shared memory {segment}")
    ours = (f"{DISK}/pytest-of-", f"{DISK}/pymp-", f"{MEMORY}/sem.mp-")
    return {name for name in found if not name.startswith(ours)}
