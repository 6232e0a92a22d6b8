"""What the sweep finds, and up to which ride the inbox and the receipts are complete."""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from analytics.emit import SET_BACK
from consumers.receipts.statements import COMPLETE, SWEEP
from consumers.receipts.upkeep import PAGE, Upkeep
from tests.support.desk import DELIVERED, REFUSED, Desk, Desks, counted, state
from tests.support.world import World, drain, eventually, take, transaction
from unified_log.errors import Unavailable

LATE = "INSERT INTO rides (id, distance) OVERRIDING SYSTEM VALUE VALUES (cell_start() + 3, 5)"


@pytest.fixture
def unread(world: World, desks: Desks) -> Desk:
    """One with an empty inbox, before which five rides were sent. The third was rolled back."""
    world.take(1, 2)
    with transaction(world) as other:
        take(other, 9)
    world.take(3, 4)
    drain(world.streamer())
    return desks()


class Swept(NamedTuple):
    """What a sweep returns."""

    last_sent: int
    goes_on: bool  # there is another page
    rides: list[int]  # that the log has not brought
    is_behind: bool  # `complete_to` may be moved, and nobody holds it


def sweep(desk: Desk, upto: int, page: int = PAGE) -> Swept:
    [found] = desk.do(SWEEP, upto=desk.start + upto, page=page)
    swept = Swept(*found)
    rides = [ride_id - desk.start for ride_id in swept.rides]
    return swept._replace(last_sent=swept.last_sent - desk.start, rides=rides)


def complete(desk: Desk, page: int = PAGE) -> bool:
    """Whether there may be more."""
    return desk.do(COMPLETE, page=page) == [(True,)]


@pytest.mark.proves("swept")
def test_a_sweep_puts_into_the_inbox_what_the_log_has_not_brought(
    unread: Desk, world: World
) -> None:
    unread.bring(2)
    expected = Swept(last_sent=5, goes_on=False, rides=[1, 4], is_behind=True)
    assert sweep(unread, 4) == expected
    assert state(world) == (4, 0)
    assert sweep(unread, 4).rides == []
    assert sweep(unread, 5).rides == [5]
    assert counted(world) == (0, 0, 3)


def test_a_sweep_looks_no_further_than_the_streamer_has_committed(
    unread: Desk, world: World
) -> None:
    """As after a restore: what was seen before it says nothing."""
    world.take(5)
    assert sweep(unread, 6).rides == []
    assert state(world) == (0, 0)


def test_a_sweep_goes_on_page_by_page_and_never_back(unread: Desk, world: World) -> None:
    swept = sweep(unread, 5, page=3)
    assert (swept.rides, swept.goes_on, state(world)) == ([1, 2, 4], True, (4, 0))
    swept = sweep(unread, 5, page=3)
    assert (swept.rides, swept.goes_on, state(world)) == ([5], False, (5, 0))
    sweep(unread, 2)
    assert state(world) == (5, 0)


def test_without_the_streamers_state_nobody_sweeps(unread: Desk, world: World) -> None:
    world.connection.execute("DELETE FROM streamer_state")
    with pytest.raises(Unavailable):
        unread.run(Upkeep(0).run(unread.queue))


def test_a_ride_that_is_repaired_under_the_sweeps_feet_is_swept_the_next_time(
    unread: Desk, world: World, beside: ThreadPoolExecutor
) -> None:
    with transaction(world) as other:
        other.execute("INSERT INTO receipts (ride_id) VALUES (cell_start() + 5)")
        swept = beside.submit(sweep, unread, 5)
        eventually(lambda: world.waiting == 1)
        world.connection.execute(LATE)
        world.connection.execute(SET_BACK, [world.start + 3])
        other.rollback()
    assert swept.result().rides == [1, 2, 4, 5]
    assert state(world) == (0, 0)
    assert sweep(unread, 5).rides == [3]
    assert state(world) == (5, 0)


def test_of_two_who_sweep_at_once_the_second_undoes_nothing(
    unread: Desk, desks: Desks, world: World, beside: ThreadPoolExecutor
) -> None:
    other = desks("two")
    with transaction(world) as third:
        third.execute("INSERT INTO receipts (ride_id) VALUES (cell_start() + 5)")
        swept = beside.submit(sweep, unread, 5)
        eventually(lambda: world.waiting == 1)
        also = beside.submit(sweep, other, 2)
        eventually(lambda: world.waiting == 2)
        third.rollback()
    assert (swept.result().rides, also.result().rides) == ([1, 2, 4, 5], [])
    assert state(world) == (5, 0)
    assert counted(world) == (0, 0, 4)


def test_a_sweep_waits_for_nobody_who_holds_the_row_of_the_watermarks(
    unread: Desk, world: World
) -> None:
    """It leaves them where they are."""
    with transaction(world) as person:
        person.execute("SELECT FROM receipts_state FOR UPDATE")
        swept = sweep(unread, 5)
        again = sweep(unread, 5, page=2)
    assert (swept.rides, swept.is_behind, state(world)) == ([1, 2, 4, 5], False, (0, 0))
    assert not again.goes_on  # to the next page, without a pause: it would be the same one


def test_complete_is_what_has_an_outcome_up_to_the_first_that_has_none(
    unread: Desk, world: World
) -> None:
    sweep(unread, 4)
    complete(unread)
    assert state(world) == (4, 0)
    attempts = {unread.ride(attempt): attempt for attempt in unread.take()}
    unread.save((attempts[1], DELIVERED), (attempts[4], DELIVERED))
    complete(unread)
    assert state(world) == (4, 1)
    unread.save((attempts[2], REFUSED))
    complete(unread)
    assert state(world) == (4, 4)


def test_complete_moves_page_by_page(unread: Desk, world: World) -> None:
    sweep(unread, 5)
    unread.save(*((attempt, DELIVERED) for attempt in unread.take()))
    assert (complete(unread, page=2), state(world)) == (True, (5, 2))
    assert (complete(unread, page=2), state(world)) == (True, (5, 5))
    assert (complete(unread, page=2), state(world)) == (False, (5, 5))


def test_complete_is_nothing_that_the_inbox_may_lack(unread: Desk, world: World) -> None:
    """A worker that hangs may have read the entry before."""
    unread.bring(5)
    unread.save((unread.take()[0], DELIVERED))
    sweep(unread, 1)
    unread.save((unread.take()[0], DELIVERED))
    complete(unread)
    assert state(world) == (1, 1)


def test_a_repair_is_not_undone_by_who_called_all_complete_meanwhile(
    unread: Desk, world: World, beside: ThreadPoolExecutor
) -> None:
    sweep(unread, 5)
    unread.save(*((attempt, DELIVERED) for attempt in unread.take()))
    with transaction(world) as repair:
        repair.execute(LATE)
        repair.execute(SET_BACK, [world.start + 3])
        # Another sweep has been there since.
        repair.execute("UPDATE receipts_state SET inbox_to = cell_start() + 5")
        completed = beside.submit(complete, unread)
        eventually(lambda: world.waiting == 1)
        repair.commit()
    assert not completed.result()
    assert state(world) == (5, 0)
