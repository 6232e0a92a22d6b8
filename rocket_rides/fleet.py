"""The fleet that this process belongs to, when honcho has started it; and other fleets.

honcho starts each process of the Procfile from a fork of its own, in a session of its own. So what
ends honcho, such as SIGKILL or the closing of its terminal, does not reach the process, which has
to notice by itself (on Linux). What anything else has started has a life of its own: a shell may be
closed, and a test's harness may end.
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
LOCK = "lock"  # a file in the data folder; says whose it is


def end_with_honcho(end: Callable[[], None]) -> None:
    """Call `end` once, from a thread, when the honcho that started this process is gone.

    Also when it was gone before we asked. Never, when something else started this process.
    """
    if _started_by_honcho():
        fork = os.getppid()
        threading.Thread(target=_wait, args=[fork, _honcho(fork), end], daemon=True).start()


def _wait(fork: int, honcho: int, end: Callable[[], None]) -> None:
    # The fork if honcho is gone, and we if the fork is, have another parent from then on.
    while honcho and _parent(os.getppid()) == honcho:
        time.sleep(POLL)
    end()
    if honcho and os.getppid() == fork:
        # It relays our output to nobody, and would wait for ever once the pipe to honcho is full.
        os.kill(fork, signal.SIGKILL)


def _started_by_honcho() -> bool:
    if not os.environ.get(NAME) or not Path("/proc/self/stat").exists():
        return False
    return os.getsid(0) == os.getpid() and NAME not in _read(os.getppid(), "environ")


def _honcho(fork: int) -> int:
    """The honcho that has made this fork of itself; 0 when it is gone, or never was one."""
    honcho = _parent(fork)
    return honcho if honcho and _read(fork, "cmdline") == _read(honcho, "cmdline") else 0


def _parent(process: int) -> int:
    """The number of its parent, 0 when there is no such process."""
    # "1234 (its name) S 1233 ...", where the name may hold anything.
    status = _read(process, "stat").rpartition(")")[2].split()
    return int(status[1]) if status else 0


def _read(process: int, file: str) -> str:
    try:
        return Path(f"/proc/{process}/{file}").read_text(errors="replace")
    except OSError:
        return ""


def another_fleet(data: Path) -> int:
    """The process `servers` of another fleet than ours that uses the folder `data`.

    0 when there is none, or when it can't be told.
    """
    try:
        servers = int((data / LOCK).read_text())
    except (OSError, ValueError):
        return 0
    # The number of a dead process may be another's by now.
    alive = "embedded" in _read(servers, "cmdline")
    ours = not _started_by_honcho() or _honcho(_parent(servers)) == _honcho(os.getppid())
    return servers if alive and not ours else 0


def refuse_to_join(data: Path) -> None:
    """End with one line when another fleet uses the folder: its rides are none of ours."""
    if servers := another_fleet(data):
        raise SystemExit(in_the_way(data, servers))


def in_the_way(data: Path, servers: int) -> str:
    """What a person has to know of another fleet, whose process `servers` uses the folder."""
    return (
        f"another fleet (process {servers}) uses {data}:"
        f" `kill {servers}` stops it; or set another DATA_DIR"
    )
