"""Records that a consumer holds out: the run names them, and what it says of the rest is exact.

What it holds out hides nothing: neither a millimetre beyond that, nor a record that is counted all
the same; and nobody is a witness of what he has not counted.
"""

from decimal import Decimal

from analytics import approve
from analytics.result import RatingsVerdict
from consumers.ratings.stars import Stars
from tests.support.attacks import (
    TOTALS,
    all_have_counted,
    by_hand,
    counted,
    settled,
    standing,
    totals_now,
)
from tests.support.books import MILLIMETRE, Books, exact
from tests.support.completed_runs import last_run
from tests.support.entries import RATE
from tests.support.held_out import hold_out, lack, note
from tests.support.world import drain
from unified_log.readers.reader import Reader

RIDE = 100_004


def held_out(books: Books, name: str = "consumer0") -> int:
    query = "SELECT count(*) FROM held_out_records WHERE name = %s"
    return int(books.world.value(query, name))


def test_what_is_held_out_is_named_and_the_rest_is_exact(books: Books) -> None:
    """By both totals or by one, in an old block or the newest, in whatever the run reads.

    A retry that is pending changes nothing.
    """
    settled(books)
    [newest] = books.world.send("7.5")
    all_have_counted(books)
    hold_out(books.world, "consumer0", RIDE, newest)
    hold_out(books.world, "consumer1", RIDE)
    length = exact(books.world, RIDE) - exact(books.world, RIDE - 1)
    before = totals_now(books)
    for retry, check, full in ((False, True, False), (False, False, False), (True, False, True)):
        by_hand(books.world, f"UPDATE held_out_records SET retry = {retry}")
        result = books.run(check=check, full=full)
        assert result.agrees
        one, other = result.consumers
        assert (one.held_out_rides, one.held_out_distance) == (2, length + Decimal("7.5"))
        assert (other.held_out_rides, other.held_out_distance) == (1, length)
        assert one.drift == other.drift == 0
        assert one.first_held_out == RIDE
    assert totals_now(books) == before
    assert (held_out(books), held_out(books, "consumer1")) == (2, 1)
    for name in TOTALS:
        assert books.caught_up(name) == books.world.truth
    assert books.run().agrees
    # Who holds a ride out confirms no reset that takes it in.
    [new] = books.world.send("7.5")
    all_have_counted(books)
    hold_out(books.world, "consumer1", new)
    books.tamper("consumer0", MILLIMETRE)
    result = books.run()
    assert (result.status, result.resets) == ("held", [])
    assert last_run(books.world).held == {"total_held"}
    books.follow()
    assert books.run().resets == ["consumer0"]


ABOUT_NOTHING = [
    (10**12, "ride.create"),  # past its position
    (RIDE, "rating.create"),  # it does not handle that
    (50_000, "ride.create"),  # there is no such ride
    (200_011, "ride.create"),  # this one it will still meet
]


def test_what_is_held_out_hides_nothing_and_a_reset_takes_it_back(books: Books) -> None:
    """No row that is about nothing makes a total wrong, and none excuses a wrong one.

    First both are a millimetre beyond what they hold out. Then one has counted the record all the
    same; the other lacks it, but for another reason.
    """
    counted(books)
    one, other = TOTALS
    assert books.world.send("7.5") == [200_011]
    all_have_counted(books, other)
    for position, type_ in ABOUT_NOTHING:
        note(books.world, one, position, type_=type_)
    before = totals_now(books)
    result = books.run()
    assert (result.agrees, result.consumers[0].held_out_rides) == (True, 0)
    assert totals_now(books) == before
    by_hand(books.world, "DELETE FROM held_out_records")
    all_have_counted(books)
    drifts = dict(zip(TOTALS, (MILLIMETRE, -MILLIMETRE), strict=True))
    for name, drift in drifts.items():
        hold_out(books.world, name, RIDE)
        books.tamper(name, drift)
    assert are_reset(books) == drifts
    note(books.world, one, RIDE)
    note(books.world, other, RIDE, type_="rating.create")
    lack(books.world, other, RIDE)
    are_reset(books)
    assert books.run().agrees


def are_reset(books: Books) -> dict[str, Decimal]:
    """Fails unless both totals are, and are right then; returns by how much they were wrong."""
    result = books.run()
    assert (result.status, result.resets) == ("wrong", [*TOTALS])
    for name in TOTALS:
        assert books.caught_up(name) == books.world.truth
        assert held_out(books, name) == 0
    return {each.name: each.drift for each in result.consumers}


def test_a_ride_that_only_its_holder_would_miss_is_held_if_it_is_changed(books: Books) -> None:
    """Neither total has counted it: so they are no witnesses, and the ledger decides."""
    settled(books)
    for name in TOTALS:
        hold_out(books.world, name, RIDE)
    before = standing(books)
    for change, full in (("UPDATE rides SET distance = 7", False), ("DELETE FROM rides", True)):
        row = books.world.connection.execute("SELECT * FROM rides WHERE id = %s", [RIDE]).fetchone()
        by_hand(books.world, f"{change} WHERE id = {RIDE}")
        assert books.run(full=full).status == "held"
        assert last_run(books.world).held == {"rides_changed"}
        assert standing(books) == before
        by_hand(books.world, f"DELETE FROM rides WHERE id = {RIDE}")
        books.world.connection.execute(
            "INSERT INTO rides (id, created_at, distance) VALUES (%s, %s, %s)", row
        )
        assert books.run().agrees
    # Another's row is gone for good, once a person has decided. Who has counted it is reset.
    hold_out(books.world, "consumer0", RIDE + 1)
    by_hand(books.world, f"DELETE FROM rides WHERE id = {RIDE + 1}")
    held = books.run()
    assert held.status == "held"
    assert held.run
    approve.approve(books.world.connection, held.run, "it was a test")
    acted = books.run()
    assert acted.approval == held.run
    assert acted.resets == ["consumer1"]
    assert acted.consumers[0].held_out_rides == 1


def test_a_total_that_recounts_is_said_to_and_is_not_wrong(books: Books) -> None:
    settled(books)
    books.tamper("consumer0", MILLIMETRE)
    by_hand(books.world, "UPDATE checkpoints SET recount = true WHERE name = 'consumer0'")
    for check in (True, False):
        result = books.run(check=check)
        assert (result.status, result.resets) == ("agreed", [])
        assert set(result.verdicts.values()) == {"agreed"}
    run = last_run(books.world)
    assert (run.kinds, run.held) == ({"reader_recounts"}, set())
    assert "total consumer0 recounts" in run.about("reader_recounts")
    # The total of one that has begun fits its position, or is wrong.
    stood = books.world.standing()[0]
    by_hand(books.world, "DELETE FROM checkpoints WHERE name = 'consumer0'")
    books.claim("consumer0", 5, drift=MILLIMETRE)
    by_hand(books.world, f"UPDATE checkpoints SET furthest = {stood} WHERE name = 'consumer0'")
    result = books.run()
    assert (result.status, result.resets) == ("wrong", ["consumer0"])
    assert books.caught_up() == books.world.truth
    assert books.run().agrees


def test_ratings_that_are_held_out_are_named_and_hide_nothing(books: Books) -> None:
    world = books.world
    consumers = [Reader(world.log(), Stars(world.connect(), name)) for name in ("one", "other")]
    for ride, stars in zip(world.send(1, 2, 3), (5, 3, 1), strict=True):
        world.connection.execute(RATE, [ride, stars])
    drain(world.streamer())
    for consumer in consumers:
        while consumer.run_once().records:
            pass
    middle = world.value("SELECT id FROM ratings WHERE stars = 3")
    lack(world, "one", middle, "ratings")
    note(world, "one", middle, "ratings", "rating.create")

    def judged(*wrong: str) -> RatingsVerdict:
        verdict = books.run().ratings
        assert verdict
        assert [each.name for each in verdict.wrong] == [*wrong]
        by_hand(world, "UPDATE checkpoints SET recount = false")
        return verdict

    for _ in range(2):
        one, other = judged().consumers
        assert (one.held_out_ratings, one.held_out_stars) == (1, 3)
        assert (other.held_out_ratings, other.exact_stars) == (0, 9)
    lack(world, "other", middle, "ratings")
    judged("other")
    note(world, "other", middle, "ratings", "ride.create")  # not a type of its
    judged("other")
    by_hand(world, "UPDATE held_out_records SET type = 'rating.create'")
    judged()
    lack(world, "other", world.value("SELECT id FROM ratings WHERE stars = 1"), "ratings")
    by_hand(world, "UPDATE checkpoints SET recount = true WHERE name = 'other'")
    judged()
    assert {each["kind"] for each in last_run(world).findings if "other" in each["about"]} == {
        "reader_recounts"
    }


def test_a_rating_that_was_changed_has_no_witness_in_who_holds_it_out(books: Books) -> None:
    world = books.world
    consumer = Reader(world.log(), Stars(world.connect(), "one"))
    for ride, stars in zip(world.send(1, 2), (5, 3), strict=True):
        world.connection.execute(RATE, [ride, stars])
    drain(world.streamer())
    while consumer.run_once().records:
        pass
    assert books.run().ratings
    rating = world.value("SELECT id FROM ratings WHERE stars = 3")
    lack(world, "one", rating, "ratings")
    note(world, "one", rating, "ratings", "rating.create")
    by_hand(world, f"UPDATE ratings SET stars = 4 WHERE id = {rating}")
    found = books.run()
    assert found.ratings
    assert len(found.ratings.changed) == 1
    assert "ratings_changed" in last_run(world).held
