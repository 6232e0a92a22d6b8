"""Reconciliation, on a real Spark: drift of every kind is found to the millimetre, and healed."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import pytest

from analytics.result import WrongRides
from tests.support.books import MILLIMETRE, Books, exact, tally
from tests.support.completed_runs import last_run
from tests.support.jobs import approve
from tests.support.world import eventually, take

EMITTED = ("reconciliations", "resets", "recomputations")


@pytest.mark.proves("noticed")
def test_a_millimetre_is_found_and_repaired_while_rides_keep_arriving(books: Books) -> None:
    world = books.world
    world.service("streamer")
    consumer = world.service("consumers.totals", "consumer0")
    world.service("consumers.totals", "witness")
    over = threading.Event()
    connection = world.connect()

    def keep_riding() -> None:
        while not over.is_set():
            take(connection, "0.123", "45.6")

    riding = threading.Thread(target=keep_riding)
    riding.start()
    try:
        eventually(lambda: min(world.standing()[0], world.standing("witness")[0]) > 100)
        books.tamper("consumer0", MILLIMETRE)
        result = books.run()
        drifts = [(c.name, c.drift) for c in result.consumers]
        assert drifts == [("consumer0", MILLIMETRE), ("witness", 0)]
        assert result.resets == ["consumer0"]
        consumer.says("was reset by reconciliation")
        again = books.run()
    finally:
        over.set()
        riding.join()
    assert again.agrees
    assert again.position > result.position
    eventually(lambda: world.standing() == world.truth)


def test_each_consumer_is_judged_at_its_own_ride_and_whoever_is_wrong_is_reset(
    books: Books,
) -> None:
    """Also one that stands in a hole of a million ids, or past every ride with a right total."""
    before = books.world.send("1.001", "2.002", "3.003", 4, 5)
    books.skip_ids(1_000_000)
    after = books.world.send(6, 7, 8)
    stand: dict[str, tuple[int, Decimal | int]] = {
        "caught up": (after[-1], 0),
        "behind": (before[1], 0),
        "tampered before it started": (0, 5),
        "not started": (0, 0),
        "short": (before[3], Decimal("-0.001")),
        "long": (before[4], Decimal("1000000.5")),
        "in a hole": (before[-1] + 500_000, MILLIMETRE),
        "past it": (after[1], MILLIMETRE),
        "stray": (after[-1] + 1_000_000, 0),
    }
    for name, (at, drift) in stand.items():
        books.claim(name, at, drift)
    right = {"caught up", "behind", "not started"}
    for check in (False, True):  # the second finds all of it in the warehouse
        result = books.run(check=check)
        assert {c.name: (c.position, c.drift) for c in result.consumers} == stand
        assert {c.name for c in result.consumers if not c.wrong} == right
        assert (result.total, result.mismatches) == (tally(8, Decimal("36.006")), [])
        assert {*result.resets} == (set() if check else {*stand} - right)
    books.world.send("7.5")
    for name in stand:
        assert books.caught_up(name) == books.world.truth
    assert books.run().agrees


def test_a_consumer_that_has_moved_on_meanwhile_is_reset_where_it_stands(books: Books) -> None:
    """And no snapshot is held while Spark works, which would keep vacuum from the outbox."""
    books.world.send(1, 2, 3)
    consumer = books.world.consumer()
    consumer.run_once()
    books.claim("witness", 3)
    books.tamper("consumer0", MILLIMETRE)
    sessions: list[tuple[str, object]] = []

    one_at_a_time = threading.Lock()

    @contextmanager
    def meanwhile(stage: str) -> Iterator[None]:
        with one_at_a_time:
            books.world.send("10.5", "20.25")
            consumer.run_once()
            session = books.world.connection.execute(
                "SELECT backend_xmin FROM pg_stat_activity"
                " WHERE pid = %s AND state = 'idle in transaction'",
                [job.connection.info.backend_pid],
            ).fetchone()
            sessions.append((stage, session))
        yield

    job = books.job(meanwhile)
    result = job.run_once()
    assert {session for _, session in sessions} == {None}
    assert {stage for stage, _ in sessions} >= {"Extracting new rides", "Adding up minutes"}
    at = books.world.standing()[0]
    assert at > result.position
    assert books.world.standing() == (at, exact(books.world, at) + MILLIMETRE)
    done = consumer.run_once()
    assert done.repair is not None
    assert books.world.standing() == (at, exact(books.world, at))


def test_no_rides_at_all(books: Books) -> None:
    books.claim("consumer0", 0)
    result = books.run()
    assert (result.agrees, result.total, result.new) == (True, tally(0, 0), tally(0, 0))
    books.claim("consumer1", 0, drift=1)
    assert not books.run(full=True).agrees
    assert books.caught_up("consumer1") == (0, Decimal(0))


@pytest.mark.parametrize("known", [False, True], ids=["without a warehouse", "with one"])
def test_check_tells_what_is_wrong_and_changes_nothing(books: Books, known: bool) -> None:
    books.world.send(1, 2)
    if known:
        books.run()
    books.world.send(3)
    books.claim("consumer0", 1, drift=MILLIMETRE)
    world = books.world
    world.connection.execute("UPDATE receipts_state SET inbox_to = 2, complete_to = 2")
    world.connection.execute("UPDATE rollup_state SET complete_to = 3")

    def content() -> tuple[object, ...]:
        rows = (world.value(f"SELECT count(*) FROM {table}") for table in EMITTED)
        set_backs = world.value("SELECT set_backs FROM receipts_state")
        return sorted(books.on_disk.rglob("*")), *rows, set_backs

    before = content()
    for full in (False, True):
        result = books.run(check=True, full=full)
        assert (result.total, result.resets, result.requested) == (tally(3, 6), [], False)
        assert [c.drift for c in result.consumers] == [MILLIMETRE]
        assert result.rollup
        assert result.rollup.wrong
        assert result.receipts
        assert result.receipts.missing == WrongRides(2, (1, 2))
        assert content() == before
    assert books.on_disk.exists() == known


NO_CALENDARS = ("infinity", "-infinity", "4713-01-01 12:00+00 BC", "294276-12-31 12:00+00")


def test_days_are_utc_and_a_time_that_no_calendar_has_stops_nothing(books: Books) -> None:
    """The warehouse has days of the years 1 to 9999 only: such a time can't be put back."""
    zone = f"ALTER DATABASE {books.world.stream} SET timezone = 'Asia/Tokyo'"
    books.world.connection.execute(zone)
    for at in NO_CALENDARS:
        books.add_many(1, at=f"timestamptz '{at}'")
    books.add_many(3, at="timestamptz '2026-03-01 23:59:59.999999+00'")
    books.add_many(2, at="timestamptz '2026-03-02 00:00:00+00'")
    for full in (False, True):
        result = books.run(full=full)
        assert (result.total.rides, result.mismatches) == (9, [])
        days = Counter[str]()
        for file in books.warehouse.table.files():
            days[f"{file.day}"] += file.rides
        assert days == {"2026-03-01": 3, "2026-03-02": 2, "0001-01-01": 2, "9999-12-31": 2}
        assert books.in_warehouse() == books.in_postgres()
    books.world.connection.execute("DELETE FROM rides WHERE id <= 5")
    assert books.run().status == "held"
    put_back = approve(books.world, last_run(books.world).id, "--put-back").said
    assert put_back.count("OVERRIDING SYSTEM VALUE") == 1
    for ride in range(1, 5):
        assert f"-- ride {ride}: the warehouse does not know its time\n" in put_back
