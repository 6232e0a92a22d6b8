"""The queue of receipts: whose turn it is, who may say what came of it, and what is complete.

Each rule of `consumers/receipts/statements.py` has a test here that can fail for it.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, TypeVar

import psycopg
import pytest
from psycopg import sql

from consumers.receipts import queue as module
from consumers.receipts.dead import change
from consumers.receipts.queue import Attempt, Ended, Queue, Swept
from consumers.receipts.round import Round
from consumers.receipts.statements import INBOX, LONGEST_WAIT
from consumers.receipts.verdict import LONGEST_RETRY_AFTER, Kind, Verdict
from rocket_rides import database, session_settings
from rocket_rides.errors import Unavailable
from rocket_rides.receipts import SET_BACK
from tests.support.world import World, drain, eventually, take, transaction

T = TypeVar("T")

MOST = 3
LEASE = 60.0  # seconds; nobody waits for it
DELIVERED, REFUSED = Verdict(Kind.DELIVERED, "204"), Verdict(Kind.REFUSED, "410")
FAILED, AWAY = Verdict(Kind.RETRY, "503"), Verdict(Kind.AWAY, "no address")
STOPPED = Verdict(Kind.STOPPED, "stopped")
UNWRITABLE = Verdict(Kind.REFUSED, "\x00")

LATER = "UPDATE receipts SET due_at = now() - interval '1 second'"
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


class Desk:
    """A worker at the queue, on an event loop and a connection of its own."""

    def __init__(self, world: World, name: str, most: int, lease: float) -> None:
        self._runner = asyncio.Runner()
        self._name = name
        session = {**session_settings.NESTED_LOOPS, "lock_timeout": "10s"}
        self.connection = self.run(database.connect_async(world.postgres_url, name, **session))
        self.queue = Queue(self.connection, name, most, lease)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def bring(self, *rides: int) -> int:
        """Put rides into the inbox; returns how many are new to it."""
        values = {"rides": list(rides), "worker": self._name, "unbelieved": 0, "set_aside": 0}

        async def bring() -> int:
            cursor = await self.connection.execute(INBOX, values)
            [count] = await cursor.fetchone() or [0]
            return int(count)

        return self.run(bring())

    def take(self, room: int = 100) -> list[Attempt]:
        """Take what is due, wherever in the queue it is."""
        self.queue.look_at_all()
        return self.run(self.queue.take(room))

    def takes(self, room: int = 100) -> list[int]:
        """The rides that it takes."""
        return [attempt.receipt.ride_id for attempt in self.take(room)]

    def takes_quarantined(self) -> list[int]:
        return [of.receipt.ride_id for of in self.run(self.queue.take_quarantined())]

    def save(self, *ended: tuple[Attempt, Verdict]) -> Round:
        done = Round()
        self.run(self.queue.save([Ended(*end) for end in ended], done))
        return done

    def bury(self) -> dict[int, str]:
        return self.run(self.queue.bury())

    def sweep(self, upto: int) -> Swept:
        return self.run(self.queue.sweep(upto))

    def complete(self) -> bool:
        return self.run(self.queue.complete())

    def make_due(self) -> None:
        self.run(self.queue.make_due())

    def close(self) -> None:
        with self._runner:
            self.run(self.connection.close())


Desks = Callable[..., Desk]


@pytest.fixture
def desks(world: World) -> Iterator[Desks]:
    """Makes desks, and closes them."""
    with ExitStack() as all_of_them:

        def make(name: str = "one", most: int = MOST, lease: float = LEASE) -> Desk:
            desk = Desk(world, name, most, lease)
            all_of_them.callback(desk.close)
            return desk

        yield make


@pytest.fixture
def desk(world: World, desks: Desks) -> Desk:
    """One with three rides in its inbox, which the streamer has sent."""
    world.take(5, 6, 7)
    drain(world.streamer())
    found = desks()
    assert found.bring(1, 2, 3) == 3
    return found


@pytest.fixture
def beside() -> Iterator[ThreadPoolExecutor]:
    """Where a statement runs that has to wait for another."""
    with ThreadPoolExecutor() as threads:
        yield threads


def row(world: World, *columns: str, ride: int = 1) -> tuple[Any, ...] | None:
    query = sql.SQL("SELECT {} FROM receipts WHERE ride_id = %s").format(
        sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    return world.connection.execute(query, [ride]).fetchone()


def rows(world: World) -> list[int]:
    return [ride for (ride,) in world.connection.execute("SELECT ride_id FROM receipts ORDER BY 1")]


def counted(world: World) -> tuple[int, int, int]:
    """What the workers have delivered, buried or been refused, and swept."""
    return database.one_row(
        world.connection.execute(
            "SELECT coalesce(sum(delivered), 0)::int, coalesce(sum(dead), 0)::int,"
            " coalesce(sum(swept), 0)::int FROM receipts_workers"
        )
    )


def state(world: World) -> tuple[int, int]:
    return database.one_row(
        world.connection.execute("SELECT inbox_to, complete_to FROM receipts_state")
    )


def waits(world: World, statement: "Future[Any]") -> bool:
    """Whether it waits for a lock."""
    assert not statement.done()
    return world.value(WAITING) == 1


# ---------------------------------------------------------------------- into the inbox


def test_a_ride_comes_into_the_inbox_once_and_only_if_there_is_one(
    desk: Desk, desks: Desks, world: World
) -> None:
    [fourth] = world.take(8)
    assert desk.bring(fourth, 99, 1) == 1
    assert desks("two").bring(fourth, 99) == 0
    assert rows(world) == [1, 2, 3, fourth]


def test_two_who_bring_the_same_rides_wait_for_each_other_in_the_order_of_the_rides(
    desk: Desk, world: World, beside: ThreadPoolExecutor
) -> None:
    world.take(8, 9)
    with transaction(world) as other:
        other.execute("INSERT INTO receipts (ride_id) VALUES (4)")
        brought = beside.submit(desk.bring, 5, 4)
        eventually(lambda: waits(world, brought))
        other.execute("SET LOCAL lock_timeout = '2s'")
        other.execute("INSERT INTO receipts (ride_id) VALUES (5)")
        other.commit()
    assert brought.result() == 0


# ---------------------------------------------------------------------- whose turn it is


def test_what_the_streamer_has_not_committed_is_not_taken(desk: Desk, world: World) -> None:
    desk.bring(*world.take(8))
    assert sorted(desk.takes()) == [1, 2, 3]
    drain(world.streamer())
    assert desk.takes() == [4]


def test_what_has_been_due_for_the_longest_is_taken_first_and_as_much_as_there_is_room_for(
    desk: Desk, world: World
) -> None:
    world.connection.execute("UPDATE receipts SET due_at = now() - make_interval(secs => ride_id)")
    assert desk.takes(room=2) == [3, 2]
    assert desk.takes(room=2) == [1]


def test_what_is_taken_is_leased_until_its_time_is_over(
    desk: Desk, desks: Desks, world: World
) -> None:
    [first, *_] = desk.take()
    other = desks("two")
    assert desk.take() == other.take() == []
    seconds = "SELECT extract(epoch FROM max(due_at) - now()) FROM receipts"
    assert LEASE - 10 < world.value(seconds) <= LEASE
    world.connection.execute(LATER)
    [again, *_] = other.take()
    assert (again.number, first.number) == (2, 1)
    assert again.lease != first.lease


def test_the_deadline_counts_from_before_the_statement(
    desk: Desk, world: World, beside: ThreadPoolExecutor
) -> None:
    """However long that takes, nothing is sent once others may take it, too."""
    with transaction(world) as other:
        other.execute("LOCK TABLE receipts")
        taken = beside.submit(desk.take)
        eventually(lambda: waits(world, taken))
        issued = time.monotonic()
        other.commit()
    assert {attempt.deadline <= issued + LEASE for attempt in taken.result()} == {True}


def test_an_attempt_is_written_down_before_it_is_made(desk: Desk, world: World) -> None:
    desk.take()
    assert row(world, "attempts", "unfinished", "outcome") == (1, 1, None)
    found = row(world, "first_at")
    world.connection.execute(LATER)
    desk.take()
    assert row(world, "attempts", "unfinished", "first_at") == (2, 2, *(found or ()))


def test_what_another_is_about_to_take_is_left_to_him(desk: Desk, world: World) -> None:
    with transaction(world) as other:
        other.execute("SELECT FROM receipts WHERE ride_id = 2 FOR UPDATE")
        assert sorted(desk.takes()) == [1, 3]


def test_what_has_an_outcome_is_taken_no_more(desk: Desk, world: World) -> None:
    [one, two, _] = desk.take()
    desk.save((one, DELIVERED), (two, REFUSED))
    world.connection.execute(LATER)
    assert desk.takes() == [3]


def test_there_are_so_many_attempts_and_no_more(desk: Desk, world: World) -> None:
    for number in range(1, MOST + 1):
        [attempt] = [of for of in desk.take() if of.receipt.ride_id == 1]
        assert attempt.number == number
        desk.save((attempt, FAILED._replace(reason="not the last")))
        world.connection.execute("UPDATE receipts SET outcome = NULL, decided_at = NULL,"
            " dead_at = NULL, due_at = now() WHERE ride_id = 1")  # fmt: skip
    assert 1 not in desk.takes()


def test_what_has_lost_two_workers_is_taken_beside_the_others_one_at_a_time(
    desk: Desk, world: World
) -> None:
    world.connection.execute(
        "UPDATE receipts SET attempts = 3, unfinished = 2 + (ride_id = 2)::int WHERE ride_id < 3"
    )
    desk = desk_of(desk, most=9)
    assert desk.takes() == [3]
    assert [desk.takes_quarantined() for _ in range(3)] == [[1], [2], []]
    assert row(world, "attempts", "unfinished") == (4, 3)
    assert not desk.queue.has_quarantined


def desk_of(desk: Desk, most: int) -> Desk:
    """The same with another number of attempts."""
    desk.queue = Queue(desk.connection, "one", most, LEASE)
    return desk


def test_what_is_quarantined_has_no_more_attempts_than_others_and_waits_like_them(
    desk: Desk, world: World
) -> None:
    [fourth] = world.take(8)
    desk.bring(fourth)
    world.connection.execute("UPDATE receipts SET attempts = 3, unfinished = 3")
    assert desk.takes_quarantined() == []
    desk = desk_of(desk, most=4)
    wait = "UPDATE receipts SET due_at = now() + make_interval(secs => %s) WHERE ride_id < 3"
    world.connection.execute(wait, [LONGEST_RETRY_AFTER])
    # The fourth is not committed by the streamer.
    assert [desk.takes_quarantined() for _ in range(2)] == [[3], []]
    # A clock was ahead.
    world.connection.execute(wait, [LONGEST_WAIT + 60])
    assert [desk.takes_quarantined() for _ in range(3)] == [[1], [2], []]


def test_a_look_begins_where_the_last_one_ended_until_all_is_looked_at(
    desk: Desk, world: World
) -> None:
    world.connection.execute("UPDATE receipts SET due_at = now() - make_interval(secs => ride_id)")
    assert desk.takes(room=2) == [3, 2]
    world.connection.execute(
        "UPDATE receipts SET due_at = now() - interval '1 h' WHERE ride_id = 3"
    )
    assert [a.receipt.ride_id for a in desk.run(desk.queue.take(100))] == [1]
    assert desk.takes() == [3]


def test_a_ride_that_is_gone_is_not_sent(desk: Desk, world: World) -> None:
    world.connection.execute("DELETE FROM rides WHERE id = 2")
    assert sorted(desk.takes()) == [1, 3]


@pytest.mark.parametrize("moment", ["infinity", "-infinity", "4712-01-01 BC", "10000-01-01"])
def test_a_time_that_no_receipt_can_state_is_told(desk: Desk, world: World, moment: str) -> None:
    world.connection.execute("UPDATE rides SET created_at = %s WHERE id = 1", [moment])
    assert {of.receipt.ride_id: of.has_time for of in desk.take()} == {1: False, 2: True, 3: True}


# ---------------------------------------------------------------------- what came of it


def first(desk: Desk) -> Attempt:
    """An attempt for ride 1 that is under way."""
    desk.run(desk.connection.execute("UPDATE receipts SET due_at = 'infinity' WHERE ride_id > 1"))
    return again(desk)


def again(desk: Desk) -> Attempt:
    """Another one."""
    desk.run(desk.connection.execute(LATER + " WHERE ride_id = 1"))
    [attempt] = desk.take()
    return attempt


def test_a_delivery_wins_over_a_refusal_and_never_the_reverse(desk: Desk, world: World) -> None:
    attempt = first(desk)
    assert desk.save((attempt, REFUSED)).dead == {1: "410"}
    assert row(world, "outcome", "reason") == ("dead", "410")
    assert desk.save((attempt, DELIVERED)).delivered == [1]
    for verdict in (REFUSED, FAILED, AWAY, DELIVERED):
        assert desk.save((attempt, verdict)) == Round()
    assert row(world, "outcome", "reason", "dead_at") == ("delivered", None, None)


def test_an_attempt_that_failed_has_no_outcome_until_it_was_the_last(
    desk: Desk, world: World
) -> None:
    attempt = first(desk)
    for attempts in range(1, MOST):
        assert [*desk.save((attempt, FAILED)).again] == [1]
        assert row(world, "outcome", "attempts", "unfinished", "lease", "reason") == (
            *(None, attempts, 0, None),
            "503",
        )
        attempt = again(desk)
    assert desk.save((attempt, FAILED)).dead == {1: "503"}
    assert row(world, "outcome", "attempts", "unfinished") == ("dead", MOST, 0)


def test_a_refusal_is_the_last_word_at_once(desk: Desk, world: World) -> None:
    assert desk.save((first(desk), REFUSED)).dead == {1: "410"}
    assert row(world, "outcome", "attempts") == ("dead", 1)


@pytest.mark.parametrize("verdict", [AWAY, STOPPED])
def test_an_attempt_that_nobody_took_does_not_count(
    desk: Desk, world: World, verdict: Verdict
) -> None:
    for attempts in range(1, 2 * MOST):
        attempt = first(desk)
        assert attempt.number == 1
        # Its end may be written twice, when the answer to the first writing was lost.
        assert [*desk.save((attempt, verdict)).again] == [1]
        assert desk.save((attempt, verdict)) == Round()
        assert row(world, "outcome", "attempts", "excused", "unfinished") == (
            *(None, attempts, attempts),
            0,
        )


def test_whoever_was_superseded_may_only_say_that_it_was_delivered(
    desk: Desk, world: World
) -> None:
    """By another attempt, whose number may be the same: the lease tells them apart."""
    late = first(desk)
    desk.save((late, AWAY))
    current = again(desk)
    assert current.number == late.number
    for verdict in (REFUSED, FAILED, AWAY, STOPPED):
        assert desk.save((late, verdict)) == Round()
    assert row(world, "outcome", "unfinished", "lease") == (None, 1, current.lease)
    assert desk.save((late, DELIVERED)).delivered == [1]
    assert desk.save((current, REFUSED)) == Round()
    assert row(world, "outcome") == ("delivered",)


def test_a_refusal_that_waited_for_a_delivery_changes_nothing(
    desk: Desk, world: World, beside: ThreadPoolExecutor
) -> None:
    attempt = first(desk)
    with transaction(world) as other:
        other.execute(
            "UPDATE receipts SET outcome = 'delivered', decided_at = now() WHERE ride_id = 1"
        )
        saved = beside.submit(desk.save, (attempt, REFUSED))
        eventually(lambda: waits(world, saved))
        other.commit()
    assert saved.result() == Round()
    assert row(world, "outcome", "reason") == ("delivered", None)


def test_the_outcome_of_another_history_is_not_ours(desk: Desk, world: World) -> None:
    attempts = desk.take()
    world.connection.execute("UPDATE rides SET created_at = created_at - interval '1 day'")
    for verdict in (DELIVERED, REFUSED):
        saved = desk.save(*((attempt, verdict) for attempt in attempts))
        assert saved == Round()
    assert row(world, "outcome", "unfinished") == (None, 1)


def test_what_failed_is_due_after_its_delay(desk: Desk, world: World) -> None:
    [delay] = desk.save((first(desk), FAILED._replace(retry_after=200.0))).again.values()
    assert delay == 200
    assert 190 < world.value("SELECT extract(epoch FROM due_at - now()) FROM receipts"
        " WHERE ride_id = 1") <= 200  # fmt: skip


def test_one_that_postgres_does_not_take_holds_up_no_other(desk: Desk, world: World) -> None:
    [one, two, three] = desk.take()
    saved = desk.save((one, UNWRITABLE), (two, DELIVERED), (three, FAILED))
    assert (saved.delivered, [*saved.again], [*saved.unwritten]) == ([2], [3], [1])
    assert "NUL" in saved.unwritten[1]
    # So the others are not sent again when their leases are over.
    assert row(world, "outcome", ride=2) == ("delivered",)
    assert row(world, "lease", "unfinished", ride=3) == (None, 0)


def test_each_outcome_is_counted_once_and_when_it_is_decided(desk: Desk, world: World) -> None:
    [one, two, three] = desk.take()
    desk.save((one, FAILED), (two, DELIVERED))
    assert counted(world) == (1, 0, 0)
    for _ in range(2):
        desk.save((three, REFUSED))
    assert counted(world) == (1, 1, 0)
    change(world.connection, "replay", [3])
    [anew] = [of for of in desk.take() if of.receipt.ride_id == 3]
    desk.save((anew, FAILED))
    assert counted(world) == (1, 1, 0)


def test_two_who_save_the_same_rides_wait_for_each_other_in_the_order_of_the_rides(
    desk: Desk, desks: Desks, world: World, beside: ThreadPoolExecutor
) -> None:
    """Whatever the order is in which their attempts ended. So neither waits in a circle."""
    attempts = sorted(desk.take(), key=lambda attempt: attempt.receipt.ride_id)
    forwards = [(attempt, DELIVERED) for attempt in attempts]
    other = desks("two")
    with transaction(world) as third:
        third.execute("SELECT FROM receipts WHERE ride_id = 1 FOR UPDATE")
        saved = beside.submit(desk.save, *reversed(forwards)), beside.submit(other.save, *forwards)
        eventually(lambda: world.value(WAITING) == 2)
        third.execute("SELECT FROM receipts WHERE ride_id > 1 FOR UPDATE NOWAIT")
        third.commit()
    assert sorted(len(each.result().delivered) for each in saved) == [0, 3]
    assert counted(world) == (3, 0, 0)


# ---------------------------------------------------------------------- what is given up


def test_what_has_had_all_its_attempts_is_dead_once_the_last_lease_is_over(
    desk: Desk, world: World
) -> None:
    world.connection.execute("UPDATE receipts SET attempts = 3, unfinished = 3 WHERE ride_id = 1")
    world.connection.execute("UPDATE receipts SET attempts = 3, unfinished = 1 WHERE ride_id = 2")
    world.connection.execute("UPDATE receipts SET due_at = now() + interval '1 s'")
    assert desk.bury() == {}
    world.connection.execute(LATER)
    told = "3 attempts, the last {} without a known end"
    assert desk.bury() == {1: told.format(3), 2: told.format(1)}
    assert row(world, "outcome", "reason", "lease") == ("dead", told.format(3), None)
    assert row(world, "outcome", ride=3) == (None,)
    assert desk.bury() == {}
    assert counted(world) == (0, 2, 0)


def test_what_has_had_all_its_attempts_is_dead_though_a_wrong_clock_put_it_off(
    desk: Desk, world: World
) -> None:
    world.connection.execute(
        "UPDATE receipts SET attempts = 3, unfinished = 3, due_at = now() + interval '6 h'"
        " WHERE ride_id = 1"
    )
    assert [*desk.bury()] == [1]


def test_what_has_had_more_attempts_than_there_may_be_now_waits_all_the_same(
    desk: Desk, desks: Desks, world: World
) -> None:
    """The receiver asked for that time."""
    desk.save((first(desk), FAILED))
    stricter = desks("two", most=1)
    world.connection.execute("UPDATE receipts SET due_at = now() + interval '1 m'")
    assert (stricter.take(), stricter.bury()) == ([], {})
    world.connection.execute(LATER + " WHERE ride_id = 1")
    assert (stricter.take(), [*stricter.bury()]) == ([], [1])


def test_a_row_without_a_ride_is_gone_when_it_has_had_all_its_attempts(
    desk: Desk, world: World
) -> None:
    world.connection.execute("DELETE FROM rides WHERE id = 2")
    world.connection.execute("UPDATE receipts SET attempts = 3, unfinished = 3 WHERE ride_id = 2")
    assert desk.bury() == {}
    assert rows(world) == [1, 3]
    assert counted(world) == (0, 0, 0)


def test_what_has_an_outcome_is_not_given_up(desk: Desk, world: World) -> None:
    [one, two, _] = desk.take()
    desk.save((one, DELIVERED), (two, REFUSED))
    world.connection.execute("UPDATE receipts SET attempts = 9, due_at = '-infinity'")
    assert [*desk.bury()] == [3]
    assert row(world, "outcome") == ("delivered",)
    assert row(world, "reason", ride=2) == ("410",)


def test_a_replay_that_has_no_known_end_is_given_up_too(desk: Desk, world: World) -> None:
    desk.save((first(desk), REFUSED))
    change(world.connection, "replay", [1])
    world.connection.execute("UPDATE receipts SET attempts = 4, unfinished = 3 WHERE ride_id = 1")
    assert [*desk.bury()] == [1]
    assert row(world, "outcome", "replay_at") == ("dead", None)


def test_to_give_up_waits_for_nobody(desk: Desk, world: World) -> None:
    world.connection.execute("UPDATE receipts SET attempts = 3")
    with transaction(world) as other:
        other.execute("SELECT FROM receipts WHERE ride_id = 2 FOR UPDATE")
        assert [*desk.bury()] == [1, 3]


# ---------------------------------------------------------------------- a person decides


def test_what_came_before_a_replay_may_only_say_that_it_was_delivered(
    desk: Desk, world: World
) -> None:
    late = first(desk)
    desk.save((late, REFUSED))
    assert change(world.connection, "replay", [1]) == [1]
    for verdict in (REFUSED, FAILED, AWAY, STOPPED):
        assert desk.save((late, verdict)) == Round()
    assert row(world, "outcome", "attempts", "excused") == ("dead", 1, 1)
    assert world.value("SELECT count(*) FROM receipts WHERE replay_at IS NOT NULL") == 1
    assert desk.save((late, DELIVERED)).delivered == [1]
    assert row(world, "outcome", "replay_at", "dead_at") == ("delivered", None, None)


def test_a_replay_has_as_many_attempts_as_at_first_and_is_dead_until_it_is_decided(
    desk: Desk, world: World
) -> None:
    desk.save((first(desk), REFUSED))
    change(world.connection, "replay", [1])
    for number in range(1, MOST):
        attempt = again(desk)
        assert attempt.number == number
        assert [*desk.save((attempt, FAILED)).again] == [1]
        assert row(world, "outcome") == ("dead",)
        assert desk.take() == []  # before it is due
    assert desk.save((again(desk), FAILED)).dead == {1: "503"}
    assert row(world, "attempts", "replay_at") == (1 + MOST, None)


def test_a_replay_takes_up_what_is_quarantined_as_if_it_were_new(desk: Desk, world: World) -> None:
    world.connection.execute("UPDATE receipts SET attempts = 3, unfinished = 3")
    desk.bury()
    change(world.connection, "replay", [1])
    assert desk.takes() == [1]


def test_what_is_being_sent_again_can_be_neither_dropped_nor_replayed(
    desk: Desk, world: World
) -> None:
    desk.save((first(desk), REFUSED))
    for action in ("replay", "drop"):
        assert change(world.connection, action, [2, 3]) == []  # they are not dead
    change(world.connection, "replay", [1])
    assert change(world.connection, "drop", [1]) == change(world.connection, "replay", [1]) == []
    desk.save((again(desk), REFUSED))
    assert change(world.connection, "drop", [1]) == [1]
    assert change(world.connection, "replay", [1]) == []
    assert desk.take() == []


def test_whoever_replays_waits_for_others_in_the_order_of_the_rides(
    desk: Desk, world: World, beside: ThreadPoolExecutor
) -> None:
    desk.save(*((attempt, REFUSED) for attempt in reversed(desk.take())))
    world.connection.execute("UPDATE receipts SET reason = 'moved' WHERE ride_id = 1")
    with transaction(world) as other:
        other.execute("SELECT FROM receipts WHERE ride_id = 1 FOR UPDATE")
        replayed = beside.submit(change, world.connect(), "replay", [], every=True)
        eventually(lambda: waits(world, replayed))
        other.execute("SELECT FROM receipts WHERE ride_id > 1 FOR UPDATE NOWAIT")
        other.commit()
    assert replayed.result() == [1, 2, 3]


# ---------------------------------------------------------------------- what is complete


@pytest.fixture
def unread(world: World, desks: Desks) -> Desk:
    """One with an empty inbox, before which five rides were sent. The third was rolled back."""
    world.take(1, 2)
    with transaction(world) as other:
        take(other, 9)
    world.take(3, 4)
    drain(world.streamer())
    return desks()


@pytest.mark.proves("swept")
def test_a_sweep_puts_into_the_inbox_what_the_log_has_not_brought(
    unread: Desk, world: World
) -> None:
    unread.bring(2)
    swept = unread.sweep(4)
    assert (swept.rides, swept.last_sent, swept.goes_on, swept.is_behind) == (
        [1, 4],
        5,
        False,
        True,
    )
    assert state(world) == (4, 0)
    assert unread.sweep(4).rides == []
    assert unread.sweep(5).rides == [5]
    assert counted(world) == (0, 0, 3)


def test_a_sweep_looks_no_further_than_the_streamer_has_committed(
    unread: Desk, world: World
) -> None:
    """As after a restore: what was seen before it says nothing."""
    world.take(5)
    assert unread.sweep(6).rides == []
    assert state(world) == (0, 0)


def test_a_sweep_never_goes_back(unread: Desk, world: World) -> None:
    unread.sweep(5)
    unread.sweep(2)
    assert state(world) == (5, 0)


def test_a_sweep_goes_on_page_by_page(
    unread: Desk, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAGE", 3)
    swept = unread.sweep(5)
    assert (swept.rides, swept.goes_on) == ([1, 2, 4], True)
    assert state(world) == (4, 0)
    swept = unread.sweep(5)
    assert (swept.rides, swept.goes_on) == ([5], False)
    assert state(world) == (5, 0)


def test_without_the_streamers_state_nobody_sweeps(unread: Desk, world: World) -> None:
    world.connection.execute("DELETE FROM streamer_state")
    with pytest.raises(Unavailable):
        unread.sweep(5)


LATE = "INSERT INTO rides (id, distance) OVERRIDING SYSTEM VALUE VALUES (3, 5)"


def test_a_ride_that_is_mended_under_the_sweeps_feet_is_swept_the_next_time(
    unread: Desk, world: World, beside: ThreadPoolExecutor
) -> None:
    with transaction(world) as other:
        other.execute("INSERT INTO receipts (ride_id) VALUES (5)")
        swept = beside.submit(unread.sweep, 5)
        eventually(lambda: waits(world, swept))
        world.connection.execute(LATE)
        world.connection.execute(SET_BACK, [3])
        other.rollback()
    assert swept.result().rides == [1, 2, 4, 5]
    assert state(world) == (0, 0)
    assert unread.sweep(5).rides == [3]
    assert state(world) == (5, 0)


def test_of_two_who_sweep_at_once_the_second_undoes_nothing(
    unread: Desk, desks: Desks, world: World, beside: ThreadPoolExecutor
) -> None:
    other = desks("two")
    with transaction(world) as third:
        third.execute("INSERT INTO receipts (ride_id) VALUES (5)")
        swept = beside.submit(unread.sweep, 5)
        eventually(lambda: waits(world, swept))
        also = beside.submit(other.sweep, 2)
        eventually(lambda: world.value(WAITING) == 2)
        third.rollback()
    assert (swept.result().rides, also.result().rides) == ([1, 2, 4, 5], [])
    assert state(world) == (5, 0)
    assert counted(world) == (0, 0, 4)


def test_complete_is_what_has_an_outcome_up_to_the_first_that_has_none(
    unread: Desk, world: World
) -> None:
    unread.sweep(4)
    unread.complete()
    assert state(world) == (4, 0)
    attempts = {attempt.receipt.ride_id: attempt for attempt in unread.take()}
    unread.save((attempts[1], DELIVERED), (attempts[4], DELIVERED))
    unread.complete()
    assert state(world) == (4, 1)
    unread.save((attempts[2], REFUSED))
    unread.complete()
    assert state(world) == (4, 4)


def test_complete_moves_page_by_page(
    unread: Desk, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAGE", 2)
    unread.sweep(2)
    unread.sweep(5)
    unread.save(*((attempt, DELIVERED) for attempt in unread.take()))
    assert (unread.complete(), state(world)) == (True, (5, 2))
    assert (unread.complete(), state(world)) == (True, (5, 5))
    assert (unread.complete(), state(world)) == (False, (5, 5))


def test_complete_is_nothing_that_the_inbox_may_lack(unread: Desk, world: World) -> None:
    """A worker that hangs may have read the entry before."""
    unread.bring(5)
    unread.save((unread.take()[0], DELIVERED))
    unread.sweep(1)
    unread.save((unread.take()[0], DELIVERED))
    unread.complete()
    assert state(world) == (1, 1)


def test_a_replay_is_complete_already(unread: Desk, world: World) -> None:
    unread.sweep(5)
    unread.save(*((attempt, REFUSED) for attempt in unread.take()))
    change(world.connection, "replay", [], every=True)
    unread.complete()
    assert state(world) == (5, 5)


def test_a_mend_is_not_undone_by_who_called_all_complete_meanwhile(
    unread: Desk, world: World, beside: ThreadPoolExecutor
) -> None:
    unread.sweep(5)
    unread.save(*((attempt, DELIVERED) for attempt in unread.take()))
    with transaction(world) as mend:
        mend.execute(LATE)
        mend.execute(SET_BACK, [3])
        # Another sweep has been there since.
        mend.execute("UPDATE receipts_state SET inbox_to = 5")
        completed = beside.submit(unread.complete)
        eventually(lambda: waits(world, completed))
        mend.commit()
    assert not completed.result()
    assert state(world) == (5, 0)


def test_what_a_wrong_clock_put_off_is_made_due_and_nothing_else(desk: Desk, world: World) -> None:
    wait = "UPDATE receipts SET due_at = now() + make_interval(secs => %s) WHERE ride_id = %s"
    for ride, seconds in ((1, LONGEST_WAIT + 60), (2, LONGEST_RETRY_AFTER), (3, LEASE)):
        world.connection.execute(wait, [seconds, ride])
    desk.make_due()
    assert desk.takes() == [1]


def test_to_make_due_waits_for_nobody(desk: Desk, world: World) -> None:
    world.connection.execute("UPDATE receipts SET due_at = now() + interval '1 day'")
    with transaction(world) as other:
        other.execute("SELECT FROM receipts WHERE ride_id = 2 FOR UPDATE")
        desk.make_due()
        assert sorted(desk.takes()) == [1, 3]


def test_what_has_an_outcome_is_not_made_due(desk: Desk, world: World) -> None:
    desk.save((first(desk), DELIVERED))
    world.connection.execute("UPDATE receipts SET due_at = now() + interval '1 day'")
    desk.make_due()
    assert world.value("SELECT count(*) FROM receipts WHERE due_at > now()") == 1


def test_a_session_of_a_worker_does_nothing_but_single_statements(desk: Desk) -> None:
    """A worker that is stopped inside a transaction would hold up the others."""
    desk.take()
    desk.sweep(3)
    assert desk.connection.autocommit
    assert desk.connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
