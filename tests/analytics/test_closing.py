"""`python -m analytics.close`: it closes what is the same everywhere, and refuses all else."""

from decimal import Decimal
from hashlib import sha256

import pytest

from analytics import closings
from analytics.look import Ask
from analytics.steps import RunStep
from rocket_rides.locks import Lock
from tests.support.attacks import alter_in_file, by_hand, named_ledger
from tests.support.books import Books
from tests.support.jobs import closing
from tests.support.periods import DAYS, three_days
from tests.support.world import transaction
from unified_log.faults import listening
from unified_log.streamer import leaders_term

ROWS = "SELECT count(*) FROM closings"
CLOSED = "SELECT position, rides, total_distance, digest FROM closings ORDER BY id"
DIGEST = """
    SELECT (id - 1) / 100000, encode(sha256(string_agg(
        int8send(id) || int8send((extract(epoch FROM created_at) * 1000000)::bigint)
        || int8send((distance * 1000)::bigint), '' ORDER BY id
    )), 'hex') FROM rides WHERE id <= %s GROUP BY 1 ORDER BY 1
"""
SUMS = "SELECT count(*), sum(distance) FROM rides WHERE id <= %s"


@pytest.fixture
def days(books: Books) -> Books:
    three_days(books)
    return books


def in_postgres(books: Books, position: int) -> tuple[int, int, Decimal, str]:
    """The closing at a position, as a person would make it."""
    connection = books.world.connection
    lines = "".join(
        f"{number} {digest}\n" for number, digest in connection.execute(DIGEST, [position])
    )
    rides, distance = connection.execute(SUMS, [position]).fetchone() or (0, Decimal(0))
    return position, rides, distance, sha256(lines.encode()).hexdigest()


UPTO = [
    ("2026-01-02T12:00", 100_000),
    ("100004", 100_004),
    ("2026-01-02T13:30+01:00", 200_000),
    ("2026-02-01", 200_010),
]


def test_a_closing_is_the_sum_and_the_digest_of_all_rides_up_to_there(days: Books) -> None:
    expected = []
    for number, (said, position) in enumerate(UPTO, 1):
        done = closing(days.world, "--upto", said)
        assert (done.status, done.wrong) == (0, "")
        assert done.said.startswith(f"Closing {number}, up to position {position:,}: ")
        expected.append(in_postgres(days, position))
    assert days.world.connection.execute(CLOSED).fetchall() == expected
    verified = closing(days.world, "--verify")
    assert (verified.status, verified.wrong) == (0, "")
    assert "in Postgres and in the warehouse" in verified.said


# What somebody does, how it is undone, and what is said.
CHANGES = [
    (
        "UPDATE rides SET distance = distance + 1 WHERE id = 4",
        "UPDATE rides SET distance = distance - 1 WHERE id = 4",
        "Postgres and the warehouse differ in 1 of the rides 1 to 100000 (ride 4): ",
    ),
    (
        "INSERT INTO rides (id, distance) VALUES (50000, 7)",
        "DELETE FROM rides WHERE id = 50000",
        "Postgres and the warehouse differ in 1 of the rides 1 to 100000 (ride 50000)",
    ),
    (
        "UPDATE checkpoints SET position = 5 WHERE name = 'consumer0'",
        "UPDATE checkpoints SET position = 200010 WHERE name = 'consumer0'",
        "total consumer0 stands at position 5, and this would be up to 200000",
    ),
    (
        "UPDATE runs SET readers = replace(readers::text, ' 200010', ' 5')::jsonb",
        "UPDATE runs SET readers = replace(readers::text, ' 5', ' 200010')::jsonb",
        "run 1 has compared totals up to position 5, and this would be up to 200000: ",
    ),
]
WHEN = [
    ("2999-01-01", "younger than IDEMPOTENCY_DAYS, 30"),
    ("200012", "there is no ride 200012"),
    ("2026-02-30", "'2026-02-30' is no day (2026-11-21), moment"),
    ("2025-12-31", "there is no ride up to 2025-12-31"),
]


def test_only_what_is_right_and_old_and_past_what_is_closed_is_closed(days: Books) -> None:
    """Nothing is, beside another run, or a repair that begins while all is read.

    One that begins later reopens what was closed.
    """
    with transaction(days.world) as running:
        running.execute("SELECT pg_advisory_lock(%s)", [Lock.RECONCILIATION])
        is_refused(days, DAYS[0], "not closed: another run is in progress")
    for change, undone, says in CHANGES:
        by_hand(days.world, change)
        is_refused(days, DAYS[1], says)
        by_hand(days.world, undone)
    alter_in_file(days, 100_004, 1)
    is_refused(days, "100004", "differ in 1 of the rides 100001 to 200000 (ride 100004)")
    alter_in_file(days, 100_004, -1)
    _, ledger = named_ledger(days)
    right = ledger.read_bytes()
    ledger.write_text("{}")
    is_refused(days, DAYS[1], "the warehouse is not as the last run left it")
    ledger.write_bytes(right)
    by_hand(days.world, "INSERT INTO rides (id, distance) VALUES (200011, 7)")  # no run has read it
    for when, says in WHEN:
        is_refused(days, when, says)
    by_hand(days.world, "DELETE FROM rides WHERE id = 200011")
    is_refused(days, DAYS[0], "younger than IDEMPOTENCY_DAYS", IDEMPOTENCY_DAYS="36000")
    assert closing(days.world, "--upto", DAYS[1]).status == 0
    for when, position in ((DAYS[1], 200_000), (DAYS[0], 100_000)):
        says = f"closing 1 is up to position 200000, and this would be up to {position}"
        is_refused(days, when, says)
    by_hand(days.world, CHANGES[0][0])
    assert days.run().status == "held"
    is_refused(days, DAYS[2], "run 2 has found something: Postgres was changed")
    by_hand(days.world, CHANGES[0][1])
    assert days.run().agrees

    def begin_a_repair(step: object) -> None:
        if step is RunStep.BEFORE_COMMIT:
            leaders_term.revoke(days.world.connect(), 200_010)

    with listening(begin_a_repair):
        is_refused(days, DAYS[2], "stranded rides were counted meanwhile")


def is_refused(books: Books, when: str, says: str, **settings: str) -> None:
    """Fails unless one sentence says why, and nothing is closed."""
    before = books.world.value(ROWS)
    done = closing(books.world, "--upto", when, **settings)
    assert (done.status, done.said) == (2, "")
    [line] = done.wrong.splitlines()
    assert says in line
    assert books.world.value(ROWS) == before


def test_what_is_changed_between_two_looks_is_not_closed(
    days: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All blocks were looked at; then the one that the closing cuts is, up to there."""
    cut = closings.cut

    def meanwhile(position: int) -> Ask:
        by_hand(days.world, "UPDATE rides SET distance = distance + 1 WHERE id = 100004")
        return cut(position)

    monkeypatch.setattr(closings, "cut", meanwhile)
    refused = closing(days.world, "--upto", "100004")
    assert (refused.status, refused.said) == (2, "")
    assert "differ in 1 of the rides 100001 to 100004" in refused.wrong
    assert days.world.value(ROWS) == 0
