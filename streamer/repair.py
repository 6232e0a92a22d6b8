"""`python -m streamer.repair`: gets stranded rides counted, which were staged too late to be sent.

The log can't take a record at or below `last_sent` any more: it is in order, and every reader may
be past it. There is no such record unless numbers were drawn out of order (the sequence's settings
were changed: `streamer.checks`) or rows were staged by hand. The leader warns of them.

First it disowns every log entry up to `last_sent`, so that whoever reads there later, even a
consumer that has yet to start, sees a gap and heals it from the rides; and the next nightly run
rebuilds a warehouse that is past these rides. Then it takes the records out of the outbox, adds up
all rides up to there, and asks every consumer for a reset to that sum, as a reconciliation does:
the consumer itself applies it, exactly, wherever it stands by then (`consumers.totals.reset`). So
every total ends up exact. The rollup is set back below the lowest of these rides, under a new
generation, and rolls them up again. Only readers outside this project have to be told of these
rides: the log will never contain them.

A crash leaves behind, by the step at which it comes:

* before the log is disowned: nothing.
* after that: a gap that readers heal from the rides, and records that are still to be repaired.
* after the second transaction: nothing.

The fleet may keep running meanwhile.
"""

import logging
import secrets

import psycopg

from rocket_rides import database, errors, process, receipts, settings, terms
from rocket_rides.errors import Unavailable
from streamer import checks, leaders_term
from streamer.barrier import Barrier

logger = logging.getLogger("streamer")

POLL = 0.05  # seconds

TAKE_OUT = "DELETE FROM staged_log_records WHERE id <= %s RETURNING id"
ASK_FOR_RESETS = """
    WITH repair AS (
        INSERT INTO reconciliations
            (last_ride_id, total_distance, rides, duration_seconds, compared)
        SELECT %(last_sent)s, coalesce(sum(distance), 0), count(*), 0,
               jsonb_build_object('stranded', %(rides)s::bigint[])
        FROM rides WHERE id <= %(last_sent)s
        RETURNING id
    )
    INSERT INTO resets (reconciliation_id, consumer_name)
    SELECT repair.id, name FROM repair CROSS JOIN consumer_states ORDER BY name
    RETURNING consumer_name
"""
# The rollup marks everything past `complete_to` again, and no earlier leader can undo that.
ROLL_UP_AGAIN = """
    UPDATE rollup_state
    SET complete_to = least(complete_to, %(lowest)s - 1), generation = %(generation)s
"""

# The records have left the outbox, so they count as sent: sent and staged records together are all
# rides. This comes last in its transaction, since the leader waits for the row.
COUNT_REPAIRED = "UPDATE streamer_state SET records_sent = records_sent + %s"


def repair(connection: psycopg.Connection) -> tuple[list[int], list[str]]:
    """Repair all stranded records; returns their rides, and the consumers asked to reset.

    Raises Unavailable while the sequence would only strand more, and psycopg.Error.
    """
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    checks.require_rising_sequence(connection)
    last_sent = terms.last_sent(connection)
    if not checks.stranded_warnings(connection, last_sent):
        return [], []
    # First: a consumer that starts after this needs no reset.
    leaders_term.disown(connection, last_sent)
    with connection.transaction():
        rides = sorted(ride for (ride,) in connection.execute(TAKE_OUT, [last_sent]))
        asked = connection.execute(ASK_FOR_RESETS, {"last_sent": last_sent, "rides": rides})
        named = [name for (name,) in asked]
        if rides:
            again = {"lowest": rides[0], "generation": secrets.token_hex(8)}
            connection.execute(ROLL_UP_AGAIN, again)
            connection.execute(receipts.SET_BACK, [rides[0]])
            connection.execute(COUNT_REPAIRED, [len(rides)])
        return rides, named


def wait_for_writers(connection: psycopg.Connection, stop: process.Stop) -> None:
    """Wait until every transaction that may still commit such a ride has ended; logs which."""
    barrier = Barrier(connection)
    barrier.settled()
    while barrier.waiting and not stop.wait(POLL):
        barrier.settled()


def main() -> None:
    """Repair once, and report what was done."""
    process.take_no_arguments("streamer.repair", __doc__)
    config = settings.load()
    process.begin(config.log_level)
    stop = process.Stop().on_signals()
    try:
        with database.connect(config.postgres_url, "repair") as connection:
            database.require_current_schema(connection)
            wait_for_writers(connection, stop)
            if stop:
                raise SystemExit("not repaired: stopped")
            rides, consumers = repair(connection)
    except (Unavailable, psycopg.Error) as reason:
        raise SystemExit(f"not repaired: {errors.in_one_line(reason)}") from None
    if not rides:
        logger.info("nothing to repair: no record is stranded")
        return
    named = ", ".join(map(str, rides[:10]))
    more = f" and {len(rides) - 10} more" if len(rides) > 10 else ""
    logger.info("repaired; the log will never contain these rides: %s%s", named, more)
    logger.info("asked to reset their totals: %s", ", ".join(consumers) or "no consumer")


if __name__ == "__main__":
    main()
