"""A disk for each server, which can be full, and a clock for each process, which can be wrong.

Disks take Linux and root, and not every container allows them. Clocks take Linux and a C compiler.
"""

import ctypes
import os
import shutil
import struct
import subprocess
import sys
import threading
from pathlib import Path

CLONE_NEWNS = 0x00020000  # a new mount namespace; see unshare(2)
SIZE = 8 * 2**30  # bytes; only what is stored takes memory
SOURCE = Path(__file__).with_name("clock.c")
LIBRARY = "clock.so"


def enter_own_namespace() -> bool:
    """Move this thread, and all that it starts, into a mount namespace; False where it may not."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    if ctypes.CDLL(None).unshare(CLONE_NEWNS) != 0:
        return False
    return _run("mount", "--make-rprivate", "/")


class Disk:
    """A file system in memory, which can be full; only chaos' own mount namespace has it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.is_mounted = False

    def mount(self) -> bool:
        """Mount it, empty; False where that can't be done."""
        self.folder.mkdir(exist_ok=True)
        options = f"size={SIZE},mode=755"
        self.is_mounted = _run("mount", "-t", "tmpfs", "-o", options, "chaos", str(self.folder))
        return self.is_mounted

    def fill(self) -> None:
        """Shrink the file system to what it holds: from now on no file gets another page."""
        while not self._resize(shutil.disk_usage(self.folder).used):  # it has grown meanwhile
            pass

    def make_room(self) -> None:
        self._resize(SIZE)

    def unmount(self) -> None:
        if self.is_mounted:
            self.is_mounted = not _run("umount", str(self.folder))

    def _resize(self, size: int) -> bool:
        return _run("mount", "-o", f"remount,size={size}", str(self.folder))


class Clock:
    """The clock of one process, or of one server, kept in a file of `folder`.

    A preloaded library replaces what tells the time of day. The monotonic clock stays right. To
    follow such changes, libfaketime 0.9.10 reads its file at each call, which takes 3.8 us and not
    0.06: Redis 6.2 does a fourth as many XADD.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._library = folder / LIBRARY
        self._file = folder / f"{name}.clock"
        self.busy = threading.Lock()  # held by the one fault that has set it
        self.set(0)

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment to have this clock."""
        return {"LD_PRELOAD": str(self._library), "CHAOS_CLOCK": str(self._file)}

    def set(self, ahead: int) -> None:
        """Set it so many seconds ahead of the right time, or behind if negative, at once."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("=q", ahead))


def library(folder: Path) -> bool:
    """Compile the library into `folder`; False where that can't be done."""
    command = ("cc", "-shared", "-fPIC", "-O2", "-o", str(folder / LIBRARY), str(SOURCE), "-ldl")
    return sys.platform == "linux" and shutil.which("cc") is not None and _run(*command)


def _run(*command: str) -> bool:
    done = subprocess.run(command, stderr=subprocess.DEVNULL, check=False)
    return done.returncode == 0
