"""Delivering receipts with two workers, to a receiver that answers at once.

A backlog first: rides that the streamer has put in the log while no worker ran. The rate is that of
the receiver's notes, from the first receipt to the last one that was due; a receipt is lost if it
is missing there, or its ride has no outcome. The limit is two processes that sign and deliver as
many receipts and do nothing else: no log, no Postgres, the same receiver.

Then rides that arrive at a steady rate, through a whole fleet: how long from the moment at which a
ride was due to be posted until its receipt is there. Both are the same machine's monotonic clock.
"""

import contextlib
import multiprocessing
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from statistics import quantiles

import psycopg

from consumers.receipts.courier import Courier
from consumers.receipts.receipt import Receipt
from consumers.receipts.verdict import Kind
from lab.benchmarks import fleet, load, outbox
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.receiver import Notes, Receiver, receiver
from lab.benchmarks.stand import PATIENCE, Stand, wait_until
from rocket_rides import database
from rocket_rides.settings import DEMO_SECRET, Settings

ROUNDS = 3
BACKLOG = 100_000
BARE = 30_000  # receipts of the limit's runs
WORKERS = len(fleet.WORKERS)
RIDES = 500
RATE = 100.0  # rides per second on average, at random moments

RATE_GOAL = Goal("value", ">=", 2000)
NONE = Goal("value", "<=", 0)

HIGHEST = "SELECT coalesce(max(id), 0) FROM rides"
SENT = "SELECT last_sent_id FROM streamer_state"
TAKEN = "SELECT id FROM rides WHERE id > %s"
OPEN = """
    SELECT id FROM rides LEFT JOIN receipts ON ride_id = id
    WHERE id > %s AND outcome IS DISTINCT FROM 'delivered'
"""

Milliseconds = list[float]


def measure(stand: Stand) -> list[Figure]:
    """A backlog, and rides at a steady rate."""
    stand.say("a backlog")
    figures = _backlogs(stand)
    stand.say(f"{RATE:.0f} rides a second")
    return figures + _journeys(stand)


def _backlogs(stand: Stand) -> list[Figure]:
    limit = f"{WORKERS} bare couriers"
    rate = Figure(f"Receipts of {BACKLOG:,} rides", "receipts/s", limit, RATE_GOAL)
    lost = repeated = 0
    with (
        receiver() as customer,
        database.connect(stand.postgres.url, "benchmark") as connection,
        stand.service("streamer"),
    ):
        with fleet.workers(stand, customer):  # the first makes the group, which holds the log back
            _deliver_one(connection, customer)
        for _ in range(ROUNDS):
            after = _stage(connection, BACKLOG)
            with fleet.workers(stand, customer):
                _wait_for_the_last(connection, customer, after)
            notes = customer.take()
            rate.runs.append(notes.rate)
            lost += len(_lost(connection, notes, after))
            repeated += notes.repetitions
            rate.limits.append(_bare(customer))
    of = f"of {ROUNDS} times {BACKLOG:,}"
    return [
        rate,
        Figure(f"Receipts lost, {of}", "receipts", goal=NONE, runs=[lost]),
        Figure(f"Receipts sent again, {of}", "receipts", runs=[repeated]),
    ]


def _deliver_one(connection: psycopg.Connection, customer: Receiver) -> None:
    outbox.stage(connection, 1)
    wait_until(lambda: customer.count() > 0, "the first receipt is delivered")
    customer.take()


def _stage(connection: psycopg.Connection, rides: int) -> int:
    """Have the streamer send so many rides; returns the ride before them."""
    after = _number(connection, HIGHEST)
    outbox.stage(connection, rides)
    last = _number(connection, HIGHEST)
    wait_until(lambda: _number(connection, SENT) >= last, "every ride is in the log")
    return after


def _number(connection: psycopg.Connection, query: str) -> int:
    number: int = database.one_row(connection.execute(query))[0]
    return number


def _wait_for_the_last(connection: psycopg.Connection, customer: Receiver, after: int) -> None:
    """Until every ride has its outcome; or, if some never do, until a sweep should have found them.

    Postgres is asked only once enough receipts have come: it has work to do.
    """
    patience = PATIENCE + Settings.model_fields["sweep_after"].default
    seen, since = 0, time.monotonic()
    while time.monotonic() - since < patience:
        time.sleep(0.2)
        if (count := customer.count()) > seen:
            seen, since = count, time.monotonic()
        if seen >= BACKLOG and not connection.execute(OPEN, [after]).fetchone():
            return


def _lost(connection: psycopg.Connection, notes: Notes, after: int) -> set[int]:
    """The rides that miss a receipt or an outcome. Raises ValueError for a receipt of no ride."""
    rides = {ride_id for (ride_id,) in connection.execute(TAKEN, [after])}
    if invented := set(notes.rides) - rides:
        raise ValueError(f"receipts of rides that there are not: {sorted(invented)[:10]}")
    still_open = {ride_id for (ride_id,) in connection.execute(OPEN, [after])}
    return rides - set(notes.rides) | still_open


def _bare(customer: Receiver) -> float:
    """The limit: only sign and deliver, in as many processes as there are workers."""
    context = multiprocessing.get_context("spawn")
    share = BARE // WORKERS
    couriers = [
        context.Process(target=_deliver, args=(customer.url, number * share, share), daemon=True)
        for number in range(WORKERS)
    ]
    for courier in couriers:
        courier.start()
    for courier in couriers:
        courier.join()
        if courier.exitcode:
            raise RuntimeError("a bare courier failed")
    return customer.take().rate


def _deliver(url: str, after: int, number: int) -> None:
    """In a process of its own: deliver the receipts of the rides `after < id <= after + number`."""
    defaults = Settings.model_fields
    concurrency = defaults["receipt_concurrency"].default
    receipts = _receipts(after, number)
    delivered = 0
    with Courier(url, DEMO_SECRET, concurrency, defaults["receipt_timeout"].default) as courier:
        while delivered < number:
            for _ in range(courier.room):
                if receipt := next(receipts, None):
                    courier.start(receipt)
            for _, verdict in courier.finished(1):
                if verdict.kind is not Kind.DELIVERED:
                    raise RuntimeError(verdict.reason)
                delivered += 1


def _receipts(after: int, number: int) -> Iterator[Receipt]:
    now = datetime.now(UTC)
    for ride_id in range(after + 1, after + number + 1):
        yield Receipt(ride_id, Decimal("539.837"), now, f"msg_{ride_id:032x}")


def _journeys(stand: Stand) -> list[Figure]:
    name = f"Ride to receipt, {RATE:.0f} rides/s"
    figures = {percent: Figure(f"{name}, p{percent}", "ms") for percent in (50, 99)}
    with (
        fleet.fleet(stand) as running,
        contextlib.closing(load.KeepAlive(running.port)) as client,
    ):
        for _ in range(ROUNDS):
            took = _journey(client, running.customer)
            for percent, figure in figures.items():
                figure.runs.append(quantiles(took, n=100)[percent - 1])
    return list(figures.values())


def _journey(client: load.KeepAlive, customer: Receiver) -> Milliseconds:
    """Post rides, each at its moment even if the last one was slow, and wait for their receipts."""
    customer.take()
    posted: dict[int, float] = {}
    due = time.monotonic()
    for _ in range(RIDES):
        due += random.expovariate(RATE)
        time.sleep(max(0.0, due - time.monotonic()))
        posted[fleet.ride_id(client.ask(next(load.RIDES)))] = due
    wait_until(lambda: customer.count() >= RIDES, "every ride has its receipt")
    arrived = _first_arrivals(customer.take())
    return [(arrived[ride_id] - due) * 1000 for ride_id, due in posted.items()]


def _first_arrivals(notes: Notes) -> dict[int, float]:
    arrived: dict[int, float] = {}
    for ride_id, moment in zip(notes.rides, notes.times, strict=True):
        arrived.setdefault(ride_id, moment)
    return arrived
