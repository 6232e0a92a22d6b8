"""What a person may delete of the tables that only grow: docs/retention.sql, beside a fleet."""

import subprocess

import psycopg

from analytics.ledger import Owner
from analytics.ownership import history, why_rebuild
from rocket_rides import terms
from rocket_rides.settings import PROJECT
from tests.support.world import World, catch_up, drain, eventually

SCRIPT = PROJECT / "docs/retention.sql"
RECONCILE = """
    INSERT INTO reconciliations
        (last_ride_id, total_distance, rides, duration_seconds, compared, created_at)
    SELECT last_sent_id, coalesce(sum(distance), 0), count(distance), 1, %s,
           now() - make_interval(days => %s)
    FROM streamer_state LEFT JOIN rides ON id <= last_sent_id GROUP BY last_sent_id RETURNING id
"""
ASK = "INSERT INTO resets (reconciliation_id, consumer_name) VALUES (%s, %s)"
APPLIED = """
    INSERT INTO resets (reconciliation_id, consumer_name, status, changed_at, from_ride_id,
        from_total, to_ride_id, to_total)
    VALUES (%s, 'consumer0', 'applied', now() - make_interval(days => %s), 1, 1, 1, 1)
"""
RECOMPUTED = """
    INSERT INTO recomputations (reconciliation_id, minute, lowest_ride_id, status, changed_at)
    VALUES (%s, '2026-03-01 10:01Z', 1, %s, now() - make_interval(days => %s))
"""
DEAD_LETTER = """
    INSERT INTO dead_letters (consumer_name, redis_id, fields, reason, created_at)
    VALUES ('consumer0', %s, '{}', 'no ride', now() - make_interval(days => %s))
"""


def forget(connection: psycopg.Connection) -> None:
    """As `psql -1 -f` does it."""
    with connection.transaction():
        connection.execute(SCRIPT.read_text(), prepare=False)


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
        world.connection.execute(DEAD_LETTER, [redis_id, days])
    old = [reconcile(world, 500) for _ in range(4)]
    mended = reconcile(world, 450, '{"mended": [1]}')
    world.connection.execute(APPLIED, [old[0], 500])
    world.connection.execute(APPLIED, [old[1], 500])  # this consumer's newest
    world.connection.execute(ASK, [old[2], "idle"])  # it has yet to look at it
    forget(world.connection)
    kept = world.connection.execute("SELECT reconciliation_id, status FROM resets ORDER BY id")
    assert kept.fetchall() == [(old[1], "applied"), (old[2], "pending")]
    # Two that resets refer to, and the newest run; the mend after it does not count as one.
    assert ids(world, "reconciliations") == old[1:]
    assert mended not in ids(world, "reconciliations")
    assert world.value("SELECT count(*) FROM dead_letters WHERE redis_id = '2-0'") == 1
    assert world.value("SELECT count(*) FROM dead_letters") == 1
    young = [reconcile(world, 399), reconcile(world, 1)]
    forget(world.connection)
    assert ids(world, "reconciliations") == [*old[1:3], *young]


def test_a_recomputation_stays_until_the_rollup_has_seen_it_and_so_does_what_it_is_of(
    world: World,
) -> None:
    old = [reconcile(world, 500) for _ in range(4)]
    world.connection.execute(RECOMPUTED, [old[0], "done", 500])
    world.connection.execute(RECOMPUTED, [old[1], "pending", None])
    world.connection.execute(RECOMPUTED, [old[2], "set aside", 500])
    world.connection.execute(RECOMPUTED, [old[3], "done", 399])
    forget(world.connection)
    assert ids(world, "reconciliations") == old[1:]
    kept = world.connection.execute("SELECT reconciliation_id FROM recomputations ORDER BY 1")
    assert kept.fetchall() == [(old[1],), (old[2],), (old[3],)]


def test_terms_that_nobody_needs_become_one_that_nobody_knows(world: World) -> None:
    names = [lead(world, "1", "2") for _ in range(4)]
    forget(world.connection)  # nothing has been read or reconciled
    assert [term for _, term in known_terms(world)] == names
    catch_up(world.consumer())
    reconcile(world, 0)
    owner = Owner(8, "", names[3])
    last = lead(world, "1")
    forget(world.connection)
    [(zero, unknown), *kept] = known_terms(world)
    assert (zero, kept) == (0, [(6, names[3]), (8, last)])
    assert unknown not in names
    # The warehouse is still this database's, and whoever knew a term that is gone can't write.
    ours = history(world.connection, terms.last_sent(world.connection))
    assert why_rebuild([owner], ours) == ""
    assert ours.end_of(names[0]) == -1
    assert ours.end_of("") == 0
    forget(world.connection)
    assert known_terms(world)[1:] == kept


def test_a_term_stays_while_a_consumer_is_below_its_end(world: World) -> None:
    names = [lead(world, "1", "2") for _ in range(3)]
    world.consumer()
    reconcile(world, 0)
    forget(world.connection)
    assert [term for _, term in known_terms(world)] == names


def test_a_fleet_at_work_does_not_notice(world: World) -> None:
    for _ in range(5):
        lead(world, "0.001")
    services = [
        world.service("streamer"),
        *(world.service("consumers", name) for name in ("consumer0", "consumer1")),
    ]
    connection = world.connect()
    eventually(lambda: world.standing("consumer1") == world.standing("consumer0") == world.truth)
    for number in range(50):
        world.take("1.001", "2.002")
        world.connection.execute(APPLIED, [reconcile(world, 500), 500])
        world.connection.execute(
            "UPDATE consumer_states SET total_distance = total_distance + 0.001"
            " WHERE name = 'consumer1'"
        )
        world.connection.execute(ASK, [reconcile(world, 0), "consumer1"])
        world.connection.execute(DEAD_LETTER, [f"{number}-0", 500])
        forget(connection)
    eventually(lambda: world.value("SELECT count(*) FROM resets WHERE status = 'pending'") == 0)
    eventually(lambda: world.standing("consumer1") == world.standing("consumer0") == world.truth)
    reconcile(world, 0)
    forget(connection)
    assert len(known_terms(world)) == 2  # the streamer's, and the one that nobody knows
    resets = "SELECT count(*) FROM resets WHERE consumer_name = %s AND status = 'applied'"
    assert world.value(resets, "consumer0") == 1
    assert world.value(resets, "consumer1") >= 1
    assert world.value("SELECT sum(unbelieved_entries) FROM checkpoints") == 0
    for service in services:
        assert service.stop() == 0
        said = service.output.read_text()
        assert "ERROR" not in said
        assert "Traceback" not in said


def test_a_consumer_that_begins_later_ends_exact(world: World) -> None:
    for _ in range(4):
        lead(world, "1.5", "2.5")
    catch_up(world.consumer())
    reconcile(world, 0)
    forget(world.connection)
    assert len(known_terms(world)) == 2
    late = world.consumer("late")
    catch_up(late)
    assert late.standing == world.truth


def test_it_is_a_script_for_psql(world: World) -> None:
    world.connection.execute(DEAD_LETTER, ["1-0", 500])
    psql = str(world.postgres.programs / "psql")
    command = [psql, "-v", "ON_ERROR_STOP=1", "-1", "-f", str(SCRIPT), world.postgres_url]
    subprocess.run(command, check=True, capture_output=True)
    assert world.value("SELECT count(*) FROM dead_letters") == 0
