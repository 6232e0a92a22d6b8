"""What is given up, what a person decides about it, and what a wrong clock put off."""

from concurrent.futures import ThreadPoolExecutor

from consumers.receipts.dead import change
from consumers.receipts.queue import Outcomes
from consumers.receipts.statements import LONGEST_WAIT, MAKE_DUE
from consumers.receipts.verdict import LONGEST_RETRY_AFTER
from tests.support.desk import (
    AWAY,
    DELIVERED,
    FAILED,
    LATER,
    MOST,
    REFUSED,
    STOPPED,
    Desk,
    Desks,
    counted,
    row,
    rows,
)
from tests.support.world import World, eventually, transaction


def replay(world: World, ride: int) -> None:
    assert change(world.connection, "replay", [world.start + ride]) == [world.start + ride]


def test_what_has_had_all_its_attempts_is_dead_once_the_last_lease_is_over(
    desk: Desk, world: World
) -> None:
    """Or when it was put off for longer than any wait of ours: a clock was ahead.

    To find that out is no attempt.
    """
    world.connection.execute(
        "UPDATE receipts SET attempts = 3, unfinished = ride_id - cell_start(),"
        " due_at = now() + interval '1 m'"
    )
    assert desk.gives_up() == {}
    world.connection.execute(LATER + " WHERE ride_id = cell_start() + 1")
    put_off = "UPDATE receipts SET due_at = now() + interval '1 h' WHERE ride_id = cell_start() + 3"
    world.connection.execute(put_off)
    told = "3 attempts, the last {} without a known end"
    assert desk.gives_up() == {1: told.format(1), 3: told.format(3)}
    assert row(world, "outcome", "reason", "lease", ride=3) == ("dead", told.format(3), None)
    assert row(world, "attempts", "excused", "unfinished") == (3, 0, 0)
    assert desk.gives_up() == {}
    assert counted(world) == (0, 2, 0)


def test_where_fewer_attempts_are_allowed_than_before_the_last_failure_is_told(
    desk: Desk, world: World
) -> None:
    why = "status 503: overloaded"
    world.connection.execute(
        "UPDATE receipts SET attempts = 3, reason = %s WHERE ride_id = cell_start() + 1", [why]
    )
    assert desk.gives_up()[1] == why


def test_who_dies_while_giving_up_leaves_it_to_others(
    desk: Desk, desks: Desks, world: World
) -> None:
    """And no attempt more."""
    world.connection.execute("UPDATE receipts SET attempts = 3, unfinished = 3")
    [taken] = desk.take(quarantined=True)
    other = desks("two")
    assert sorted(other.gives_up()) == [2, 3]
    world.connection.execute(LATER)
    assert other.gives_up() == {1: "3 attempts, the last 3 without a known end"}
    assert desk.save((taken, REFUSED)) == Outcomes()


def test_a_row_without_a_ride_is_gone(desk: Desk, world: World) -> None:
    world.connection.execute("DELETE FROM rides WHERE id = cell_start() + 2")
    assert sorted(desk.takes()) == rows(world) == [1, 3]


def test_what_a_wrong_clock_put_off_is_made_due_and_nothing_else(desk: Desk, world: World) -> None:
    wait = (
        "UPDATE receipts SET due_at = now() + make_interval(secs => %s)"
        " WHERE ride_id = cell_start() + %s"
    )
    for ride, seconds in enumerate((LONGEST_WAIT + 60, LONGEST_WAIT + 60, LONGEST_RETRY_AFTER), 1):
        world.connection.execute(wait, [seconds, ride])
    with transaction(world) as other:  # for whom nobody waits
        other.execute("SELECT FROM receipts WHERE ride_id = cell_start() + 2 FOR UPDATE")
        desk.do(MAKE_DUE)
    assert desk.takes() == [1]


def test_what_came_before_a_replay_may_only_say_that_it_was_delivered(
    desk: Desk, world: World
) -> None:
    late = desk.first()
    desk.save((late, REFUSED))
    replay(world, 1)
    for verdict in (REFUSED, FAILED, AWAY, STOPPED):
        assert desk.save((late, verdict)) == Outcomes()
    assert row(world, "outcome", "attempts", "excused") == ("dead", 1, 1)
    assert world.value("SELECT count(*) FROM receipts WHERE replay_at IS NOT NULL") == 1
    assert desk.save((late, DELIVERED)).delivered == [1]
    assert row(world, "outcome", "replay_at") == ("delivered", None)


def test_a_replay_has_as_many_attempts_as_at_first_and_is_dead_until_it_is_decided(
    desk: Desk, world: World
) -> None:
    """It counts once more when that is decided, and not for each attempt in between."""
    desk.save((desk.first(), REFUSED))
    replay(world, 1)
    for number in range(1, MOST):
        attempt = desk.again()
        assert attempt.number == number
        assert desk.save((attempt, FAILED)).again == [1]
        assert row(world, "outcome") == ("dead",)
        assert desk.take() == []  # before it is due
        assert counted(world) == (0, 1, 0)
    assert desk.save((desk.again(), FAILED)).dead == {1: "503"}
    assert row(world, "attempts", "replay_at") == (1 + MOST, None)
    assert counted(world) == (0, 2, 0)


def test_a_replay_takes_up_what_is_quarantined_as_if_it_were_new(desk: Desk, world: World) -> None:
    world.connection.execute("UPDATE receipts SET attempts = 3, unfinished = 3")
    desk.gives_up()
    replay(world, 1)
    assert desk.takes() == [1]
    # And is given up as any other.
    world.connection.execute(
        "UPDATE receipts SET attempts = 6, unfinished = 3 WHERE ride_id = cell_start() + 1"
    )
    world.connection.execute(LATER)
    assert [*desk.gives_up()] == [1]
    assert row(world, "outcome", "replay_at") == ("dead", None)


def test_whoever_replays_waits_for_others_in_the_order_of_the_rides(
    desk: Desk, world: World, beside: ThreadPoolExecutor
) -> None:
    desk.save(*((attempt, REFUSED) for attempt in reversed(desk.take())))
    world.connection.execute(
        "UPDATE receipts SET reason = 'moved' WHERE ride_id = cell_start() + 1"
    )
    with transaction(world) as other:
        other.execute("SELECT FROM receipts WHERE ride_id = cell_start() + 1 FOR UPDATE")
        people = [world.connect(), world.connect()]
        replays = [beside.submit(change, who, "replay", [], every=True) for who in people]
        eventually(lambda: world.waiting == 2)
        other.execute("SELECT FROM receipts WHERE ride_id > cell_start() + 1 FOR UPDATE NOWAIT")
        other.commit()
    # The second finds nothing to do.
    assert sorted(len(each.result()) for each in replays) == [0, 3]
