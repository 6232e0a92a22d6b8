"""While somebody holds a snapshot: what every batch reads stays as cheap, and he is named."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import psycopg
import pytest
from sqlalchemy import Select
from sqlalchemy.dialects import postgresql

from api import consumers, periods, views
from consumers.ratings import stars
from consumers.receipts import statements
from consumers.rollup import generation, minutes
from consumers.totals import total
from tests.support.world import World, transaction
from unified_log import session_settings
from unified_log.database import one_row
from unified_log.readers import checkpoint, committed, handler, held_out
from unified_log.streamer import checks, comparison, drain, trimming
from watch import asking_postgres

VERSIONS = 3000
# Each look-up may cost one more, where an index has become a level deeper. Who shows all readers
# looks up dozens of rows. The dead versions of a row fill twenty pages, or forty.
MOST_MORE = 8
FOR_ALL_READERS = {"the page looks": 40, "clients ask for the readers": 40}

INDEXED, JOINING, ROLLUP = (
    session_settings.INDEX_SCANS,
    session_settings.NESTED_LOOPS,
    minutes.SESSION,
)
TERM = "a" * 16
MADE = f"""
    INSERT INTO checkpoints (kind, name)
    VALUES ('total', 'c'), ('total', 'd'), ('ratings', 'c'), ('rollup', 'rollup');
    INSERT INTO consumer_states (name) VALUES ('c'), ('d');
    INSERT INTO rating_sums (name) VALUES ('c');
    INSERT INTO terms (after, term) VALUES (0, '{TERM}');
    UPDATE checkpoints SET last_redis_id = position || '-0';
    UPDATE rollup_state SET generation = '{TERM}', ick = '{TERM}'
"""
SWEPT = {"worker": "w", "page": 10}
TAKEN = {"most": 1, "quarantined": 1, "room": 1, "begin_at": None, "lease": None, "seconds": 1.0}
NOTHING: list[object] = []
SAVED = {
    "rides": NOTHING,
    "ids": NOTHING,
    "leases": NOTHING,
    "kinds": NOTHING,
    "reasons": NOTHING,
    "delays": NOTHING,
}
NO_TIME = periods.Range(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))
OF_TOTAL = {"kind": "total", "name": "c"}


def text(statement: Select[Any]) -> str:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    return str(statement.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))


def moved(position: int) -> dict[str, Any]:
    """The values of a checkpoint's move from a position to the next."""
    counts = ("gaps", "records", "skipped", "malformed", "ignored", "passed", "taken", "held_out")
    places = {"redis_id": f"{position + 1}-0", "from_redis_id": f"{position}-0"}
    positions = {"position": position + 1, "from_position": position}
    return {**OF_TOTAL, **dict.fromkeys(counts, 0), **places, **positions, "types": []}


class Hot(NamedTuple):
    """A statement that some process repeats, in its session."""

    session: Mapping[str, str]
    statement: str
    values: Any = ()


def hot(at: int) -> dict[str, Hot]:
    """They all, after so many batches."""
    return {
        "the streamer moves on": Hot(INDEXED, drain.MOVE_LAST_SENT, [at + 1, 1, at, TERM]),
        "the sequence is checked": Hot(INDEXED, checks.SEQUENCE),
        "the log is trimmed": Hot(INDEXED, trimming.CHECKPOINTS),
        "the streamer compares": Hot(INDEXED, comparison.STATE),
        "a reader asks for the bounds": Hot(INDEXED, committed.BOUNDS, {"known": TERM}),
        "a reader asks for a repair": Hot(INDEXED, handler.REPAIR_IS_DUE, OF_TOTAL),
        "a total asks for a repair": Hot(INDEXED, total.REPAIR_IS_DUE, OF_TOTAL),
        "a reader asks for a retry": Hot(INDEXED, held_out.TO_RETRY, ["total", "c"]),
        "a reader loads": Hot(INDEXED, checkpoint.LOAD, ["total", "c"]),
        "a reader locks": Hot(INDEXED, checkpoint.LOCK, OF_TOTAL),
        "a reader moves on": Hot(INDEXED, checkpoint.MOVE, moved(at)),
        "a total is loaded": Hot(INDEXED, total.LOAD, ["c"]),
        "a total is added to": Hot(INDEXED, total.ADD, [1, 1, "c"]),
        "ratings are loaded": Hot(INDEXED, stars.LOAD, ["c"]),
        "ratings are added to": Hot(INDEXED, stars.ADD, [1, 1, "c"]),
        "the rollup is held": Hot(ROLLUP, generation.HOLD, [TERM]),
        "the rollup is checked": Hot(ROLLUP, generation.IS_OVERTAKEN, [TERM]),
        "the rollup is complete": Hot(ROLLUP, generation.COMPLETE, [at + 1, TERM]),
        "a minute is computed": Hot(ROLLUP, minutes.COMPUTE, {"generation": TERM, "minutes": []}),
        "receipts are taken": Hot(JOINING, statements.TAKE, TAKEN),
        "receipts are saved": Hot(JOINING, statements.SAVE, SAVED | {"worker": "w", "most": 1}),
        "receipts are swept": Hot(JOINING, statements.SWEEP, SWEPT | {"upto": at}),
        "receipts are complete": Hot(JOINING, statements.COMPLETE, {"page": 10}),
        "the page looks": Hot(JOINING, asking_postgres.FACTS, {"limit": 100}),
        "clients ask for the readers": Hot(INDEXED, consumers.CONSUMERS),
        "clients ask for hours": Hot(INDEXED, text(periods.HOUR.sums(NO_TIME))),
        "clients ask for a receipt": Hot(INDEXED, text(views.RECEIPT)),
    }


def buffers(world: World, hot: Hot) -> int:
    """How many a statement reads, or writes to; it is then rolled back."""
    connection = world.connect(**hot.session)
    explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {hot.statement}"
    with connection.transaction(force_rollback=True):
        [[plan]] = one_row(connection.execute(explain.encode(), hot.values))
    connection.close()
    return int(plan["Plan"]["Shared Hit Blocks"]) + int(plan["Plan"]["Shared Read Blocks"])


def make_versions(world: World) -> None:
    """As so many batches do, by the very statements; in one transaction, which changes nothing."""
    connection = world.connect(**JOINING)
    with connection.transaction(), connection.pipeline():
        for n in range(world.start, world.start + VERSIONS):
            connection.execute(drain.MOVE_LAST_SENT, [n + 1, 1, n, TERM])
            connection.execute(checkpoint.MOVE.encode(), moved(n))
            connection.execute(total.ADD, [1, 1, "c"])
            connection.execute(stars.ADD, [1, 1, "c"])
            connection.execute(generation.COMPLETE, [n + 1, TERM])
            connection.execute(statements.SWEEP, SWEPT | {"upto": n + 1})
            connection.execute(statements.COMPLETE, {"page": 10})
    positions = "SELECT last_sent_id FROM streamer_state UNION ALL SELECT complete_to"
    positions += " FROM rollup_state UNION ALL SELECT inbox_to FROM receipts_state"
    positions += " UNION ALL SELECT complete_to FROM receipts_state UNION ALL SELECT position"
    positions += " FROM checkpoints WHERE (kind, name) = ('total', 'c')"
    counts = "SELECT rides FROM consumer_states WHERE name = 'c' UNION ALL SELECT ratings"
    counts += " FROM rating_sums"
    found = connection.execute(positions.encode()).fetchall()
    assert found == [(world.start + VERSIONS,)] * 5
    assert connection.execute(counts.encode()).fetchall() == [(VERSIONS,)] * 2
    connection.close()


@pytest.mark.proves("held-snapshot")
def test_what_every_batch_reads_is_as_cheap_however_many_dead_versions_there_are(
    world: World,
) -> None:
    world.connection.execute(MADE)
    with transaction(world) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("SELECT FROM checkpoints")
        before = {what: buffers(world, each) for what, each in hot(world.start).items()}
        make_versions(world)
        for statistics in ("", "ANALYZE"):
            world.connection.execute(statistics)
            end = hot(world.start + VERSIONS)
            after = {what: buffers(world, each) for what, each in end.items()}
            more = {what: after[what] - before[what] for what in after}
            assert {
                what: n for what, n in more.items() if n > FOR_ALL_READERS.get(what, MOST_MORE)
            } == {}
