"""Why a period can't be closed, and where one ends: what needs no reading of rides."""

from datetime import UTC, date, datetime, timedelta

import pytest

from analytics import closable, closings
from analytics.freeze import freeze
from analytics.parquet import File
from analytics.upto import upto
from tests.support.closings import alter, close
from tests.support.world import World, drain, take
from unified_log.errors import Unavailable

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = date(2026, 1, 1)
RUN = """
    INSERT INTO runs (status, position, ended_at, findings) VALUES (%s, 1, now(), %s)
"""
FOUND = '[{"kind": "total_wrong", "about": "consumer0 is off"}, {"kind": "x", "about": "y"}]'
RECOUNTS = '[{"kind": "reader_recounts", "about": "consumer0 recounts"}]'
ROLLUP = "INSERT INTO checkpoints (kind, name, position) VALUES ('rollup', 'rollup', 10)"
# A reader or a watermark below, and how a sentence calls it.
BELOW = {
    "INSERT INTO checkpoints (kind, name, position) VALUES ('total', 'a', %s)": "total a",
    "INSERT INTO checkpoints (name, position) VALUES ('theirs', %s)": "outside theirs",
    "INSERT INTO checkpoints (kind, name, position) VALUES ('seen', 'b', %s)": "seen b",
    "UPDATE receipts_state SET inbox_to = 10, complete_to = %s": "the receipts' complete_to",
    "UPDATE rollup_state SET complete_to = %s": "the rollup's complete_to",
}
# Readers that are past it, and watermarks.
PUT_BACK = (
    "UPDATE checkpoints SET position = 10",
    "UPDATE receipts_state SET inbox_to = 10, complete_to = 10",
    "UPDATE rollup_state SET complete_to = 10",
)


@pytest.fixture
def ready(world: World) -> World:
    """Ten rides, which the rollup and the receipts have."""
    take(world.connection, *[1] * 10, moments=["2026-01-01 12:00Z"] * 10)
    drain(world.streamer())
    world.connection.execute(
        "INSERT INTO checkpoints (kind, name, position) VALUES ('rollup', 'rollup', 10)"
    )
    for statement in PUT_BACK:
        world.connection.execute(statement)
    return world


def test_nothing_is_closed_past_a_reader_or_a_watermark(ready: World) -> None:
    connection = ready.connection
    closable.require_past(connection, freeze(connection), 10)
    for statement, who in BELOW.items():
        connection.execute(statement.encode(), [9])
        said = f"^{who} stands at position 9, and this would be up to 10$"
        with pytest.raises(Unavailable, match=said):
            closable.require_past(connection, freeze(connection), 10)
        closable.require_past(connection, freeze(connection), 9)
        for put_back in PUT_BACK:
            connection.execute(put_back)


def test_without_a_rollup_or_receipts_nobody_waits_for_them(ready: World) -> None:
    connection = ready.connection
    connection.execute("DELETE FROM checkpoints")
    connection.execute("UPDATE rollup_state SET complete_to = 0")
    connection.execute("UPDATE receipts_state SET inbox_to = 0, complete_to = 0")
    connection.execute(
        "INSERT INTO removed_readers (kind, name, position) VALUES ('receipts', 'all', 0)"
    )
    closable.require_past(connection, freeze(connection), 10)


def test_nothing_is_closed_that_the_last_run_has_compared_no_total_with(world: World) -> None:
    """Of two totals one is enough; and where there is none, nobody is waited for."""
    readers = []
    for kind, position in (("ratings", 5), ("total", 8), ("total", 10)):
        world.connection.execute(RUN, ["agreed", "[]"])
        readers.append(f'{{"kind": "{kind}", "name": "{position}", "position": {position}}}')
        world.connection.execute("UPDATE runs SET readers = %s", [f"[{', '.join(readers)}]"])
        last = closable.require_agreement(world.connection)
        if position == 8:
            said = "run 2 has compared totals up to position 8, and this would be up to 10: "
            with pytest.raises(Unavailable, match=said):
                closable.require_counted(last, 10)
        else:
            closable.require_counted(last, 10)


def test_the_last_run_that_completed_must_have_found_nothing(world: World) -> None:
    connection = world.connection
    connection.execute(RUN.replace("1,", "NULL,"), ["failed", "[]"])
    with pytest.raises(Unavailable, match="no run has completed"):
        closable.require_agreement(connection)
    connection.execute(RUN, ["wrong", FOUND])
    with pytest.raises(
        Unavailable, match=r"run 2 has found something: consumer0 is off \(and 1 other"
    ):
        closable.require_agreement(connection)
    connection.execute(RUN, ["agreed", RECOUNTS])
    assert closable.require_agreement(connection).id == 3


def test_what_clients_may_repeat_is_not_closed() -> None:
    ago = NOW - timedelta(days=30)
    closable.require_old(ago, NOW, 30)
    for later, said in (
        (timedelta(minutes=1), "2026-10-22 12:01"),
        (timedelta(seconds=7), "2026-10-22 12:00:07"),
        (timedelta(microseconds=1), "2026-10-22 12:00:00.000001"),
    ):
        with pytest.raises(Unavailable, match=f"{said} UTC are younger than IDEMPOTENCY_DAYS"):
            closable.require_old(ago + later, NOW, 30)


def test_a_period_follows_the_last_one_that_is_not_reopened(ready: World) -> None:
    for position in (5, 6):
        close(ready, position)
    ready.connection.execute("SELECT reopen_closings(6)")
    rows = closings.read(ready.connection)
    known = [each.closing for each in rows]
    closable.require_next(rows, known, 6)
    for position in (4, 5):
        said = f"closing 1 is up to position 5, and this would be up to {position}"
        with pytest.raises(Unavailable, match=said):
            closable.require_next(rows, known, position)
    with pytest.raises(Unavailable, match="closing 2 is gone"):
        closable.require_next(rows[:1], known, 6)
    for change in ("rides = 7", "closed_at = 'infinity'", "closed_at = '4713-01-01 BC'"):
        alter(ready, f"UPDATE closings SET {change} WHERE id = 1")
        with pytest.raises(Unavailable, match="closing 1 was altered"):
            closable.require_next(closings.read(ready.connection), known, 6)


def file(day: date, first: int, last: int) -> File:
    return File(f"day={day}", 1, 1, first, last, day)


def files(start: int) -> list[File]:
    """Of the first ten rides of a cell that begins there."""
    found = [file(DAY, 1, 6), file(DAY + timedelta(days=2), 4, 10), file(DAY, 8, 9)]
    return [each._replace(first=start + each.first, last=start + each.last) for each in found]


def test_a_period_ends_before_the_first_ride_of_a_later_day(ready: World) -> None:
    """The rides are numbered otherwise than by their days: 4 and 10 are of the third."""
    start = ready.start
    for said, position, ends in (
        ("2025-12-31", 0, "2026-01-01 00:00"),
        ("2026-01-01", 3, "2026-01-02 00:00"),
        ("2026-01-02", 3, "2026-01-03 00:00"),
        ("2026-01-03", 10, "2026-01-04 00:00"),
        ("2026-01-01T11:59", 0, "2026-01-01 11:59"),
        ("2026-01-01T12:01", 3, "2026-01-01 12:01"),
        ("2026-01-03T01:00+01:00", 3, "2026-01-03 00:00"),
        ("3", 3, "2026-01-02 00:00"),
        ("4", 4, "2026-01-04 00:00"),
    ):
        there = upto(str(start + int(said)) if said.isdecimal() else said)
        found = there.position(ready.connection, files(start), start + 10)
        assert found == start + position, said
        assert there.ends(files(start), found) == datetime.fromisoformat(f"{ends}Z"), said


def test_up_to_a_ride_whose_time_is_at_the_end_of_all_times_nothing_is_old() -> None:
    """Files have infinity as the last day that there is."""
    ends = upto("10").ends([file(date.max, 1, 10)], 10)
    with pytest.raises(Unavailable, match="are younger than IDEMPOTENCY_DAYS"):
        closable.require_old(ends, NOW, 30)


def test_a_ride_of_then_that_no_run_has_read_is_waited_for(ready: World) -> None:
    """Whether it is settled or not, and also where a later day has begun."""
    start, there = ready.start, files(ready.start)
    take(ready.connection, 1, moments=["2026-01-01 13:00Z"])
    with pytest.raises(
        Unavailable, match=f"ride {start + 11}, taken before 2026-01-02 00:00 UTC, is not"
    ):
        upto("2026-01-01").position(ready.connection, there, start + 10)
    assert upto("2025-12-31").position(ready.connection, there, start + 10) == start
    with pytest.raises(Unavailable, match=f"no run has read ride {start + 11} yet"):
        upto(str(start + 11)).position(ready.connection, there, start + 10)
    said = f"there is no ride {start + 12}: the one before is {start + 11}"
    with pytest.raises(Unavailable, match=said):
        upto(str(start + 12)).position(ready.connection, there, start + 10)
