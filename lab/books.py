"""How a drill on a stage ends: it comes to rest, what it leaves becomes evidence, and is judged."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress

import psycopg
import redis

from lab.chaos import drifts, logs
from lab.chaos.books import check
from lab.chaos.books.clients import double, lost
from lab.chaos.books.statements import WHEN_SETTLED
from lab.chaos.books.tables import broken, is_settled
from lab.chaos.evidence import Evidence, read_final_state
from lab.pauses import Pauses
from lab.place import FAILED
from lab.stage import Stage
from lab.until import until
from unified_log.errors import Unavailable

SETTLE_LIMIT = 300.0  # seconds until all is counted and delivered; receipts are swept every 30


def closed(
    stage: Stage, client: Callable[[], redis.Redis], onlookers: Sequence[Pauses]
) -> Evidence:
    """End the fleet once nothing is left to do; what is, is found. `client` opens the log."""

    def is_at_rest() -> bool:
        with closing(stage.connect()) as connection, client() as log:
            connection.execute(drifts.TABLE, prepare=False)  # of which there are none
            return is_settled(connection, log)

    with suppress(TimeoutError):
        until(is_at_rest, "", SETTLE_LIMIT, away=(psycopg.Error, redis.RedisError, Unavailable))
    settled_at = time.monotonic()
    for onlooker in onlookers:
        onlooker.end()
    services, journal = stage.services, stage.journal
    found = [*stage.found, *services.end(), *logs.said(services), *journal.troubles]
    found += filter(None, (onlooker.error for onlooker in onlookers))
    with closing(stage.connect()) as connection:
        found += broken(connection, WHEN_SETTLED)
        final = read_final_state(connection)
    came = stage.receiver.deliveries
    return Evidence(
        journal.asks, final, services.exits, found, deliveries=came, settled_at=settled_at
    )


def played(
    play: Callable[[], Evidence], findings: Callable[[], Iterable[str]], shown: Callable[[], str]
) -> tuple[list[str], str]:
    """Play a drill; returns its own `findings` and those of the books, and its table."""
    try:
        evidence = play()
        taken = sum(bool(ask.answers) for ask in evidence.asks)
        books = f"lost {len(lost(evidence))}, double {len(double(evidence))}, of {taken:,} rides"
        found = check(evidence)
    except FAILED as reason:
        books, found = "no books: the drill was not played to its end", [str(reason)]
    return [*found, *findings()], f"{shown()}\n{books}"
