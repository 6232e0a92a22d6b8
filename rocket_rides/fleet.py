"""Whether a fleet of the demo's runs on a data folder: its process `servers` has a lock on it."""

from pathlib import Path

LOCK = "lock"  # a file in the data folder, in which the process `servers` has its `identity`


def _started(process: int) -> str:
    """When it started, in clock ticks since the boot; empty where Linux knows no such process.

    Also of a zombie, which has ended but which its parent has not waited for: on some machines init
    waits for orphans only every few seconds.
    """
    try:
        line = Path(f"/proc/{process}/stat").read_text(errors="replace")
    except OSError:
        return ""
    # "1234 (its name) S 1233 ...", where the name may hold anything.
    state, *fields = line.rpartition(")")[2].split()
    return "" if state == "Z" else fields[18]


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
