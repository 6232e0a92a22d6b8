"""Trimming: the log lets go of what every reader is past, and never outgrows its caps."""

from collections.abc import Callable
from typing import NamedTuple

import psycopg

from rocket_rides import groups
from rocket_rides.log import START, Forbidden, Log
from streamer.readers import Readers


class Caps(NamedTuple):
    """What the log keeps at most, even for a reader that has not read it.

    They protect Redis' memory from a reader that never comes back; one that does come back finds a
    gap and heals it from the rides.
    """

    length: int  # entries
    age: float  # seconds, by Redis' clock


class Trimmer:
    """Trims `log`, for one session. Methods raise psycopg.Error and redis.RedisError."""

    def __init__(self, connection: psycopg.Connection, log: Log, caps: Caps) -> None:
        self._readers = Readers(connection, log, caps.age)
        self._log = log
        self._caps = caps

    def trim(self) -> int:
        """Drop entries that every reader is past, and whatever exceeds a cap; returns how many."""
        return (
            self._log.trim_before(self._readers.slowest())
            + self._log.trim_before(self._oldest_to_keep(), exactly=True)
            + self._log.trim_to(self._caps.length)
        )

    def make_room(self) -> int:
        """Redis has no memory left: drop what every reader is past, else half of the log."""
        past = self._log.trim_before(self._readers.slowest(), exactly=True)
        return past or self._log.trim_to(self._log.length() // 2, exactly=True)

    def _oldest_to_keep(self) -> str:
        """By Redis' clock. Where that was set back, newer ids go on from those that there are."""
        try:
            return f"{max(0, int(self._log.clock() - self._caps.age * 1000))}-0"
        except Forbidden:
            return START


def warnings(connection: psycopg.Connection, log: Log) -> list[str]:
    """Warnings about what the servers do not let their users trim by; usually none."""
    looks: list[tuple[Callable[[], object], str]] = [
        (lambda: groups.positions(log), "trimming does not wait for consumer groups"),
        (log.clock, "entries are kept whatever their age"),
    ]
    found = []
    for look, without in looks:
        try:
            look()
        except Forbidden as refusal:
            found.append(f"{without}, because Redis does not let this user look: {refusal}")
    if groups.name_if_known(connection) is None:
        found.append(
            "trimming waits for every consumer group, also for an idle one of another database,"
            " because Postgres does not let this user call pg_control_system()"
        )
    return found
