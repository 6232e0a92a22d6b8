"""Delivering a backlog of receipts with two workers, to a receiver that answers at once.

The streamer has put the rides in the log while no worker ran. The rate is that of the outcomes in
Postgres, from the first to the last; a receipt without one fails the part.
"""

from lab.benchmarks import fleet, outbox
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.stand import Stand, value
from lab.until import until

ROUNDS = 3
BACKLOG = 100_000
PATIENCE = 120.0  # seconds

TAKEN = "SELECT coalesce(max(id), 0) FROM rides"
SENT = "SELECT last_sent_id FROM streamer_state"
DELIVERED = "SELECT sum(delivered) FROM receipts_workers"
RATE = """
    SELECT count(*) / extract(epoch FROM max(decided_at) - min(decided_at)) FROM receipts
    WHERE ride_id > %s AND outcome = 'delivered'
"""


def measure(stand: Stand) -> list[Figure]:
    """Once before it counts: the first worker makes the group, which holds the log back."""
    rate = Figure(f"Receipts of {BACKLOG:,} rides", "receipts/s", goal=Goal("value", ">=", 2000))
    with stand.services(fleet.STREAMER):
        _delivered(stand, 1000)
        rate.measure(ROUNDS, lambda: _delivered(stand, BACKLOG))
    return [rate]


def _delivered(stand: Stand, rides: int) -> float:
    """Receipts per second."""
    with stand.connect() as connection:
        after, before = value(connection, TAKEN), value(connection, DELIVERED)
        outbox.stage(connection, rides)
        last = value(connection, TAKEN)
        until(lambda: value(connection, SENT) >= last, "not every ride gets into the log")
        with fleet.workers(stand):
            until(
                lambda: value(connection, DELIVERED) >= before + rides,
                "not every receipt gets delivered",
                PATIENCE,
            )
        return value(connection, RATE, after)
