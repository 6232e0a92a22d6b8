"""What a person may delete of the tables that only grow: docs/retention.sql, beside a fleet."""

import subprocess

from analytics.ledger import Owner
from analytics.ownership import history, why_rebuild
from rocket_rides.settings import PROJECT
from tests.support.closings import close
from tests.support.world import World, catch_up, drain, exact
from unified_log import terms

SCRIPT = PROJECT / "docs/retention.sql"
RECONCILE = """
    INSERT INTO reconciliations
        (position, total_distance, rides, duration_seconds, compared, created_at)
    SELECT last_sent_id, coalesce(sum(distance), 0), count(distance), 1, %s,
           now() - make_interval(days => %s)
    FROM streamer_state LEFT JOIN rides ON id <= last_sent_id GROUP BY last_sent_id RETURNING id
"""
ASK = "INSERT INTO resets (reconciliation_id, consumer_name) VALUES (%s, %s)"
APPLIED = """
    INSERT INTO resets (reconciliation_id, consumer_name, status, changed_at, from_position,
        from_total, to_position, to_total)
    VALUES (%s, 'consumer0', 'applied', now() - make_interval(days => %s), 1, 1, 1, 1)
"""
RECOMPUTED = """
    INSERT INTO recomputations (reconciliation_id, minute, lowest_ride_id, status, changed_at)
    VALUES (%s, '2026-03-01 10:01Z', 1, %s, now() - make_interval(days => %s))
"""
MALFORMED = """
    INSERT INTO malformed_entries (
        consumer_kind, consumer_name, redis_id, fields, reason, created_at
    )
    VALUES ('total', 'consumer0', %s, '{}', 'no ride', now() - make_interval(days => %s))
"""
AGED = "UPDATE terms SET began_at = now() - make_interval(days => %s) WHERE term = ANY(%s)"
RAN = """
    INSERT INTO runs (status, position, ledgers, started_at, ended_at)
    VALUES (%s, 1, %s, now() - interval '500 days', now() - interval '500 days')
"""
APPROVED = """
    INSERT INTO approvals (run_id, digest, reason, approved_by) VALUES (%s, %s, 'a', 'b')
"""


def forget(world: World) -> None:
    psql = str(world.postgres.programs / "psql")
    command = [psql, "-v", "ON_ERROR_STOP=1", "-1", "-f", str(SCRIPT), world.postgres_url]
    subprocess.run(command, check=True, capture_output=True)


def ids(world: World, table: str) -> list[int]:
    return [row[0] for row in world.connection.execute(f"SELECT id FROM {table} ORDER BY id")]


def reconcile(world: World, days_ago: int, compared: str = "{}") -> int:
    row = world.connection.execute(RECONCILE, [compared, days_ago]).fetchone()
    assert row is not None
    return int(row[0])


def lead(world: World, *distances: str) -> str:
    """A leader comes, sends rides and goes; the name of its term."""
    streamer = world.streamer()
    world.take(*distances)
    drain(streamer)
    return streamer.term.name


def known_terms(world: World) -> list[tuple[int, str]]:
    rows = world.connection.execute("SELECT after, term FROM terms ORDER BY after").fetchall()
    return [(after, term) for after, term in rows]


def test_old_rows_go_and_what_is_needed_stays(world: World) -> None:
    lead(world, "1", "2")
    catch_up(world.consumer("consumer0"))
    world.consumer("idle")
    for redis_id, days in (("1-0", 500), ("2-0", 300)):
        world.connection.execute(MALFORMED, [redis_id, days])
    old = [reconcile(world, 500) for _ in range(4)]
    world.connection.execute(APPLIED, [old[0], 500])
    world.connection.execute(APPLIED, [old[1], 500])  # this consumer's newest
    world.connection.execute(ASK, [old[2], "idle"])  # it has yet to look at it
    forget(world)
    kept = world.connection.execute("SELECT reconciliation_id, status FROM resets ORDER BY id")
    assert kept.fetchall() == [(old[1], "applied"), (old[2], "pending")]
    # Two that resets refer to, and the newest run.
    assert ids(world, "reconciliations") == old[1:]
    assert world.value("SELECT count(*) FROM malformed_entries WHERE redis_id = '2-0'") == 1
    assert world.value("SELECT count(*) FROM malformed_entries") == 1
    young = [reconcile(world, 399), reconcile(world, 1)]
    forget(world)
    assert ids(world, "reconciliations") == [*old[1:3], *young]


def test_a_recomputation_stays_until_the_rollup_has_seen_it_and_so_does_what_it_is_of(
    world: World,
) -> None:
    old = [reconcile(world, 500) for _ in range(4)]
    world.connection.execute(RECOMPUTED, [old[0], "done", 500])
    world.connection.execute(RECOMPUTED, [old[1], "pending", None])
    world.connection.execute(RECOMPUTED, [old[2], "set aside", 500])
    world.connection.execute(RECOMPUTED, [old[3], "done", 399])
    forget(world)
    assert ids(world, "reconciliations") == old[1:]
    kept = world.connection.execute("SELECT reconciliation_id FROM recomputations ORDER BY 1")
    assert kept.fetchall() == [(old[1],), (old[2],), (old[3],)]


def test_terms_that_nobody_needs_become_one_that_nobody_knows(world: World) -> None:
    names = [lead(world, "1", "2") for _ in range(4)]
    forget(world)  # nothing has been read or reconciled
    assert [term for _, term in known_terms(world)] == names
    consumer = world.consumer()
    reconcile(world, 0)
    forget(world)  # this consumer is still below their ends
    assert [term for _, term in known_terms(world)] == names
    catch_up(consumer)
    owner = Owner(world.start + 8, "", names[3])
    world.connection.execute(AGED, [500, names])
    last = lead(world, "1")
    forget(world)
    [(after, unknown), *kept] = known_terms(world)
    assert after == world.start
    assert kept == [(world.start + 6, names[3]), (world.start + 8, last)]
    assert unknown not in names
    # The warehouse is still this database's, and whoever knew a term that is gone can't write.
    ours = history(world.connection, terms.last_sent(world.connection))
    assert why_rebuild("/warehouse", [owner], ours) == ""
    assert ours.end_of(names[0]) == -1
    assert ours.end_of("") == world.start
    forget(world)
    assert known_terms(world)[1:] == kept
    assert exact(world, world.consumer("late"))


def test_a_term_in_which_a_reader_of_the_feed_may_have_read_last_stays(world: World) -> None:
    """It would be told that this database has another history, and begin anew."""
    names = [lead(world, "1") for _ in range(4)]
    catch_up(world.consumer())
    reconcile(world, 0)
    world.connection.execute(AGED, [399, names])
    forget(world)
    assert [term for _, term in known_terms(world)] == names
    world.connection.execute(AGED, [500, names[:2]])  # the second was that of 400 days ago
    forget(world)
    assert [term for _, term in known_terms(world)][1:] == names[1:]


def test_runs_go_but_for_those_that_the_next_one_goes_on_from(world: World) -> None:
    """The last that completed, the last that gave a ledger, and what has come since."""
    ran = (("agreed", "{}"), ("held", "{a}"), ("held", "{}"), ("agreed", "{b}"), ("held", "{}"))
    for status, ledgers in (*ran, ("failed", "{c}")):
        world.connection.execute(RAN, [status, ledgers])
    first, approved, *rest = ids(world, "runs")
    world.connection.execute(APPROVED, [approved, "0" * 64])
    forget(world)
    assert ids(world, "runs") == [approved, *rest[1:]]
    world.connection.execute("UPDATE approvals SET approved_at = now() - interval '500 days'")
    forget(world)
    assert ids(world, "runs") == rest[1:]
    assert first not in rest


def test_a_run_on_which_a_period_was_closed_stays(world: World) -> None:
    lead(world, "1")
    close(world, world.start + 1)
    world.connection.execute("UPDATE runs SET ended_at = now() - interval '500 days'")
    [closed] = ids(world, "runs")
    for _ in range(2):
        world.connection.execute(RAN, ["agreed", "{a}"])
    _, _, last = ids(world, "runs")
    forget(world)
    assert ids(world, "runs") == [closed, last]
