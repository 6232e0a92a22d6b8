"""A warehouse that has rides which its database has lost is rebuilt; it takes in repaired ones."""

from decimal import Decimal
from pathlib import Path

import pytest

from analytics.steps import RunStep
from tests.support.attacks import by_hand
from tests.support.books import MILLIMETRE, SENT, Books, exact, tally
from tests.support.completed_runs import REASON, last_run
from tests.support.jobs import approve
from tests.support.world import World
from unified_log.errors import Unavailable
from unified_log.faults import listening
from unified_log.repair import repair
from unified_log.streamer.leaders_term import begin_term

LEAD = """
    INSERT INTO terms (after, term) SELECT last_sent_id, %s FROM streamer_state
    ON CONFLICT (after) DO UPDATE SET term = excluded.term, replaced = terms.replaced || terms.term
"""


def lead(books: Books, term: str) -> None:
    """A streamer takes the lead."""
    books.world.connection.execute(LEAD, [term * 16])


def content(books: Books) -> dict[Path, bytes]:
    files = (books.on_disk / "rides").rglob("*")
    return {path: path.read_bytes() for path in files if path.is_file()}


RESTORE = [
    "DELETE FROM rides WHERE id > 3",
    "UPDATE streamer_state SET last_sent_id = 3",
    "DELETE FROM terms WHERE after > 3",
    "SELECT setval('log_position', 3)",
    "DELETE FROM runs WHERE id > 1",
]


def lose_three(books: Books) -> None:
    """Restore the database to when it had three rides, and no run had seen the others."""
    lead(books, "a")
    books.add_many(3)
    books.run()
    books.add_many(3)
    books.run()
    by_hand(books.world, *RESTORE)
    lead(books, "b")


def test_rides_that_a_restored_database_has_lost_are_forgotten_although_others_have_their_numbers(
    books: Books,
) -> None:
    lose_three(books)
    by_hand(books.world, "INSERT INTO rides (distance) VALUES (40), (50), (60), (70)", SENT)
    books.claim("consumer0", 6)
    before = content(books)

    checked = books.run(check=True)
    assert "no longer matches" in checked.notes[0]
    assert "would be rebuilt" in checked.notes[0]
    assert checked.agrees
    assert content(books) == before

    result = books.run()
    assert "it is rebuilt from the first ride" in result.notes[0]
    assert result.agrees
    assert result.total == tally(7, exact(books.world, 7))
    assert books.in_warehouse() == books.in_postgres()
    assert books.run().notes == []


OVERTAKEN = """
    WITH ride AS (INSERT INTO rides (id, distance) OVERRIDING SYSTEM VALUE VALUES ({0}, 30))
    INSERT INTO staged_log_records VALUES ({0}, 'ride.create', '{{}}')
"""


def reconciled_without_the_third(books: Books) -> None:
    books.world.send(1, 2)
    books.skip_ids(1)  # a number for a ride that comes too late
    books.world.send(4)
    assert books.run().agrees
    books.world.consumer()


def repair_the_third(world: World) -> None:
    world.connection.execute(OVERTAKEN.format(3))
    assert repair(world.connect())[0] == [3]


def test_a_warehouse_takes_in_the_rides_of_a_repair(books: Books) -> None:
    """Else its totals, which lack them, would undo the repair."""
    reconciled_without_the_third(books)
    repair_the_third(books.world)
    assert books.caught_up() == (4, Decimal(37))
    result = books.run()
    assert result.notes == [
        "Stranded rides were counted since the last run: all of it is read again."
    ]
    assert result.agrees
    assert books.caught_up() == (4, Decimal(37))
    assert books.in_warehouse() == books.in_postgres()


def test_a_repair_after_a_restore_makes_no_witness_of_a_warehouse_that_is_past_it(
    books: Books,
) -> None:
    lose_three(books)
    by_hand(books.world, "INSERT INTO rides (distance) VALUES (40), (50), (60)", SENT)
    books.skip_ids(1)
    by_hand(books.world, "INSERT INTO rides (distance) VALUES (70)", SENT, OVERTAKEN.format(7))
    assert repair(books.world.connect())[0] == [7]
    books.claim("consumer0", 8)
    result = books.run()
    assert "it is rebuilt from the first ride" in result.notes[0]
    assert result.agrees
    assert books.in_warehouse() == books.in_postgres()


@pytest.mark.parametrize("leaders", [0, 101])
def test_a_ride_that_was_altered_before_a_repair_is_held_as_ever(
    books: Books, leaders: int
) -> None:
    """The repair has had everybody recount it; the warehouse and its ledger are witnesses yet."""
    reconciled_without_the_third(books)
    before = books.in_warehouse()
    for _ in range(leaders):
        begin_term(books.world.connection)
    by_hand(books.world, "UPDATE rides SET distance = 11 WHERE id = 1")
    repair_the_third(books.world)
    books.caught_up()
    for chance in (1, 2):
        assert books.run(chance=chance).status == "held"
        assert "records_missing" not in last_run(books.world).kinds
        assert books.in_warehouse() == before
    assert approve(books.world, last_run(books.world).id, *REASON).status == 0
    books.run()
    assert books.run().agrees
    assert books.in_warehouse() == books.in_postgres()


@pytest.mark.parametrize("when", [RunStep.AFTER_EXTRACT, RunStep.BEFORE_PUBLISH], ids=str)
def test_rides_that_are_repaired_meanwhile_are_no_mismatch_and_the_job_is_run_again(
    books: Books, when: RunStep
) -> None:
    """Nor does a reset that lacks them come after the one that the repair has asked for."""
    reconciled_without_the_third(books)
    books.tamper("consumer0", MILLIMETRE)

    def repair_at(moment: object) -> None:
        if moment == when:
            repair_the_third(books.world)

    with pytest.raises(Unavailable, match="counted meanwhile"), listening(repair_at):
        books.run()
    assert books.caught_up() == (4, Decimal(37))
    assert books.run().agrees
