"""Reconciliation, on a real Spark: drift of every kind is found to the millimetre, and healed."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import pytest

from analytics.result import Compared
from tests.support.books import MILLIMETRE, Books, exact, tally
from tests.support.world import eventually, take


def test_totals_that_are_right_are_said_to_be_right(books: Books) -> None:
    ids = books.add("1.001", "2.002", "3.003")
    books.caught_up("consumer0")
    books.claim("behind", ids[1])
    result = books.run()
    assert result.consumers == [
        Compared("behind", ids[1], Decimal("3.003"), Decimal("3.003")),
        Compared("consumer0", ids[2], Decimal("6.006"), Decimal("6.006")),
    ]
    assert result.agrees
    assert result.resets == []
    row = books.world.connection.execute(
        "SELECT last_ride_id, total_distance, rides FROM reconciliations"
    ).fetchall()
    assert row == [(ids[2], Decimal("6.006"), 3)]


@pytest.mark.proves("noticed")
def test_a_millimetre_is_found_and_repaired_while_rides_keep_arriving(books: Books) -> None:
    world = books.world
    world.service("streamer")
    consumer = world.service("consumers", "consumer0")
    over = threading.Event()
    connection = world.connect()

    def keep_riding() -> None:
        while not over.is_set():
            take(connection, "0.123", "45.6")

    riding = threading.Thread(target=keep_riding)
    riding.start()
    try:
        eventually(lambda: world.standing()[0] > 100)
        books.tamper("consumer0", MILLIMETRE)
        result = books.run()
        assert [(c.name, c.drift) for c in result.consumers] == [("consumer0", MILLIMETRE)]
        assert result.resets == ["consumer0"]
        consumer.says("was reset by reconciliation")
        again = books.run()
    finally:
        over.set()
        riding.join()
    assert again.agrees
    assert again.last_ride_id > result.last_ride_id
    eventually(lambda: world.standing() == world.truth)


def test_consumers_with_different_errors_at_different_checkpoints(books: Books) -> None:
    ids = books.add(*range(1, 11))
    books.claim("first", ids[3], drift=Decimal("-0.001"))
    books.claim("second", ids[8], drift=Decimal("1000000.5"))
    books.claim("third", ids[5])
    result = books.run()
    assert {c.name: c.drift for c in result.consumers} == {
        "first": Decimal("-0.001"),
        "second": Decimal("1000000.5"),
        "third": 0,
    }
    assert result.resets == ["first", "second"]
    books.add("7.5", "8.5")
    for name in ("first", "second", "third"):
        assert books.caught_up(name) == books.world.truth


def test_a_consumer_that_has_run_past_the_tuple_meanwhile(books: Books) -> None:
    books.add(1, 2, 3)
    consumer = books.world.consumer()
    consumer.run_once()
    books.tamper("consumer0", MILLIMETRE)

    @contextmanager
    def meanwhile(_stage: str) -> Iterator[None]:
        books.add("10.5", "20.25")
        consumer.run_once()
        yield

    result = books.job(meanwhile).run_once()
    at = books.world.standing()[0]
    assert at > result.last_ride_id
    assert books.world.standing() == (at, exact(books.world, at) + MILLIMETRE)
    done = consumer.run_once()
    assert done.repair is not None
    assert books.world.standing() == (at, exact(books.world, at))
    assert books.caught_up() == books.world.truth


def test_a_consumer_that_never_started(books: Books) -> None:
    books.claim("untouched", 0)
    books.claim("tampered", 0, drift=5)
    books.add(1, 2, 3)
    result = books.run()
    assert [(c.name, c.wrong) for c in result.consumers] == [
        ("tampered", True),
        ("untouched", False),
    ]
    assert books.caught_up("tampered") == books.caught_up("untouched") == books.world.truth


def test_a_checkpoint_past_every_ride_is_wrong_even_with_the_right_total(books: Books) -> None:
    ids = books.add(1, 2, 3)
    books.claim("consumer0", ids[-1] + 1_000_000)
    result = books.run()
    assert [(c.drift, c.wrong) for c in result.consumers] == [(Decimal(0), True)]
    books.add(4)
    assert books.caught_up() == books.world.truth


def test_no_rides_at_all(books: Books) -> None:
    books.claim("consumer0", 0)
    result = books.run()
    assert (result.agrees, result.total, result.new) == (True, tally(0, 0), tally(0, 0))
    books.claim("consumer1", 0, drift=1)
    assert not books.run(full=True).agrees
    assert books.caught_up("consumer1") == (0, Decimal(0))


def test_a_hole_of_a_million_ids(books: Books) -> None:
    before = books.add(*range(1, 6))
    books.skip_ids(1_000_000)
    after = books.add(*range(1, 6))
    assert after[0] > before[-1] + 1_000_000
    for name, at in {
        "before": before[2],
        "within": before[-1] + 500_000,
        "after": after[2],
    }.items():
        books.claim(name, at, drift=MILLIMETRE)
    for _night in range(2):  # the second finds all of it in the warehouse
        result = books.run()
        assert result.mismatches == []
        assert {c.name: c.drift for c in result.consumers} == dict.fromkeys(
            ("after", "before", "within"), MILLIMETRE
        )
        assert result.total == tally(10, 30)
    assert books.caught_up("within") == books.world.truth


def test_a_consumer_far_behind_costs_one_block_of_history(books: Books) -> None:
    books.add_many(250_000)
    books.run()
    books.add_many(10)
    for at in (1, 99_999, 100_000, 100_001, 180_000, 250_000, 250_003):
        books.claim(f"at {at}", at, drift=MILLIMETRE)
    result = books.run()
    assert [c.drift for c in result.consumers] == [MILLIMETRE] * 7
    assert result.new.rides == 10
    assert result.total == tally(250_010, exact(books.world, 250_010))


def test_check_reports_and_changes_nothing(books: Books) -> None:
    books.add(1, 2)
    books.claim("consumer0", 1, drift=MILLIMETRE)
    result = books.run(check=True)
    assert [c.drift for c in result.consumers] == [MILLIMETRE]
    assert not books.warehouse.folder.exists()
    assert books.world.value("SELECT count(*) FROM reconciliations") == 0
    assert books.world.value("SELECT count(*) FROM resets") == 0


def test_check_leaves_a_warehouse_as_it_is(books: Books) -> None:
    books.add(1, 2)
    books.run()
    leftover = books.warehouse.folder / ".staging" / "of another run"
    leftover.mkdir(parents=True)
    before = sorted(books.warehouse.folder.rglob("*"))
    books.add(3)
    assert books.run(check=True).new == tally(1, 3)
    assert books.run(check=True, full=True).total == tally(3, 6)
    assert sorted(books.warehouse.folder.rglob("*")) == before


def rides_by_day(books: Books) -> dict[str, int]:
    """Of the warehouse's files."""
    days = Counter[str]()
    for file in books.warehouse.table.files():
        days[f"{file.day}"] += file.rides
    return dict(days)


def test_days_are_utc_whatever_the_time_zone_of_the_database(books: Books) -> None:
    books.world.connection.execute(
        f"ALTER DATABASE {books.world.stream} SET timezone = 'Asia/Tokyo'"
    )
    books.add_many(3, at="timestamptz '2026-03-01 23:59:59.999999+00'")
    books.add_many(2, at="timestamptz '2026-03-02 00:00:00+00'")
    books.run()
    assert rides_by_day(books) == {"2026-03-01": 3, "2026-03-02": 2}
    books.run(full=True)
    assert rides_by_day(books) == {"2026-03-01": 3, "2026-03-02": 2}


def test_a_time_that_no_calendar_has_stops_nothing(books: Books) -> None:
    for at in ("infinity", "-infinity", "4713-01-01 12:00+00 BC", "294276-12-31 12:00+00"):
        books.add_many(1, at=f"timestamptz '{at}'")
    books.add_many(1)
    assert books.run().total.rides == 5
    days = rides_by_day(books)
    assert (days["0001-01-01"], days["9999-12-31"]) == (2, 2)
    assert books.in_warehouse() == books.in_postgres()
    assert books.run().mismatches == []


def test_no_snapshot_is_held_while_spark_works(books: Books) -> None:
    books.add(1, 2, 3)
    holding: list[tuple[str, object]] = []

    @contextmanager
    def looking(stage: str) -> Iterator[None]:
        row = books.world.connection.execute(
            "SELECT state, backend_xmin FROM pg_stat_activity WHERE pid = %s",
            [job.connection.info.backend_pid],
        ).fetchone()
        holding.append((stage, row))
        yield

    job = books.job(looking)
    job.run_once()
    assert holding == [
        ("Extracting new rides", ("idle", None)),
        ("Adding up new rides", ("idle", None)),
        ("Adding up minutes", ("idle", None)),
    ]
