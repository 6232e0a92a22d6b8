"""While somebody holds a snapshot: what every batch reads stays as cheap, and he is named."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import Select, TextClause
from sqlalchemy.dialects import postgresql

from api import booking, consumers, feed, periods, views
from api.tables import rides
from consumers.ratings import stars
from consumers.receipts import statements
from consumers.rollup import generation, marker, minutes, recomputations, set_aside_minutes
from consumers.totals import total
from tests.support.world import World, transaction
from unified_log import session_settings
from unified_log.database import LAST_DRAWN, one_row
from unified_log.readers import checkpoint, committed, handler, held_out
from unified_log.streamer import barrier, checks, comparison, drain, trimming
from watch import asking_postgres

VERSIONS = 3000
# Each look-up may cost one more, where an index has become a level deeper, and a new version four,
# where a vacuum has made the table's map of free space. Who shows all readers looks up dozens of
# rows, and the page reads the outbox from its start. The dead versions of a row fill twenty pages,
# or forty.
MOST_MORE = 16
FOR_ALL_READERS = {"the page looks": 80, "clients ask for the readers": 40}

INDEXED, JOINING, ROLLUP = (
    session_settings.INDEX_SCANS,
    session_settings.NESTED_LOOPS,
    minutes.SESSION,
)
TERM, LEASE = "a" * 16, UUID(int=1)
MADE = f"""
    INSERT INTO checkpoints (kind, name)
    VALUES ('total', 'c'), ('total', 'd'), ('ratings', 'c'), ('rollup', 'rollup');
    INSERT INTO consumer_states (name) VALUES ('c'), ('d');
    INSERT INTO rating_sums (name) VALUES ('c');
    INSERT INTO terms (after, term) VALUES (0, '{TERM}');
    UPDATE checkpoints SET last_redis_id = position || '-0', version = position;
    UPDATE rollup_state SET generation = '{TERM}', ick = '{TERM}';
    INSERT INTO rides (id, distance) VALUES (cell_start(), 1);
    INSERT INTO receipts (ride_id, attempts, lease) VALUES (cell_start(), 1, '{LEASE}');
    INSERT INTO receipts_workers (name) VALUES ('v'), ('w'), ('x')
"""
# Receipts that were delivered an hour ago, and before that waited in the queue.
DELIVERED = f"""
    INSERT INTO receipts (ride_id, due_at)
        SELECT cell_start() - n, now() - interval '1 hour' FROM generate_series(1, {VERSIONS}) n;
    UPDATE receipts SET outcome = 'delivered', decided_at = now() WHERE lease IS NULL
"""
STAGE = "INSERT INTO staged_log_records (id, type, data) VALUES (%s, 'ride.create', '{}')"
SWEPT = {"worker": "w", "page": 10}
TAKEN = {"most": 1, "quarantined": 1, "room": 1, "begin_at": None, "lease": None, "seconds": 1.0}
FEED = {"after": 0, "term": TERM, "limit": 10, "types": "{ride.create}", "database": ""}
BROUGHT = {"rides": [], "traceparents": [], "tracestates": [], "worker": "w"}
WEBHOOK_ID = """
    SELECT webhook_id(salt, id, distance, created_at) FROM rides CROSS JOIN receipts_state
"""
NO_TIME = periods.Range(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))
OF_TOTAL = {"kind": "total", "name": "c"}
RIDE = {"distance": 1, "traceparent": None, "tracestate": None}


def text(statement: Select[Any] | TextClause) -> str:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    return str(statement.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))


def moved(position: int) -> dict[str, Any]:
    """The values of a checkpoint's move from a position to the next."""
    counts = ("gaps", "records", "skipped", "malformed", "ignored", "passed", "taken", "held_out")
    places = {"redis_id": f"{position + 1}-0", "from_redis_id": f"{position}-0"}
    positions = {"position": position + 1, "from_position": position}
    of = {"types": [], "from_version": position}
    return {**OF_TOTAL, **dict.fromkeys(counts, 0), **places, **positions, **of}


def saved(world: World) -> dict[str, Any]:
    """The values that say that a receipt was delivered."""
    [webhook_id] = one_row(world.connection.execute(WEBHOOK_ID))
    values = {"rides": world.start, "ids": webhook_id, "leases": LEASE, "kinds": "delivered"}
    values |= {"reasons": "", "delays": 0.0}
    return {name: [value] for name, value in values.items()} | {"worker": "w", "most": 1}


class Hot(NamedTuple):
    """A statement that some process repeats, in its session."""

    session: Mapping[str, str]
    statement: str
    values: Any = ()


def hot(world: World, at: int) -> dict[str, Hot]:
    """They all, after so many batches."""
    start, new = world.start, {"after": at, "upto": at + 10, "most": 10}
    return {
        "a ride is taken": Hot(INDEXED, text(booking.TAKE.bindparams(**RIDE))),
        "the barrier looks": Hot(INDEXED, LAST_DRAWN),
        "the barrier looks for writers": Hot(INDEXED, barrier.WRITERS),
        "a batch is read": Hot(INDEXED, drain.NEXT_BATCH, [at, at + 10, 10]),
        "a batch is taken out": Hot(INDEXED, drain.DELETE_SENT, [[at + 1]]),
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
        "rides are marked": Hot(ROLLUP, marker.MINUTES, new),
        "minutes to repair are looked for": Hot(ROLLUP, recomputations.PENDING, [10]),
        "minutes to retry are looked for": Hot(ROLLUP, set_aside_minutes.TO_RETRY),
        "a minute is locked": Hot(ROLLUP, minutes.LOCK_ROW, [NO_TIME.first]),
        "a minute is computed": Hot(ROLLUP, minutes.COMPUTE, {"generation": TERM, "minutes": []}),
        "receipts come in": Hot(JOINING, statements.INBOX, BROUGHT | {"ignored": 1, "passed": 1}),
        "receipts are taken": Hot(JOINING, statements.TAKE, TAKEN),
        "receipts are saved": Hot(JOINING, statements.SAVE, saved(world)),
        "receipts are made due": Hot(JOINING, statements.MAKE_DUE),
        "receipts are swept": Hot(JOINING, statements.SWEEP, SWEPT | {"upto": at}),
        "receipts are complete": Hot(JOINING, statements.COMPLETE, {"page": 10}),
        "the page looks": Hot(JOINING, asking_postgres.FACTS, {"limit": 100}),
        "clients ask for the readers": Hot(INDEXED, consumers.CONSUMERS),
        "clients read the feed": Hot(INDEXED, text(feed.PAGE.bindparams(**FEED))),
        "clients ask for hours": Hot(INDEXED, text(periods.HOUR.sums(NO_TIME))),
        "clients ask for a receipt": Hot(INDEXED, text(views.RECEIPT.where(rides.c.id == start))),
    }


def buffers(world: World, hot: Hot) -> int:
    """How many a statement reads, or writes to; it is then rolled back."""
    connection = world.connect(**hot.session)
    explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {hot.statement}"
    with connection.transaction(force_rollback=True):
        [[plan]] = one_row(connection.execute(explain.encode(), hot.values))
    connection.close()
    root, *others = nodes(plan["Plan"])
    scanned = {f"CTE {node.get('CTE Name')}" for node in others}
    # What nobody reads from is carried out after the root.
    unread = [node for node in others if node.get("Subplan Name", "") not in {"", *scanned}]
    unread = [node for node in unread if node["Node Type"] == "ModifyTable"]
    return sum(
        int(node["Shared Hit Blocks"] + node["Shared Read Blocks"]) for node in [root, *unread]
    )


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Those of a plan, its root first."""
    yield plan
    for each in plan.get("Plans", []):
        yield from nodes(each)


def make_versions(world: World) -> None:
    """As so many batches do, by the very statements; in one transaction, which changes nothing."""
    connection = world.connect(**JOINING)
    with connection.transaction(), connection.pipeline():
        for n in range(world.start, world.start + VERSIONS):
            connection.execute(STAGE, [n + 1])
            connection.execute(drain.DELETE_SENT, [[n + 1]])
            connection.execute(drain.MOVE_LAST_SENT, [n + 1, 1, n, TERM])
            connection.execute(checkpoint.MOVE.encode(), moved(n))
            connection.execute(total.ADD, [1, 1, "c"])
            connection.execute(stars.ADD, [1, 1, "c"])
            connection.execute(generation.COMPLETE, [n + 1, TERM])
            connection.execute(statements.INBOX, BROUGHT | {"ignored": 1, "passed": 1})
            connection.execute(statements.SWEEP, SWEPT | {"upto": n + 1})
            connection.execute(statements.COMPLETE, {"page": 10})
    positions = "SELECT last_sent_id FROM streamer_state UNION ALL SELECT complete_to"
    positions += " FROM rollup_state UNION ALL SELECT inbox_to FROM receipts_state"
    positions += " UNION ALL SELECT complete_to FROM receipts_state UNION ALL SELECT position"
    positions += " FROM checkpoints WHERE (kind, name) = ('total', 'c')"
    counts = "SELECT rides FROM consumer_states WHERE name = 'c' UNION ALL SELECT ratings"
    counts += " FROM rating_sums UNION ALL SELECT sum(entries_ignored) FROM receipts_workers"
    found = connection.execute(positions.encode()).fetchall()
    assert found == [(world.start + VERSIONS,)] * 5
    assert connection.execute(counts.encode()).fetchall() == [(VERSIONS,)] * 3
    connection.execute(DELIVERED.encode())
    connection.close()


@pytest.mark.proves("held-snapshot")
def test_what_every_batch_reads_is_as_cheap_however_many_dead_versions_there_are(
    world: World,
) -> None:
    world.connection.execute(MADE)
    with transaction(world) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("SELECT FROM checkpoints")
        before = {what: buffers(world, each) for what, each in hot(world, world.start).items()}
        make_versions(world)
        for what_autovacuum_does in ("", "VACUUM", "ANALYZE"):
            world.connection.execute(what_autovacuum_does)
            end = hot(world, world.start + VERSIONS)
            after = {what: buffers(world, each) for what, each in end.items()}
            more = {what: after[what] - before[what] for what in after}
            assert {
                what: n for what, n in more.items() if n > FOR_ALL_READERS.get(what, MOST_MORE)
            } == {}
