"""Rides come into the inbox; whose turn it is, and what a lease holds."""

import time
from concurrent.futures import ThreadPoolExecutor

from consumers.receipts.statements import LONGEST_WAIT
from consumers.receipts.verdict import LONGEST_RETRY_AFTER
from tests.support.desk import (
    DELIVERED,
    LATER,
    LEASE,
    MOST,
    REFUSED,
    Desk,
    Desks,
    row,
    rows,
)
from tests.support.world import World, drain, eventually, transaction

# The oldest last.
ONE_AFTER_ANOTHER = (
    "UPDATE receipts SET due_at = now() - make_interval(secs => ride_id - cell_start())"
)


def test_a_ride_comes_into_the_inbox_once_and_only_if_there_is_one(
    desk: Desk, desks: Desks, world: World
) -> None:
    world.take(8)
    assert desk.bring(4, 99, 1) == 1
    assert desks("two").bring(4, 99) == 0
    assert rows(world) == [1, 2, 3, 4]


def test_two_who_bring_the_same_rides_wait_for_each_other_in_the_order_of_the_rides(
    desk: Desk, world: World, beside: ThreadPoolExecutor
) -> None:
    world.take(8, 9)
    with transaction(world) as other:
        other.execute("INSERT INTO receipts (ride_id) VALUES (cell_start() + 4)")
        brought = beside.submit(desk.bring, 5, 4)
        eventually(lambda: world.waiting == 1)
        other.execute("SET LOCAL lock_timeout = '2s'")
        other.execute("INSERT INTO receipts (ride_id) VALUES (cell_start() + 5)")
        other.commit()
    assert brought.result() == 0


def test_what_the_streamer_has_not_committed_is_not_taken(desk: Desk, world: World) -> None:
    world.take(8, 9)
    desk.bring(4, 5)
    world.connection.execute(
        "UPDATE receipts SET attempts = 2, unfinished = 2 WHERE ride_id = cell_start() + 5"
    )
    assert sorted(desk.takes(quarantined=True)) == [1, 2, 3]
    drain(world.streamer())
    assert sorted(desk.takes(quarantined=True)) == [4, 5]


def test_what_has_been_due_for_the_longest_is_taken_first_and_as_much_as_there_is_room_for(
    desk: Desk, world: World
) -> None:
    world.connection.execute(ONE_AFTER_ANOTHER)
    assert desk.takes(room=2) == [3, 2]
    assert desk.takes(room=2) == [1]


def test_an_attempt_is_written_down_with_a_lease_before_it_is_made(
    desk: Desk, desks: Desks, world: World
) -> None:
    [first, *_] = desk.take()
    assert row(world, "attempts", "unfinished", "outcome", "lease") == (1, 1, None, first.lease)
    begun = row(world, "first_at")
    other = desks("two")
    assert desk.take() == other.take() == []
    seconds = "SELECT extract(epoch FROM max(due_at) - now()) FROM receipts"
    assert LEASE - 10 < world.value(seconds) <= LEASE
    world.connection.execute(LATER)
    [again, *_] = other.take()
    assert (first.number, again.number) == (1, 2)
    assert again.lease != first.lease
    assert row(world, "attempts", "unfinished", "first_at") == (2, 2, *(begun or ()))


def test_the_deadline_counts_from_before_the_statement(
    desk: Desk, world: World, beside: ThreadPoolExecutor
) -> None:
    """However long that takes, nothing is sent once others may take it, too."""
    with transaction(world) as other:
        other.execute("LOCK TABLE receipts")
        taken = beside.submit(desk.take)
        eventually(lambda: world.waiting == 1)
        issued = time.monotonic()
        other.commit()
    assert {attempt.deadline <= issued + LEASE for attempt in taken.result()} == {True}


def test_what_another_is_about_to_take_is_left_to_him(desk: Desk, world: World) -> None:
    with transaction(world) as other:
        other.execute("SELECT FROM receipts WHERE ride_id = cell_start() + 2 FOR UPDATE")
        assert sorted(desk.takes()) == [1, 3]


def test_what_has_an_outcome_is_taken_no_more(desk: Desk, world: World) -> None:
    [one, two, _] = desk.take()
    desk.save((one, DELIVERED), (two, REFUSED))
    world.connection.execute(LATER)
    assert desk.takes() == [3]


def test_there_are_so_many_attempts_and_no_more(desk: Desk, world: World) -> None:
    """Those that are excused don't count."""
    world.connection.execute(
        f"UPDATE receipts SET attempts = {MOST}, excused = ride_id - cell_start() - 1"
    )
    taken = {desk.ride(of): (of.number, of.is_exhausted) for of in desk.take()}
    assert taken == {1: (MOST, True), 2: (MOST, False), 3: (MOST - 1, False)}


def test_what_has_lost_two_workers_is_taken_beside_the_others_one_at_a_time(
    desk: Desk, desks: Desks, world: World
) -> None:
    world.connection.execute(
        "UPDATE receipts SET attempts = 3, unfinished = 2 + (ride_id = cell_start() + 2)::int"
        " WHERE ride_id < cell_start() + 3"
    )
    patient = desks("two", most=9)
    assert patient.takes(room=1) == [3]
    assert [patient.takes(quarantined=True) for _ in range(3)] == [[1], [2], []]
    assert row(world, "attempts", "unfinished") == (4, 3)
    world.connection.execute(LATER)
    [only] = patient.take(1, quarantined=True)
    assert (patient.ride(only), only.is_quarantined) == (1, True)


def test_what_is_quarantined_waits_like_the_others(desk: Desk, desks: Desks, world: World) -> None:
    world.connection.execute("UPDATE receipts SET attempts = 3, unfinished = 3")
    patient = desks("two", most=4)
    wait = (
        "UPDATE receipts SET due_at = now() + make_interval(secs => %s)"
        " WHERE ride_id < cell_start() + 3"
    )
    world.connection.execute(wait, [LONGEST_RETRY_AFTER])
    assert [patient.takes(quarantined=True) for _ in range(2)] == [[3], []]
    # A clock was ahead.
    world.connection.execute(wait, [LONGEST_WAIT + 60])
    assert [patient.takes(quarantined=True) for _ in range(3)] == [[1], [2], []]


def test_a_look_begins_where_the_last_one_ended_until_all_is_looked_at(
    desk: Desk, world: World
) -> None:
    world.connection.execute(ONE_AFTER_ANOTHER)
    assert desk.takes(room=2) == [3, 2]
    world.connection.execute(
        "UPDATE receipts SET due_at = now() - interval '1 h' WHERE ride_id = cell_start() + 3"
    )
    assert [desk.ride(of) for of in desk.run(desk.queue.take(100))] == [1]
    assert desk.takes() == [3]


def test_a_ride_of_a_time_that_no_receipt_can_state_gets_the_nearest(
    desk: Desk, world: World
) -> None:
    for ride, moment in ((1, "infinity"), (3, "4712-01-01 BC")):
        world.connection.execute(
            "UPDATE rides SET created_at = %s WHERE id = cell_start() + %s", [moment, ride]
        )
    attempts = desk.take()
    years = {desk.ride(of): of.receipt.created_at.year for of in attempts}
    assert (years[1], years[3]) == (9998, 2)
    assert sorted(desk.save(*((of, DELIVERED) for of in attempts)).delivered) == [1, 2, 3]
