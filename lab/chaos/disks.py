"""A small file system for each server, which can be full for a while.

It takes Linux and root, and not every container allows it. They are mounted in a mount namespace
of chaos' own, so no other process sees them, and they end with it.
"""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

CLONE_NEWNS = 0x00020000  # a new mount namespace; see unshare(2)
SIZE = 8 * 2**30  # bytes; only what is stored takes memory


def enter_own_namespace() -> bool:
    """Move this thread, and all that it starts, into a mount namespace; False where it may not."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    if ctypes.CDLL(None).unshare(CLONE_NEWNS) != 0:
        return False
    return _run("mount", "--make-rprivate", "/")


class Disk:
    """A file system in memory, mounted on `folder`."""

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
        while not self._resize(self.used()):  # it has grown meanwhile
            pass

    def used(self) -> int:
        """How many bytes it holds."""
        return shutil.disk_usage(self.folder).used

    def make_room(self) -> None:
        self._resize(SIZE)

    def unmount(self) -> None:
        if self.is_mounted:
            self.is_mounted = not _run("umount", str(self.folder))

    def _resize(self, size: int) -> bool:
        return _run("mount", "-o", f"remount,size={size}", str(self.folder))


def _run(*command: str) -> bool:
    done = subprocess.run(command, stderr=subprocess.DEVNULL, check=False)
    return done.returncode == 0
