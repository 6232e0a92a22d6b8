"""A look costs one statement and a few commands, and the same however much there is."""

from collections import Counter
from typing import Any

import pytest

from tests.support.engine import unhurried
from tests.support.looks import seen
from tests.support.world import World
from watch import asking_postgres
from watch.asking_postgres import FACTS, SESSION
from watch.runs import SHOWN

LIMIT, MANY = 100, 3000
# Tables that nothing keeps small.
GROWING = (
    "rides",
    "staged_log_records",
    "receipts",
    "malformed_entries",
    "held_out_records",
    "terms",
    "reconciliations",
    "resets",
    "runs",
    "approvals",
)
SEEN = {"rides", "staged_log_records", "receipts", "terms", "runs", "approvals"}
# Everybody is far behind, and much of everything waits.
CROWD = [
    "INSERT INTO rides (distance) SELECT 1 FROM generate_series(1, {0})",
    "INSERT INTO staged_log_records SELECT id, 'ride.create', '{{}}' FROM rides",
    """
    INSERT INTO receipts (ride_id, outcome, attempts, due_at, decided_at, replay_at)
    SELECT id, 'dead', 1, now(), now(), CASE id % 2 WHEN 0 THEN now() END FROM rides
    WHERE id % 3 = 0
    """,
    """
    INSERT INTO malformed_entries (consumer_kind, consumer_name, redis_id, fields, reason)
    SELECT 'total', 'a', n || '-0', '{{}}', 'no data' FROM generate_series(1, {0}) n
    """,
    """
    INSERT INTO terms (after, term) SELECT n, lpad(n::text, 16, '0') FROM generate_series(1, {0}) n
    """,
    """
    INSERT INTO checkpoints (kind, name, position)
    SELECT 'total', chr(97 + n), n * {0} / 10 FROM generate_series(0, 10) n
    """,
    "INSERT INTO consumer_states (name) SELECT name FROM checkpoints",
    """
    INSERT INTO held_out_records (kind, name, position, type, reason, dropped_at)
    SELECT 'total', 'a', id, 'ride.create', 'no', CASE id % 2 WHEN 0 THEN now() END FROM rides
    """,
    """
    INSERT INTO reconciliations (position, total_distance, rides, duration_seconds, compared)
    SELECT n, n, n, 1, '{{}}' FROM generate_series(1, {0}) n
    """,
    "INSERT INTO resets (reconciliation_id, consumer_name) SELECT id, 'a' FROM reconciliations",
    # The last completed run, with more findings than anybody looks at; all later ones have failed.
    """
    INSERT INTO runs (status, ended_at, position, findings)
    SELECT CASE WHEN n <= {0} / 2 THEN 'held' ELSE 'failed' END, now(), n,
           CASE n WHEN {0} / 2 THEN findings ELSE '[]' END
    FROM generate_series(1, {0}) n, (
        SELECT jsonb_agg(jsonb_build_object('kind', 'rides_changed', 'held', true)) AS findings
        FROM generate_series(1, {0})
    ) many
    """,
    "INSERT INTO runs DEFAULT VALUES",
    """
    INSERT INTO approvals (run_id, digest, reason, approved_by)
    SELECT id, repeat('0', 64), 'so it is', 'me' FROM runs
    """,
]

DELIVERED = """
    INSERT INTO receipts (ride_id, outcome, attempts, decided_at)
    SELECT id, 'delivered', 1, now() FROM rides
"""
SWEPT = "UPDATE receipts_state SET (inbox_to, complete_to) = (SELECT max(id), max(id) FROM rides)"
DEAD = """
    INSERT INTO receipts (ride_id, outcome, attempts, due_at, decided_at)
    SELECT id, 'dead', 1, now(), now() FROM rides
"""


def crowd(world: World) -> None:
    for statement in CROWD:
        world.connection.execute(statement.format(MANY))


def plan(world: World, limit: int) -> dict[str, Any]:
    connection = world.connect(**unhurried(SESSION))
    given = {"limit": limit}
    row = connection.execute(
        f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {FACTS}", given
    ).fetchone()
    assert row
    found: dict[str, Any] = row[0][0]["Plan"]
    return found


def nodes(of: dict[str, Any]) -> list[dict[str, Any]]:
    return [of, *(node for inner in of.get("Plans", []) for node in nodes(inner))]


def test_no_table_is_scanned_and_no_more_is_read_than_the_limit(world: World) -> None:
    """With statistics, and without."""
    crowd(world)
    for analyze in ("", "ANALYZE"):
        world.connection.execute(analyze)
        read: Counter[str] = Counter()
        for node in nodes(plan(world, LIMIT)):
            if (table := node.get("Relation Name")) in GROWING:
                assert "Index" in node["Node Type"], (table, node["Node Type"])
                removed = node.get("Rows Removed by Filter", 0)
                read[table] += int((node["Actual Rows"] + removed) * node["Actual Loops"])
        assert read["rides"] >= 3 * LIMIT  # or else this has shown nothing
        assert read.keys() >= SEEN
        rates = 500  # newest rides
        assert read.pop("rides") < rates + 12 * LIMIT
        assert all(rows <= 6 * LIMIT for rows in read.values()), read


def test_what_there_is_more_of_is_counted_up_to_the_limit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_postgres, "MOST", LIMIT)
    crowd(world)
    database = seen(world)
    assert database.rides.staged == LIMIT
    assert 0 < database.receipts.pending < LIMIT  # of the newest rides, some have an outcome
    assert max(reader.records_behind or 0 for reader in database.readers) == LIMIT
    assert database.malformed_entries == {"total": LIMIT}
    [held_out] = [reader for reader in database.readers if reader.held_out]
    assert (held_out.name, held_out.held_out, held_out.dropped) == ("a", LIMIT, LIMIT)
    assert database.failed_runs == LIMIT
    assert database.completed_run
    assert database.completed_run.open == {"rides_changed": LIMIT}
    assert database.completed_run.held == LIMIT
    assert len(database.completed_run.findings) == SHOWN
    assert database.receipts.dead + database.receipts.being_sent_again <= 2 * LIMIT


def test_one_receipt_that_is_tried_again_costs_no_more_than_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All those after it are delivered, and none of them can be forgotten."""
    monkeypatch.setattr(asking_postgres, "MOST", LIMIT)
    world.connection.execute(CROWD[0].format(MANY))
    first = world.start + 1
    world.connection.execute(
        "UPDATE rides SET created_at = now() - interval '60 s' WHERE id = %s", [first]
    )
    world.connection.execute(DELIVERED)
    world.connection.execute(SWEPT)
    assert seen(world).receipts.oldest_undelivered_seconds is None
    world.connection.execute("UPDATE receipts_state SET complete_to = cell_start()")
    world.connection.execute(
        "UPDATE receipts SET outcome = NULL, decided_at = NULL WHERE ride_id = %s", [first]
    )
    receipts = seen(world).receipts
    assert receipts.pending == 1
    assert receipts.oldest_undelivered_seconds is not None
    assert 60 <= receipts.oldest_undelivered_seconds < 70
    found = [node for node in nodes(plan(world, LIMIT)) if node.get("Relation Name") == "receipts"]
    assert sum((node["Actual Rows"] or 1) * node["Actual Loops"] for node in found) < LIMIT


def test_receipts_that_were_due_cost_nothing_while_a_snapshot_keeps_their_entries(
    world: World,
) -> None:
    holder = world.connect()
    holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    holder.execute("SELECT FROM rides")
    world.connection.execute(CROWD[0].format(MANY))
    world.connection.execute("UPDATE rides SET created_at = now() - interval '1 hour'")
    world.connection.execute(
        "INSERT INTO receipts (ride_id, due_at) SELECT id, created_at FROM rides"
    )
    world.connection.execute("UPDATE receipts SET outcome = 'delivered', decided_at = now()")
    world.connection.execute(SWEPT)
    world.take(1)
    assert seen(world).receipts.pending == 1
    found = [
        node["Shared Hit Blocks"]
        for node in nodes(plan(world, LIMIT))
        if node.get("Index Name") == "receipts_due"
    ]
    assert len(found) == 2
    assert sum(found) < 20  # pages; with all the entries they are 35


def test_dead_receipts_that_wait_are_found_among_any_number_of_decided_ones(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_postgres, "MOST", LIMIT)
    world.connection.execute(CROWD[0].format(MANY))
    world.connection.execute(DEAD)
    world.connection.execute("UPDATE receipts SET dropped_at = now() WHERE ride_id % 1000 <> 500")
    world.connection.execute(
        "UPDATE receipts SET dropped_at = NULL, replay_at = now()"
        " WHERE ride_id <= cell_start() + %s",
        [LIMIT],
    )
    receipts = seen(world).receipts
    assert (receipts.dead, receipts.being_sent_again) == (3, LIMIT)
    assert [letter.ride - world.start for letter in receipts.newest_dead] == [2500, 1500, 500]
    for node in nodes(plan(world, LIMIT)):
        if node.get("Index Name") == "receipts_waiting":
            assert node["Actual Rows"] <= 3
            assert not node.get("Rows Removed by Filter")
            break
    else:
        raise AssertionError("no index leads to those that wait")
