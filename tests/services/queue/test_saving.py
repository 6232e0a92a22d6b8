"""Who may say what came of an attempt, and what that changes."""

import pytest

from consumers.receipts.queue import Outcomes
from consumers.receipts.verdict import Kind, Verdict
from tests.support.desk import (
    AWAY,
    DELIVERED,
    FAILED,
    MOST,
    REFUSED,
    STOPPED,
    Desk,
    row,
)
from tests.support.world import World, transaction

UNWRITABLE = Verdict(Kind.REFUSED, "\x00")


def test_a_delivery_wins_over_a_refusal_and_never_the_reverse(desk: Desk, world: World) -> None:
    attempt = desk.first()
    assert desk.save((attempt, REFUSED)).dead == {1: "410"}
    assert row(world, "outcome", "reason", "attempts") == ("dead", "410", 1)
    assert desk.save((attempt, DELIVERED)).delivered == [1]
    for verdict in (REFUSED, FAILED, AWAY, DELIVERED):
        assert desk.save((attempt, verdict)) == Outcomes()
    assert row(world, "outcome", "reason") == ("delivered", None)


def test_an_attempt_that_failed_has_no_outcome_until_it_was_the_last(
    desk: Desk, world: World
) -> None:
    attempt = desk.first()
    for attempts in range(1, MOST):
        assert desk.save((attempt, FAILED)).again == [1]
        found = row(world, "outcome", "attempts", "unfinished", "lease", "reason")
        assert found == (None, attempts, 0, None, "503")
        attempt = desk.again()
    assert desk.save((attempt, FAILED)).dead == {1: "503"}
    assert row(world, "outcome", "attempts", "unfinished") == ("dead", MOST, 0)


@pytest.mark.parametrize("verdict", [AWAY, STOPPED])
def test_an_attempt_that_nobody_took_does_not_count(
    desk: Desk, world: World, verdict: Verdict
) -> None:
    for attempts in range(1, 2 * MOST):
        attempt = desk.first()
        assert attempt.number == 1
        # Its end may be written twice, when the answer to the first writing was lost.
        assert desk.save((attempt, verdict)).again == [1]
        assert desk.save((attempt, verdict)) == Outcomes()
        found = row(world, "outcome", "attempts", "excused", "unfinished")
        assert found == (None, attempts, attempts, 0)


def test_whoever_was_superseded_may_only_say_that_it_was_delivered(
    desk: Desk, world: World
) -> None:
    """By another attempt, whose number may be the same: the lease tells them apart."""
    late = desk.first()
    desk.save((late, AWAY))
    current = desk.again()
    assert current.number == late.number
    for verdict in (REFUSED, FAILED, AWAY, STOPPED):
        assert desk.save((late, verdict)) == Outcomes()
    assert row(world, "outcome", "unfinished", "lease") == (None, 1, current.lease)
    # Of both at once, it is the delivery that counts.
    assert desk.save((late, DELIVERED), (current, REFUSED)).delivered == [1]
    assert row(world, "outcome") == ("delivered",)


def test_the_outcome_of_another_history_is_not_ours(desk: Desk, world: World) -> None:
    attempts = desk.take()
    world.connection.execute("UPDATE rides SET created_at = created_at - interval '1 day'")
    for verdict in (DELIVERED, REFUSED):
        assert desk.save(*((attempt, verdict) for attempt in attempts)) == Outcomes()
    assert row(world, "outcome", "unfinished") == (None, 1)


def test_what_failed_is_due_after_its_delay(desk: Desk, world: World) -> None:
    failed = (desk.first(), FAILED._replace(retry_after=200.0))
    assert desk.run(desk.queue.save([failed], Outcomes())) == (200, [])
    waits_for = (
        "SELECT extract(epoch FROM due_at - now()) FROM receipts WHERE ride_id = cell_start() + 1"
    )
    assert 190 < world.value(waits_for) <= 200


def test_one_that_postgres_does_not_take_holds_up_no_other(
    desk: Desk, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    [one, two, three] = desk.take()
    saved = desk.save((one, UNWRITABLE), (two, DELIVERED), (three, FAILED))
    assert (saved.delivered, saved.again) == ([2], [3])
    [line] = caplog.messages
    assert line.startswith(f"what came of ride {one.receipt.ride_id}'s receipt can't be written")
    assert "NUL" in line
    # So the others are not sent again when their leases are over.
    assert row(world, "outcome", ride=2) == ("delivered",)
    assert row(world, "lease", "unfinished", ride=3) == (None, 0)


def test_those_whose_rows_somebody_holds_hold_up_no_other_and_are_saved_later(
    desk: Desk, world: World
) -> None:
    """Nobody waits for a row, so two who save the same rides can't wait in a circle."""
    [one, two, three] = desk.take()
    with transaction(world) as person:
        person.execute("SELECT FROM receipts WHERE ride_id <= cell_start() + 2 FOR UPDATE")
        ended, outcomes = [(one, DELIVERED), (two, REFUSED), (three, DELIVERED)], Outcomes()
        _, held = desk.run(desk.queue.save(ended, outcomes))
        assert outcomes.delivered == [three.receipt.ride_id]
        assert sorted(held, key=ended.index) == ended[:2]
        person.execute(
            "UPDATE receipts SET outcome = 'delivered', decided_at = now()"
            " WHERE ride_id = cell_start() + 2"
        )
        person.commit()
    saved = desk.save(*held)
    assert (saved.delivered, saved.dead) == ([1], {})


def test_of_two_ends_of_one_ride_the_later_one_counts(desk: Desk, world: World) -> None:
    late = desk.first()
    current = desk.again()
    assert desk.save((late, FAILED), (current, REFUSED)).dead == {1: "410"}
    assert row(world, "outcome", "unfinished") == ("dead", 0)


def test_a_reason_that_the_database_has_no_letters_for_is_told_in_ascii(
    desk: Desk, world: World
) -> None:
    """One in LATIN1, say, which a constraint stands for here."""
    world.connection.execute("ALTER TABLE receipts ADD CHECK (reason ~ '^[ -~]*$')")
    assert desk.save((desk.first(), REFUSED._replace(reason="no \N{RIGHTWARDS ARROW}"))).dead
    assert row(world, "outcome", "reason") == ("dead", "no \\u2192")
