"""Outcomes: what an attempt's end makes of a receipt's row, whoever brings it home, and when."""

from typing import Any

import psycopg
import pytest
from psycopg import sql

from consumers.receipts.attempts import Attempts
from consumers.receipts.dead import change
from consumers.receipts.outcomes import Ended, Saved, save
from consumers.receipts.receipt import Receipt
from consumers.receipts.verdict import Kind, Verdict
from tests.support.world import World, drain

MOST = 3
DELIVERED, REFUSED = Verdict(Kind.DELIVERED, "204"), Verdict(Kind.REFUSED, "410")
FAILED, AWAY = Verdict(Kind.RETRY, "503"), Verdict(Kind.AWAY, "no address")
UNWRITABLE = Verdict(Kind.REFUSED, "\x00")


class Desk:
    """A worker whose attempts for two rides are under way."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._attempts = Attempts(connection, "one", MOST, timeout=60)
        self._known = self._attempts.begin([1, 2])
        self.forgiven = 0

    def receipt(self, ride: int) -> Receipt:
        return self._known[ride].receipt

    def save(self, *verdicts: Verdict) -> Saved:
        """The attempts for ride 1, and maybe for ride 2, have come to these."""
        rides = (1, 2)[: len(verdicts)]
        ended = [
            Ended(self.receipt(ride), verdict, 1, self.forgiven)
            for ride, verdict in zip(rides, verdicts, strict=True)
        ]
        return save(self._connection, "one", ended, MOST)

    def again(self) -> None:
        """Make another attempt for ride 1."""
        self._connection.execute("UPDATE receipts SET due_at = now()")
        self._attempts.begin([1])

    def row(self, *columns: str) -> tuple[Any, ...] | None:
        query = sql.SQL("SELECT {} FROM receipts WHERE ride_id = 1").format(
            sql.SQL(", ").join(map(sql.Identifier, columns))
        )
        return self._connection.execute(query).fetchone()


@pytest.fixture
def desk(world: World) -> Desk:
    world.take(5, 6)
    drain(world.streamer())
    return Desk(world.connection)


def test_a_delivery_wins_over_a_refusal_and_never_the_reverse(desk: Desk) -> None:
    assert desk.save(REFUSED).dead == {1: "410"}
    assert desk.save(DELIVERED).delivered == [1]
    for verdict in (REFUSED, FAILED, DELIVERED):
        assert desk.save(verdict).other == [1]
    assert desk.row("outcome", "reason", "dead_at") == ("delivered", None, None)


def test_an_attempt_that_failed_has_no_outcome_until_it_was_the_last(desk: Desk) -> None:
    for attempts in range(1, MOST):
        assert [*desk.save(FAILED).again] == [1]
        assert desk.row("outcome", "attempts", "unfinished") == (None, attempts, 0)
        desk.again()
    assert desk.save(FAILED).dead == {1: "503"}
    assert desk.row("outcome", "attempts", "unfinished") == ("dead", MOST, 0)


def test_an_attempt_that_nobody_took_does_not_count(desk: Desk) -> None:
    assert [*desk.save(AWAY).again] == [1]
    assert desk.row("outcome", "attempts", "unfinished") == (None, 0, 0)


def test_the_outcome_of_another_history_is_not_ours(desk: Desk, world: World) -> None:
    world.connection.execute("UPDATE rides SET created_at = created_at - interval '1 day'")
    assert desk.save(DELIVERED, REFUSED).other == [1, 2]
    assert desk.row("outcome") == (None,)


def test_what_came_before_a_replay_may_only_say_that_it_was_delivered(
    desk: Desk, world: World
) -> None:
    desk.save(REFUSED)
    change(world.connection, "replay", [1])
    for verdict in (REFUSED, FAILED, AWAY):
        assert desk.save(verdict).other == [1]
    assert world.value("SELECT count(*) FROM receipts WHERE replay_at IS NOT NULL") == 1
    assert desk.save(DELIVERED).delivered == [1]
    assert desk.row("outcome", "replay_at", "dead_at") == ("delivered", None, None)


def test_a_replay_that_fails_is_dead_again_once_it_was_the_last(desk: Desk, world: World) -> None:
    desk.save(REFUSED)
    change(world.connection, "replay", [1])
    desk.forgiven = 1
    for _ in range(MOST - 1):
        desk.again()
        assert [*desk.save(FAILED).again] == [1]
    desk.again()
    assert desk.save(FAILED).dead == {1: "503"}
    assert desk.row("attempts", "replay_at") == (1 + MOST, None)


def test_one_that_postgres_does_not_take_holds_up_no_other(desk: Desk) -> None:
    saved = desk.save(UNWRITABLE, DELIVERED)
    assert (saved.delivered, [*saved.unwritten]) == ([2], [1])


def test_each_outcome_is_counted_when_it_is_decided(desk: Desk, world: World) -> None:
    counted = "SELECT delivered, dead FROM receipts_workers WHERE name = 'one'"
    desk.save(FAILED, DELIVERED)
    desk.again()
    for _ in range(2):
        desk.save(REFUSED)
    change(world.connection, "replay", [1])
    desk.forgiven = 2
    desk.again()
    desk.save(FAILED)
    assert world.connection.execute(counted).fetchone() == (1, 1)
