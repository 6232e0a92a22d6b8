"""The judge of the books can fail a run: what is falsified in the tables, its statements find."""

import psycopg
import pytest
import redis

from lab.chaos.books import statements
from lab.chaos.books.tables import broken, left_over
from lab.chaos.drifts import prepare
from tests.support.rollup import hurry, lead, send_at
from tests.support.world import World, catch_up

# Of a fleet that has settled. There is one total, where chaos has three.
CLAIMS = [claim for claim in statements.WHEN_SETTLED if claim is not statements.ALL_TOTALS]
DECIDED = """
    INSERT INTO receipts (ride_id, outcome, attempts, decided_at)
    SELECT id, 'delivered', 1, now() FROM rides;
    INSERT INTO receipts_workers (name, delivered) VALUES ('one', 1);
    UPDATE receipts_state SET inbox_to = last_sent_id, complete_to = last_sent_id
    FROM streamer_state
"""
# consumer0 has counted its one ride, so it lacks nothing.
HELD_OUT = """
    INSERT INTO held_out_records (kind, name, position, type, reason)
    SELECT kind, name, position{}, 'ride.create', 'refused' FROM checkpoints
    WHERE kind = 'total'
"""
NIGHT = """
    INSERT INTO reconciliations (position, total_distance, rides, duration_seconds, compared)
    VALUES (1, 1, 1, 1, '{}') RETURNING id
"""
RESET = f"""
    WITH night AS ({NIGHT})
    INSERT INTO resets (reconciliation_id, consumer_name) SELECT id, 'consumer0' FROM night
"""
APPLIED = f"""
    WITH night AS ({NIGHT})
    INSERT INTO resets (reconciliation_id, consumer_name, status, changed_at,
                        from_position, from_total, to_position, to_total)
    SELECT night.id, 'consumer0', 'applied', now(), position, total_distance, position, 2
    FROM night, checkpoints JOIN consumer_states USING (kind, name)
"""
RUN = "INSERT INTO runs (status, position, ended_at, findings)"
HELD = '[{"kind": "rides_changed", "about": "ride 1 is gone", "held": true}]'
TAMPERING = "INSERT INTO chaos.tamperings VALUES ('rides', 0)"
FALSIFIED = [
    ("UPDATE streamer_state SET records_sent = 0", "the streamer counts 0 records sent of 1"),
    ("UPDATE checkpoints SET position = position - 1", "consumer0's position is "),
    ("UPDATE consumer_states SET rides = 2", "consumer0 has 1.000 m in 2 rides, not 1.000 in 1"),
    (HELD_OUT.format(""), "consumer0 has 1.000 m in 1 rides, not 0 in 0"),
    (HELD_OUT.format(""), "consumer0 holds ride.create"),
    (HELD_OUT.format(" + 1"), "out, and stands at"),
    ("UPDATE checkpoints SET resets_applied = 1", "consumer0 counts 1 resets applied of 0"),
    ("UPDATE checkpoints SET entries_malformed = 1", "counts 1 malformed entries of 0"),
    ("UPDATE rollup_state SET complete_to = complete_to + 1", "the rollup is complete to position"),
    ("UPDATE ride_minutes SET rides = 2", "the minute 12:00 says 2 rides of 1.000 m, not 1 rides"),
    ("UPDATE ride_minutes SET upto = upto + 1", "which was never sent"),
    ("DELETE FROM ride_minutes", "is not in the minute 12:00, and the rollup is complete to"),
    ("DELETE FROM receipts", "is not in the inbox, which is complete to position"),
    ("INSERT INTO receipts (ride_id) VALUES (0)", "receipt of ride 0, which does not exist"),
    ("UPDATE receipts SET outcome = NULL, decided_at = NULL", "has no outcome, and receipts are"),
    ("UPDATE receipts SET outcome = 'dead', decided_at = now()", "dead, and was not meant to be"),
    ("UPDATE receipts SET excused = 1, unfinished = 1", "1 do not count, and 1 have no known end"),
    ("UPDATE receipts SET lease = gen_random_uuid()", "is leased, and nobody makes an attempt"),
    ("UPDATE receipts SET lease = gen_random_uuid(), unfinished = 1", "delivered, and still leas"),
    ("UPDATE receipts_workers SET delivered = 2", "workers count 2 receipts delivered of 1"),
    (NIGHT, "has not compared everything"),
    (RESET, "the nightly job asked for a reset of consumer0"),
    (APPLIED, "a reset of consumer0 changed a right total: 1.000 m at position"),
    (APPLIED, "a reset of consumer0 left 2.000 m at position"),
    (f"{RUN} VALUES ('running', NULL, NULL, '[]')", "is still running"),
    (f"{RUN} VALUES ('agreed', 1, now(), '[{{}}]')", "is agreed, and its findings are [{}]"),
    (f"{RUN} VALUES ('wrong', 1, now(), '[{{\"held\": true}}]')", "is wrong, and its findings are"),
    (f"{RUN} VALUES ('held', 1, now(), '{HELD}')", "found what chaos had not done: ride 1 is gone"),
    (TAMPERING, "the tampering with the rides was never undone"),
]


@pytest.fixture(scope="module")
def settled(module_world: World) -> psycopg.Connection:
    """Of a fleet that has taken one ride, and has nothing left to do."""
    send_at(module_world, ("2026-11-22 12:00:30Z", 1))
    catch_up(module_world.consumer())
    hurry(lead(module_world))
    module_world.connection.execute(DECIDED, prepare=False)
    connection = module_world.connect()
    prepare(connection)
    return connection


def test_tables_that_are_right_are_found_to_be_right(settled: psycopg.Connection) -> None:
    assert broken(settled, CLAIMS) == []


@pytest.mark.parametrize(("change", "found"), FALSIFIED)
def test_what_is_falsified_is_found(settled: psycopg.Connection, change: str, found: str) -> None:
    with settled.transaction(force_rollback=True):
        settled.execute(change)
        said = [sentence for claim in CLAIMS for (sentence,) in settled.execute(claim)]
    assert found in "\n".join(said)


def test_totals_that_nobody_has_begun_are_missed(world: World) -> None:
    """Of an empty list, everything is true."""
    assert broken(world.connect(), [statements.COUNTED]) == []
    assert broken(world.connect(), [statements.ALL_TOTALS]) == ["there are 0 totals, not 3"]


def test_work_that_is_left_in_redis_is_found(world: World) -> None:
    leading = lead(world)
    world.send(1)
    leading.reader.run_once()
    world.log().command("XGROUP", "CREATE", world.stream, "members", "0")
    world.log().command("XREADGROUP", "GROUP", "members", "one", "STREAMS", world.stream, ">")
    with redis.Redis.from_url(world.redis.url) as client:
        left = left_over(world.connection, client, world.stream)
    assert left == ["1 minutes are left dirty", "1 entries are left pending"]
