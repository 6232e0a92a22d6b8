"""Checks the tables, each time in one snapshot: during the faults, and once nothing is left."""

import time
from collections.abc import Callable, Iterable
from contextlib import closing
from itertools import islice
from typing import Any

import psycopg
import redis

from lab.chaos.books.statements import AT_ANY_MOMENT, NOTHING_IS_LEFT
from lab.chaos.drifts import AWAY
from lab.chaos.fleet import STREAM
from lab.chaos.observer import Onlooker
from unified_log import database
from unified_log.database import one_row

PAUSE = 2.0  # seconds between two looks; more where they take long
LONGEST_PAUSE = 60.0
SHARE = 0.1  # of the time, at most, goes into looks: they add up all rides
ICK = "SELECT ick FROM rollup_state"
MOST = 5  # findings of one kind that are listed


class TablesJudge(Onlooker):
    """Checks the tables of the database that `url` leads to, until it is told to end."""

    def __init__(self, url: Callable[[], str]) -> None:
        super().__init__("judge of the tables", url)
        self.looks = 0
        self.found: list[str] = []  # by the first look that finds anything; there are none after it

    def look_on(self) -> None:
        pause = PAUSE
        while not self.found and not self.ending.wait(pause):
            began = time.monotonic()
            try:
                with closing(database.connect(self._url(), "chaos")) as connection:
                    found = broken(connection, AT_ANY_MOMENT)
            except AWAY:
                continue
            self.looks += 1
            self.found = [f"on the way, {sentence}" for sentence in found]
            pause = min(max(PAUSE, (time.monotonic() - began) / SHARE), LONGEST_PAUSE)


def broken(connection: psycopg.Connection, claims: Iterable[str]) -> list[str]:
    """The violations that these statements find, in one snapshot. Raises psycopg.Error."""
    found: list[str] = []
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    with connection.transaction():
        for claim in claims:
            found += most_of(sentence for (sentence,) in connection.execute(claim))
    return found


def most_of(findings: Iterable[str]) -> list[str]:
    """The first few findings, and how many more there are."""
    findings = iter(findings)
    listed = [*islice(findings, MOST)]
    more = sum(1 for _ in findings)
    return [*listed, f"... and {more} more of these"] if more else listed


def is_settled(connection: psycopg.Connection, client: redis.Redis) -> bool:
    """Whether all rides are counted and rolled up, all repairs are done, and no receipt is open."""
    left = broken(connection, NOTHING_IS_LEFT)
    return not left and not left_over(connection, client, STREAM)


def left_over(connection: psycopg.Connection, client: redis.Redis, stream: str) -> list[str]:
    """A sentence for each kind of work that is left in Redis: in the Ick, and in groups."""
    [ick] = one_row(connection.execute(ICK))  # none before somebody has led
    sets = client.scan_iter(match=f"*/rollup/{ick}/ick/*set") if ick else ()
    groups: list[Any] = client.xinfo_groups(stream) if client.exists(stream) else []
    left = {
        "minutes are left dirty": sum(client.zcard(key) for key in sets),
        "entries are left pending": sum(group["pending"] for group in groups),
    }
    return [f"{number} {what}" for what, number in left.items() if number]
