"""The receipts that are gathered are those that the database holds."""

from api.tables import rides
from api.views import RECEIPT
from rocket_rides import sessions
from tests.support.engine import all_shown, connected
from tests.support.looks import at_work, seen
from tests.support.world import World
from unified_log.sessions import starting

# By ride; 13 is not in the inbox yet. The third has had two attempts that don't count.
RECEIPTS = """
    INSERT INTO receipts (ride_id, outcome, attempts, excused, unfinished, lease, reason, due_at,
                          decided_at, replay_at, dropped_at)
    SELECT cell_start() + id, outcome, attempts, excused, unfinished, lease, 'status 410',
           now() + make_interval(secs => due), decided_at, replay_at, dropped_at
    FROM (VALUES
        (1, 'delivered', 1, 0, 0, NULL, 0, now(), NULL, NULL),
        (2, 'delivered', 1, 0, 0, NULL, 0, now(), NULL, NULL),
        (3, 'dead', 12, 2, 0, NULL, 0, now(), NULL, NULL),
        (4, 'dead', 10, 10, 0, NULL, 0, now(), now(), NULL),
        (5, 'dead', 10, 0, 0, NULL, 0, now(), NULL, now()),
        (6, 'dead', 11, 10, 1, gen_random_uuid(), 9, now(), now(), NULL),
        (7, 'dead', 10, 0, 0, NULL, 0, now(), NULL, NULL),
        (8, NULL, 2, 1, 0, NULL, 9, NULL, NULL, NULL),
        (9, NULL, 1, 0, 1, gen_random_uuid(), 9, NULL, NULL, NULL),
        (10, NULL, 1, 0, 1, gen_random_uuid(), -9, NULL, NULL, NULL),
        (11, NULL, 3, 0, 3, gen_random_uuid(), 9, NULL, NULL, NULL),
        (12, NULL, 0, 0, 0, NULL, 0, NULL, NULL, NULL)
    ) receipts (id, outcome, attempts, excused, unfinished, lease, due, decided_at, replay_at,
                dropped_at)
"""
STATES = {
    1: "delivered", 2: "delivered", 3: "dead", 4: "waiting", 5: "dead", 6: "in flight", 7: "dead",
    8: "waiting", 9: "in flight", 10: "waiting", 11: "in flight", 12: "queued", 13: "queued",
}  # fmt: skip
WORKERS = """
    INSERT INTO receipts_workers
        (name, delivered, dead, swept, entries_ignored, entries_malformed, entries_passed)
    VALUES ('a', 20, 1, 2, 4, 0, 6), ('b', 30, 1, 3, 5, 1, 7)
"""


def test_receipts_are_told_by_their_states(world: World) -> None:
    """One by one in the API, and together by whoever watches."""
    world.take(*[1] * 13)
    world.connection.execute(RECEIPTS)
    world.connection.execute(WORKERS)
    with connected(world) as connection:
        found = connection.execute(
            RECEIPT.where(rides.c.id.between(world.start + 1, world.start + 13))
        )
        told = {row.ride_id - world.start: (row.state, row.attempts) for row in found}
    assert {ride: state for ride, (state, _) in told.items()} == STATES
    counting = {ride: attempts for ride, (_, attempts) in told.items()}
    assert counting == dict(zip(STATES, (1, 1, 10, 0, 10, 1, 10, 1, 1, 1, 3, 0, 0), strict=True))
    world.connection.execute(
        "UPDATE rides SET created_at = now() - interval '60 seconds' WHERE id = cell_start() + 8"
    )
    at_work(world, sessions.receipts("one"))
    at_work(world, sessions.receipts("two"))
    at_work(world, starting(sessions.receipts("three")))
    receipts = seen(world).receipts
    assert (receipts.workers, receipts.delivered, receipts.swept) == (2, 50, 5)
    assert (receipts.queued, receipts.in_flight, receipts.waiting) == (2, 3, 3)
    assert (receipts.dead, receipts.being_sent_again, receipts.pending) == (2, 2, 6)
    assert (receipts.entries_ignored, receipts.entries_malformed) == (9, 1)
    assert receipts.entries_passed == 13
    dead = [(letter.ride - world.start, letter.attempts) for letter in receipts.newest_dead]
    assert dead == [(7, 10), (3, 10)]
    assert receipts.newest_dead[0].reason == "status 410"
    [shown] = [each for each in all_shown(world) if each["kind"] == "group"]
    assert (shown["records_behind"], shown["entries_ignored"]) == (6, 9)
    assert receipts.oldest_undelivered_seconds is not None
    assert 60 <= receipts.oldest_undelivered_seconds < 70
