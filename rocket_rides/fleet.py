"""The fleet that this process belongs to, if honcho started it; and other fleets.

honcho starts each process of the Procfile through a fork, in a session of its own. So whatever ends
honcho, such as SIGKILL or a closed terminal, does not reach the process, which has to notice it
itself (on Linux). A process that anything else started lives on: a shell may be closed, or a test
harness may end, without ending it.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

POLL = 0.25  # seconds
# honcho names each process that it starts. The process' own children inherit the name.
NAME = "HONCHO_PROCESS_NAME"
LOCK = "lock"  # a file in the data folder, in which the process `servers` has its `identity`


def end_with_honcho(end: Callable[[], None]) -> None:
    """Call `end` once, from a thread, when the honcho that started this process is gone.

    Also if it was gone before the call; never if something else started this process.
    """
    if _started_by_honcho():
        fork = os.getppid()
        threading.Thread(target=_wait, args=[fork, _honcho(fork), end], daemon=True).start()


def _wait(fork: int, honcho: int, end: Callable[[], None]) -> None:
    # An orphan gets another parent: the fork when honcho ends, this process when the fork ends.
    while honcho and _parent(os.getppid()) == honcho:
        time.sleep(POLL)
    if honcho and os.getppid() == fork:
        # The fork has nobody to relay our output to, and would block for ever once its pipe is
        # full. It is killed before `end`, which this thread may not outlive.
        os.kill(fork, signal.SIGKILL)
    end()


def _started_by_honcho() -> bool:
    if not os.environ.get(NAME) or not Path("/proc/self/stat").exists():
        return False
    return os.getsid(0) == os.getpid() and NAME not in _read(os.getppid(), "environ")


def _honcho(fork: int) -> int:
    """The pid of the honcho that made this fork; 0 when it is gone, or never existed."""
    honcho = _parent(fork)
    return honcho if honcho and _read(fork, "cmdline") == _read(honcho, "cmdline") else 0


def _parent(process: int) -> int:
    """The pid of its parent; 0 when there is no such process."""
    status = _status(process)
    return int(status[1]) if status else 0


def _started(process: int) -> str:
    """When it started, in clock ticks since the boot; empty when there is no such process."""
    status = _status(process)
    return status[19] if status else ""


def _status(process: int) -> list[str]:
    """What /proc/PID/stat says after the name; nothing when there is no such process.

    Nothing for a zombie, either, which has ended but which its parent has not waited for: on some
    machines init waits for orphans only every few seconds.
    """
    # "1234 (its name) S 1233 ...", where the name may hold anything.
    status = _read(process, "stat").rpartition(")")[2].split()
    return [] if status[:1] == ["Z"] else status


def _read(process: int, file: str) -> str:
    try:
        return Path(f"/proc/{process}/{file}").read_text(errors="replace")
    except OSError:
        return ""


def identity(process: int) -> str:
    """Its pid and when it started: a pid alone may be reused."""
    return f"{process} {_started(process)}"


def servers(data: Path) -> int:
    """The pid of the process `servers` of the fleet that uses the folder `data`.

    0 when there is none, or when that can't be determined.
    """
    try:
        pid, _, started = (data / LOCK).read_text().partition(" ")
        found = int(pid)
    except (OSError, ValueError):
        return 0
    return found if started and started == _started(found) else 0


def not_started(data: Path) -> str:
    """A sentence for a person where no fleet uses the folder `data`; else nothing."""
    return "" if servers(data) else no_fleet_on(data)


def no_fleet_on(data: Path) -> str:
    return (
        f"no fleet runs on {data.absolute()}: `make fleet` starts one, in another terminal;"
        " if yours uses another folder, set DATA_DIR to that folder here"
    )
