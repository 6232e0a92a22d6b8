"""Whoever was there when the last run completed must be there, and no further back than then.

Here a run looks at the readers alone, without Spark. A whole one is in
`tests/analytics/test_readers_missing.py`.
"""

from datetime import UTC, datetime

import pytest

from analytics import runs
from analytics.findings import verdicts
from analytics.freeze import freeze
from analytics.readers import carried_over, missing
from analytics.result import Result
from consumers.ratings.stars import Stars
from consumers.receipts.statements import COMPLETE
from consumers.remove import remove
from tests.support.attacks import (
    DELIVERED,
    RECEIPTS_ARE_COMPLETE,
    REMOVE,
    TOTALS,
    all_have_counted,
    by_hand,
)
from tests.support.books import Books
from tests.support.completed_runs import last_run
from tests.support.entries import RATE
from tests.support.rollup import hurry, lead
from tests.support.world import World, drain
from unified_log.readers.reader import Reader

LOSE_STATES = """
    WITH sums AS (DELETE FROM rating_sums) DELETE FROM consumer_states WHERE name = 'consumer0'
"""
LOSE_ONE = "DELETE FROM checkpoints WHERE name = 'consumer0'"
WIPE_THE_ROLLUP = """
    WITH minutes AS (DELETE FROM ride_minutes)
    UPDATE rollup_state SET complete_to = cell_start()
"""
WIPE_THE_RECEIPTS = """
    WITH rows AS (DELETE FROM receipts)
    UPDATE receipts_state SET inbox_to = cell_start(), complete_to = cell_start()
"""
START_AGAIN = "UPDATE checkpoints SET position = cell_start() WHERE name = 'consumer0'"
# As a removal that came before the last run, by as much.
REMOVED_BEFORE = """
    INSERT INTO removed_readers (kind, name, removed_at, position)
    SELECT 'total', 'consumer0', started_at - %s::interval, cell_start()
    FROM runs ORDER BY id DESC LIMIT 1
"""
LONG_AGO = "UPDATE removed_readers SET removed_at = removed_at - interval '1 hour'"
HOURS_LATER = "UPDATE runs SET started_at = started_at - interval '{} hours'"
# What somebody does, and of whom it is told that he is gone, or behind.
MISSING: dict[str, tuple[str, list[str], list[str]]] = {
    "states": (LOSE_STATES, ["consumer0", "ratings0"], []),
    "one checkpoint": (LOSE_ONE, ["consumer0"], []),
    "all checkpoints": ("DELETE FROM checkpoints", [*TOTALS, "ratings0", "rollup"], []),
    "a total at position 0": (START_AGAIN, [], ["consumer0"]),
    "minutes": (WIPE_THE_ROLLUP, [], ["the rollup's complete_to"]),
    "receipts": (WIPE_THE_RECEIPTS, [], ["the receipts' complete_to"]),
}


def night(world: World, *recounting: tuple[str, str]) -> str:
    """What a run that looks at the readers finds, and writes down: its status.

    `recounting` are those whose sums do not fit, as it would see.
    """
    connection, result = world.connection, Result(datetime.now(UTC), repairing=True)
    last, run, frozen = (
        runs.last_completed(connection),
        runs.begin_run(connection),
        freeze(connection),
    )
    result.findings = missing(connection, frozen, last, recounting)
    run.complete(
        result.status, frozen.position, verdicts(result.findings, ["readers"]), result.findings,
        carried_over(connection, frozen, last), 0, None, 0, {},
    )  # fmt: skip
    return result.status


def nights(world: World, count: int) -> list[str]:
    return [night(world) for _ in range(count)]


@pytest.fixture
def everybody(world: World) -> World:
    """All kinds of readers were there when a run completed."""
    ride, *_ = world.send(1, 2, 3)
    world.connection.execute(RATE, [ride, 5])
    drain(world.streamer())
    read_stars(world)
    all_have_counted(Books(world))
    assert night(world) == "agreed"
    return world


def read_stars(world: World) -> None:
    Reader(world.log(), Stars(world.connect(), "ratings0")).run_once()


def ride_is_counted(world: World) -> None:
    """A new ride, by all but the rollup and the receipts."""
    world.send(1)
    read_stars(world)
    for name in TOTALS:
        Books(world).caught_up(name)


def behind(world: World) -> str:
    return last_run(world).about("reader_behind")


@pytest.mark.proves("missed")
@pytest.mark.parametrize("missed", MISSING)
def test_who_is_missing_or_was_set_back_is_found_night_after_night(
    everybody: World, missed: str
) -> None:
    statement, gone, set_back = MISSING[missed]
    by_hand(everybody, statement)
    for _ in range(2):
        assert night(everybody) == "wrong"
        assert all(name in last_run(everybody).about("reader_gone") for name in gone)
        assert all(name in behind(everybody) for name in set_back)


def test_who_is_new_has_time_until_the_next_run(everybody: World) -> None:
    """It begins at the first ride. Where the last run ended, everybody is by now."""
    everybody.consumer("new")
    assert nights(everybody, 2) == ["agreed", "wrong"]
    assert "new" in behind(everybody)
    Books(everybody).caught_up("new")
    assert night(everybody) == "agreed"


def test_who_was_removed_by_the_command_is_not_missed(everybody: World) -> None:
    for name in ("consumer0", "ratings0"):
        everybody.connection.execute(REMOVE, [name])
    for _ in range(2):
        assert night(everybody) == "agreed"
        assert last_run(everybody).findings == []


def test_a_removal_excuses_only_the_reader_that_was_removed(everybody: World) -> None:
    """Not another one of the same name, which came later."""
    everybody.connection.execute(REMOVE, ["consumer0"])
    assert night(everybody) == "agreed"
    Books(everybody).caught_up("consumer0")
    assert night(everybody) == "agreed"
    by_hand(everybody, LOSE_ONE, LONG_AGO)
    assert night(everybody) == "wrong"
    assert "consumer0" in last_run(everybody).about("reader_gone")


@pytest.mark.parametrize(("before", "status"), [("50 seconds", "agreed"), ("70 seconds", "wrong")])
def test_a_removal_counts_although_a_run_began_before_it_was_committed(
    everybody: World, before: str, status: str
) -> None:
    everybody.connection.execute(REMOVED_BEFORE, [before])
    by_hand(everybody, LOSE_ONE)
    assert night(everybody) == status


def test_a_reader_that_somebody_deleted_is_missed_until_it_is_removed(everybody: World) -> None:
    by_hand(everybody, LOSE_ONE)
    assert nights(everybody, 2) == ["wrong"] * 2
    remove(everybody.connect(), "total", "consumer0")
    assert nights(everybody, 2) == ["agreed"] * 2


def test_nobody_waits_for_the_minutes_of_a_rollup_that_was_removed(everybody: World) -> None:
    """Once it is there again, it has time until the next run; then they must be there, too."""
    remove(everybody.connect(), "rollup", "rollup")
    for _ in range(3):
        ride_is_counted(everybody)
        by_hand(everybody, DELIVERED, RECEIPTS_ARE_COMPLETE)
        assert night(everybody) == "agreed"
    leading = lead(everybody)
    assert everybody.value("SELECT count(*) FROM checkpoints WHERE kind = 'rollup'") == 1
    assert night(everybody) == "agreed"
    hurry(leading)
    assert night(everybody) == "agreed"
    by_hand(everybody, WIPE_THE_ROLLUP)
    assert night(everybody) == "wrong"
    assert "the rollup's complete_to" in behind(everybody)


def test_nobody_waits_for_receipts_that_were_stopped_for_good(everybody: World) -> None:
    """Once they are delivered further than ever before, they must be there again."""
    by_hand(everybody, WIPE_THE_RECEIPTS)
    assert nights(everybody, 2) == ["wrong"] * 2
    remove(everybody.connect(), "receipts", "all")
    assert nights(everybody, 3) == ["agreed"] * 3
    ride_is_counted(everybody)
    hurry(lead(everybody))
    by_hand(everybody, DELIVERED, RECEIPTS_ARE_COMPLETE)
    assert night(everybody) == "agreed"
    by_hand(everybody, WIPE_THE_RECEIPTS)
    assert night(everybody) == "wrong"
    assert "receipts" in behind(everybody)


# What somebody sets past every record sent, and how it is put back, as docs/reconcile.md has it.
STRAY = [
    (
        "UPDATE receipts_state SET (inbox_to, complete_to) = ({0}, {0})",
        "SELECT set_back_receipts({0} + 1)",
    ),
    *[
        (change, change)
        for change in (
            "UPDATE rollup_state SET complete_to = {0}",
            "UPDATE checkpoints SET position = {0} WHERE kind = 'rollup'",
        )
    ],
]


@pytest.mark.parametrize(("change", "remedy"), STRAY, ids=["receipts", "minutes", "rollup"])
def test_who_stands_past_every_record_sent_is_found_until_that_is_put_right(
    everybody: World, change: str, remedy: str
) -> None:
    """No worker undoes that. Then nobody waits for him to come as far again."""
    by_hand(everybody, change.format(everybody.start + 10**9))
    for _ in range(2):
        assert night(everybody) == "wrong"
        assert "past every record sent" in last_run(everybody).about("reader_stray")
    by_hand(everybody, remedy.format(everybody.truth[0]))
    everybody.connection.execute(COMPLETE, {"page": 1000})
    assert night(everybody) == "agreed"
    ride_is_counted(everybody)
    hurry(lead(everybody))
    assert night(everybody) == "agreed"


def test_a_reader_with_a_backslash_in_its_name_is_found_again(world: World) -> None:
    world.send(1)
    Books(world).follow(r"\u0000")
    assert nights(world, 3) == ["agreed"] * 3


def test_receipts_may_be_under_way_but_not_for_hours(everybody: World) -> None:
    ride_is_counted(everybody)
    for _ in range(2):
        night(everybody)
        assert "receipts" not in behind(everybody)
    by_hand(everybody, HOURS_LATER.format(7))
    night(everybody)
    assert "the receipts' complete_to" in behind(everybody)


RECOUNTS = "UPDATE checkpoints SET recount = true WHERE name = 'consumer0'"


def test_one_that_starts_over_is_not_called_behind(everybody: World) -> None:
    stood = everybody.standing()[0]
    by_hand(everybody, START_AGAIN)
    assert night(everybody) == "wrong"
    assert last_run(everybody).kinds == {"reader_behind"}
    by_hand(everybody, f"UPDATE checkpoints SET furthest = {stood} WHERE name = 'consumer0'")
    assert night(everybody) == "agreed"
    assert last_run(everybody).kinds == {"reader_recounts"}


def test_one_that_recounts_for_hours_is_behind(everybody: World) -> None:
    """In whatever runs between: who asks every minute is told, too."""
    by_hand(everybody, RECOUNTS)
    recounting = ("total", "consumer0")
    for hours, status in ((0, "agreed"), (0, "agreed"), (5, "agreed"), (5, "wrong"), (7, "wrong")):
        by_hand(everybody, HOURS_LATER.format(hours))
        assert night(everybody, recounting) == status
    assert last_run(everybody).kinds == {"reader_recounts", "reader_behind"}
    assert "still recounts, as it did at run" in behind(everybody)
    Books(everybody).caught_up()
    assert night(everybody) == "agreed"


def test_one_that_has_come_since_the_freeze_is_not_missed(everybody: World) -> None:
    """Ratings are compared later than that, and it may have been asked for a recount by then."""
    assert night(everybody, ("ratings", "late")) == "agreed"


def test_another_recount_hours_later_is_another(everybody: World) -> None:
    for _ in range(2):
        by_hand(everybody, RECOUNTS)
        assert night(everybody, ("total", "consumer0")) == "agreed"
        assert last_run(everybody).kinds == {"reader_recounts"}
        Books(everybody).caught_up()
        by_hand(everybody, HOURS_LATER.format(7))


def test_a_reader_may_leave_after_a_run_whose_clock_was_ahead(everybody: World) -> None:
    by_hand(everybody, "UPDATE runs SET (started_at, ended_at) = ('2100-01-01', '2100-01-01')")
    everybody.connection.execute(REMOVE, ["consumer0"])
    assert nights(everybody, 2) == ["agreed"] * 2
