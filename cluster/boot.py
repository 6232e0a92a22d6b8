"""`python -m cluster.boot`: the first process of a machine. It sets up the files, and stays.

It runs in a mount namespace of its own. The machine's own disk appears at OWN, with its `tmp` at
/tmp and its `hosts` at /etc/hosts; a folder that machines share appears at SHARED. Everything else,
the program above all, is there to be read only, wherever it lies; what other machines keep in /tmp
is not there.

It is process 1 of a PID namespace: when it is killed, the kernel kills all that runs there.
"""

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from rocket_rides.settings import PROJECT

OWN = Path("/srv")
SHARED = OWN / "shared"
TMP = Path("/tmp")  # noqa: S108 (it is the machine's own)
IN_MEMORY = (Path("/dev/shm"), Path("/run"), Path("/var/tmp"))  # noqa: S108
OF_THE_KERNEL = (Path("/proc"), Path("/sys"), Path("/dev"))
COVERED = (OWN, TMP, *IN_MEMORY)
PROGRAM = (PROJECT, Path(sys.prefix).resolve())
UP = b"up\n"


def main() -> None:
    """Take a name, and mount what there is: its disk, and the shared folder if there is one."""
    name, *folders = sys.argv[1:]
    socket.sethostname(name)
    disk, *shared = map(Path, folders)
    hidden = [folder for folder in PROGRAM if any(map(folder.is_relative_to, COVERED))]
    for number, folder in enumerate(hidden):
        _mount("--bind", folder, _made(disk / f"program{number}"))
    _mount("--rbind", disk, OWN)
    for folder in shared:
        _mount("--bind", folder, SHARED)
    _mount("--bind", OWN / "hosts", Path("/etc/hosts"))
    for place in IN_MEMORY:
        _mount("-t", "tmpfs", "tmpfs", place)
    _mount("--bind", OWN / "tmp", TMP)
    for number, folder in enumerate(hidden):
        kept = OWN / f"program{number}"
        _mount("--bind", kept, _made(folder))
        for place in (kept, folder):
            _mount("-o", "remount,bind,ro", place)
    mine = {OWN, SHARED, TMP, *IN_MEMORY}
    for place in [*_mounted()]:
        if place not in mine and not any(place.is_relative_to(each) for each in OF_THE_KERNEL):
            _mount("-o", "remount,bind,ro", place)
    # Whoever is left without a parent is this process' child, and nobody else asks how it ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    sys.stdout.buffer.write(UP)
    sys.stdout.flush()
    while True:
        signal.pause()


def _mounted() -> Iterator[Path]:
    """Where something is mounted that can still be reached by its name."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        octal = line.split()[4]
        place = Path(re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), octal))
        if place.is_mount():
            yield place


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _mount(*words: str | Path) -> None:
    subprocess.run(["mount", *words], check=True)  # noqa: S607


if __name__ == "__main__":
    main()
