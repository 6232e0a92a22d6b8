"""What the statements of the inbox and the queue cost: rows and blocks, the same on any machine.

Each is explained as a worker runs it: prepared, in a session like its own.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import uuid4

import psycopg
import pytest

from consumers.receipts.queue import ALL
from consumers.receipts.statements import COMPLETE, INBOX, MAKE_DUE, SAVE, SWEEP, TAKE
from consumers.receipts.upkeep import PAGE
from tests.support.world import World
from unified_log import session_settings

MANY, ROOM = 20_000, 10

# Delivered at a thousand a second until now, each written as a worker does: queued, leased for 15
# seconds, decided.
RIDES = "INSERT INTO rides (distance) SELECT 1 FROM generate_series(1, %s)"
QUEUED = """
    INSERT INTO receipts (ride_id, due_at)
    SELECT cell_start() + n, now() - (%s - n) * interval '1 ms' FROM generate_series(1, %s) n
"""
LEASED = """
    UPDATE receipts SET attempts = 1, unfinished = 1, lease = gen_random_uuid(), first_at = now(),
        due_at = due_at + interval '15 s'
"""
DELIVERED = """
    UPDATE receipts SET outcome = 'delivered', decided_at = now(), unfinished = 0, lease = NULL,
        due_at = now()
"""
NEW = (
    "INSERT INTO receipts (ride_id) SELECT cell_start() + n FROM generate_series(%s::bigint, %s) n"
)
STATE = """
    WITH sent AS (UPDATE streamer_state SET last_sent_id = (SELECT max(id) FROM rides))
    UPDATE receipts_state SET inbox_to = cell_start() + %(upto)s,
        complete_to = cell_start() + %(upto)s
"""

OLDEST = "SELECT min(due_at) FROM receipts WHERE outcome IS NULL"

PREPARED = """
    SELECT array_to_string(parameter_types, ', '), statement
    FROM pg_prepared_statements ORDER BY prepare_time DESC LIMIT 1
"""
EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE explained"
PARAMETER = re.compile(r"%\((\w+)\)s")

Node = dict[str, Any]
Values = Mapping[str, object]


def explained(world: World, statement: str, values: Values, **session: str) -> list[Node]:
    """The nodes of its plan, once it has run; it is then rolled back."""
    connection = world.connect(**session_settings.NESTED_LOOPS | session)
    with connection.transaction(force_rollback=True):
        connection.execute(statement, values, prepare=True)
        [[types, text]] = connection.execute(PREPARED, prepare=False).fetchall()
    names = dict.fromkeys(PARAMETER.findall(statement))
    asked = psycopg.ClientCursor(connection)
    asked.execute(f"PREPARE explained{f'({types})' if types else ''} AS {text}")
    with connection.transaction(force_rollback=True):
        given = f"({', '.join(['%s'] * len(names))})" if names else ""
        asked.execute(f"{EXPLAIN}{given}", [values[name] for name in names])
        [[plan]] = asked.fetchall()
    connection.close()
    return nodes(plan[0]["Plan"])


def nodes(of: Node) -> list[Node]:
    return [of, *(node for inner in of.get("Plans", []) for node in nodes(inner))]


def scans(found: list[Node]) -> list[Node]:
    """Those of the tables that grow."""
    return [
        node
        for node in found
        if node.get("Relation Name") in ("rides", "receipts") and node["Node Type"] != "ModifyTable"
    ]


def rows_read(node: Node) -> int:
    """Those that it returned, or passed by."""
    return int((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])


def deliver(world: World, rides: int) -> None:
    """This many, and as many more as there is room for are due."""
    connection = world.connection
    connection.execute(RIDES, [rides + ROOM])
    connection.execute(QUEUED, [rides, rides])
    connection.execute(LEASED)
    connection.execute(DELIVERED)
    connection.execute(NEW, [rides + 1, rides + ROOM])
    connection.execute(STATE, {"upto": rides})


def take(begin_at: object) -> Values:
    return {
        "begin_at": begin_at,
        "most": 10,
        "room": ROOM,
        "quarantined": 1,
        "lease": uuid4(),
        "seconds": 15.0,
    }


def test_to_take_receipts_costs_little_beside_a_long_transaction(world: World) -> None:
    """Its snapshot keeps an index entry of every row ever taken, which a look may pass by."""
    holder = world.connect()
    holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    with holder.transaction():
        holder.execute("SELECT count(*) FROM receipts")
        deliver(world, MANY)
        [[watermark]] = world.connection.execute(OLDEST).fetchall()
        blocks = {}
        for begin_at in (watermark, ALL):
            whole, *_ = explained(world, TAKE, take(begin_at))
            blocks[begin_at] = whole["Shared Hit Blocks"] + whole["Shared Read Blocks"]
    # Only the look from the start, once a minute, passes over what the snapshot keeps.
    assert blocks[ALL] > 10 * blocks[watermark]
    assert blocks[watermark] < 30 * ROOM


class Done(NamedTuple):
    """A statement, its values, and how many rows it returns."""

    statement: str
    values: Values
    returned: int


LEASE = uuid4()
TAKEN = """
    UPDATE receipts SET attempts = 1, unfinished = 1, lease = %s, first_at = now()
    WHERE outcome IS NULL
"""
QUARANTINED = """
    INSERT INTO receipts (ride_id, attempts, unfinished)
    SELECT cell_start() + n, 2, 2 FROM generate_series(%s::bigint, %s) n
"""
IDS = """
    SELECT array_agg(webhook_id(salt, rides.id, distance, created_at) ORDER BY ride_id)
    FROM receipts JOIN rides ON rides.id = ride_id CROSS JOIN receipts_state
    WHERE lease IS NOT NULL
"""
WORKER: dict[str, object] = {"worker": "one", "most": 10}


@pytest.fixture
def grown(world: World) -> dict[str, Done]:
    """Tables that nobody has analyzed: what is done with the few rows that are still to be done."""
    for table in ("rides", "receipts"):
        world.connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    deliver(world, MANY)
    last = MANY + ROOM
    world.connection.execute(RIDES, [2 * ROOM])
    world.connection.execute(TAKEN, [LEASE])
    world.connection.execute(QUARANTINED, [last + 1, last + ROOM])
    world.connection.execute(STATE, {"upto": MANY})
    [[ids]] = world.connection.execute(IDS).fetchall()
    ids_of = range(world.start + 1, world.start + last + 2 * ROOM + 1)
    in_flight, lost = [*ids_of[MANY:last]], [*ids_of[last + ROOM :]]
    ended: dict[str, object] = {
        "rides": in_flight,
        "ids": ids,
        "leases": [LEASE] * ROOM,
        "kinds": ["delivered"] * ROOM,
        "reasons": [""] * ROOM,
        "delays": [1.0] * ROOM,
    }
    traces = dict.fromkeys(("traceparents", "tracestates"), [None] * len(lost))
    lost_ones: Values = {"rides": lost, "worker": "one", "ignored": 1, "passed": 1} | traces
    return {
        "INBOX": Done(INBOX, lost_ones, 1),
        "TAKE": Done(TAKE, take(ALL), ROOM),
        "SAVE": Done(SAVE, WORKER | ended, ROOM),
        "SWEEP": Done(SWEEP, WORKER | {"upto": lost[-1], "page": PAGE}, 1),
        "COMPLETE": Done(COMPLETE, {"page": PAGE}, 0),
        "MAKE_DUE": Done(MAKE_DUE, {}, 0),
    }


def test_each_statement_finds_its_rows_by_an_index_also_where_nothing_is_known_of_a_table(
    world: World, grown: dict[str, Done]
) -> None:
    for plans in ("force_custom_plan", "force_generic_plan"):
        for name, done in grown.items():
            found = explained(world, done.statement, done.values, plan_cache_mode=plans)
            assert found[0]["Actual Rows"] == done.returned, name
            for node in scans(found):
                assert node["Node Type"] in ("Index Scan", "Index Only Scan"), (name, node)
                assert rows_read(node) <= 4 * ROOM, (name, node)
    known = "SELECT max(reltuples) FROM pg_class WHERE relname IN ('rides', 'receipts')"
    assert world.value(known) == -1
