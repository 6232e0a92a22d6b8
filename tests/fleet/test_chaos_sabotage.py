"""The proof can fail: each promise broken on purpose, in the real code, and both judges look at it.

Each scenario is also played unbroken: then neither has anything to say. A judge that can't see a
kind of sabotage has None here: the books don't show what a step between two looks did, and the
trace judges neither minutes nor outcomes, and has no step for what a customer or another Redis was
told.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from demo.embedded.servers import Postgres, Redis
from lab.chaos.books.statements import ALL_TOTALS, COUNTED
from lab.chaos.books.tables import broken as broken_in
from lab.chaos.trace.judge import Verdict, judge
from lab.chaos.trace.recording import Loss
from tests.support import sabotage as broken
from tests.support import scenarios as play
from tests.support.clusters import fresh_world
from tests.support.disasters import flush
from tests.support.recorded import recorded_postgres, recording
from tests.support.sabotage import Patch, Sabotage
from tests.support.scenarios import Scenario
from tests.support.world import PATIENCE, World, eventually


class Case(NamedTuple):
    """What is played, what is broken, and what the judges of the books and of the trace say."""

    scenario: Scenario
    sabotage: Sabotage
    books: tuple[str, ...]
    trace: str | None

    def __str__(self) -> str:
        return f"{self.scenario.__name__}-{self.sabotage.__name__}"


LEADS_TO, MET = "what it read leads to", "is not what there "
CASES = [
    Case(
        play.out_of_order,
        broken.skip_the_barrier,
        ("total is 5.000 m, not 6.000 m", "1 was sent, and is still"),
        "No record is staged at or below last_sent",
    ),
    Case(
        play.more_than_a_batch,
        broken.delete_more_than_was_sent,
        ("total is 9.000 m, not 21.000 m",),
        "what is sent is deleted, up to last_sent",
    ),
    Case(
        play.two_batches,
        broken.move_the_checkpoint_alone,
        ("total is 0.000 m, not 3.000 m (-3.000 m)",),
        LEADS_TO,
    ),
    Case(play.a_lost_log, broken.heal_nothing, ("total is 4.000 m, not 10.000 m",), MET),
    Case(
        play.another_fleet,
        broken.believe_in_every_term,
        ("total is 42.000 m, not 6.000 m",),
        LEADS_TO,
    ),
    # In a world of its own, which is not recorded.
    Case(play.a_restored_database, broken.believe_in_every_term, ("not 61.000 m",), None),
    Case(
        play.a_lost_tail,
        broken.close_gaps_when_idle_alone,
        ("consumer0's last ride is 1, not 3",),
        None,
    ),
    Case(
        play.a_batch_sent_again,
        broken.count_again,
        ("total is 6.000 m, not 3.000 m (3.000 m)",),
        LEADS_TO,
    ),
    Case(
        play.minutes,
        broken.write_nothing,
        ("ride 1 is not in the minute 12:00, and the rollup is complete to ride 2",),
        None,
    ),
    Case(
        play.minutes,
        broken.mark_new_minutes_alone,
        ("ride 2 is not in the minute 12:00, and the rollup is complete to ride 2",),
        None,
    ),
    Case(
        play.minutes,
        broken.leave_all_dirty,
        ("1 minutes are left dirty", "the rollup is complete to ride 0, not 2"),
        None,
    ),
    Case(
        play.minutes,
        broken.run_ahead,
        ("the rollup is complete to ride 3, not 2", "complete to ride 3, and marked up to 2"),
        None,
    ),
    Case(
        play.a_receiver_at_work,
        broken.save_nothing,
        ("receipts are complete to ride 0, not 3", "the receipt of ride 3 is still to be sent"),
        None,
    ),
    Case(
        play.a_receiver_at_work,
        broken.keep_the_lease,
        ("ride 1 is leased, and nobody makes", "ride 1 is delivered, and still leased"),
        None,
    ),
    Case(
        play.a_receiver_at_work,
        broken.acknowledge_nothing,
        ("3 entries are left pending",),
        None,
    ),
    Case(
        play.a_receiver_at_work,
        broken.send_nothing,
        (
            "ride 2 is called delivered, but nobody has accepted its receipt",
            "the receipt of ride 3 is delivered, and was not meant to be",
        ),
        None,
    ),
    Case(
        play.a_receiver_at_work,
        broken.sign_with_another_secret,
        (
            "what is no receipt (WebhookVerificationError: No matching signature found)",
            "the receipt of ride 1 is dead, and was not meant to be",
        ),
        None,
    ),
    Case(
        play.a_receiver_at_work,
        broken.send_other_rides,
        ("the receiver was sent a receipt of ride 1 of 1.001 m at 2026-11-22 12:00:30+00:00",),
        None,
    ),
    Case(
        play.a_receiver_that_fails,
        broken.name_each_attempt_anew,
        ("the receipt of ride 1 came under two webhook-ids",),
        None,
    ),
    Case(
        play.a_receiver_that_fails,
        broken.give_up_at_once,
        ("the receipt of ride 1 is dead, and was not meant to be",),
        None,
    ),
    Case(
        play.a_flushed_log,
        broken.look_for_nothing,
        ("receipts are complete to ride 0, not 1",),
        None,
    ),
    Case(
        play.a_flushed_log,
        broken.prove_without_a_look,
        (
            "ride 1 is not in the inbox, which is complete to ride 1",
            "ride 1 has no outcome, and receipts are complete to ride 1",
        ),
        None,
    ),
]
# A trigger that counts a column never, or twice; what it plays; who notices.
MISCOUNTED = [
    ("checkpoints", "gaps_healed", play.a_lost_log, None, MET),
    ("checkpoints", "rides_healed", play.a_lost_log, None, MET),
    ("checkpoints", "distance_healed", play.a_lost_log, None, MET),
    ("checkpoints", "resends_skipped", play.a_batch_sent_again, None, MET),
    ("checkpoints", "unbelieved_entries", play.another_fleet, None, MET),
    ("checkpoints", "entries_set_aside", play.nonsense, "entries set aside of 1", None),
    ("streamer_state", "records_sent", play.two_batches, "records sent of 2", None),
    ("receipts_workers", "delivered", play.a_receiver_at_work, "receipts delivered of 2", None),
    ("receipts_workers", "dead", play.a_receiver_at_work, "receipts dead of 1", None),
]
MISCOUNT = """
    CREATE FUNCTION miscount() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN NEW.{1} := {2}; RETURN NEW; END $$;
    CREATE TRIGGER miscount BEFORE UPDATE ON {0} FOR EACH ROW EXECUTE FUNCTION miscount()
"""
NEVER, TWICE = "OLD.{0}", "2 * NEW.{0} - OLD.{0}"


@pytest.fixture(scope="module")
def server(prepared: Path) -> Iterator[Postgres]:
    with recorded_postgres(prepared) as postgres:
        yield postgres


@pytest.fixture
def recorded(server: Postgres, redis: Redis, tmp_path: Path) -> Iterator[World]:
    with fresh_world(server, redis, tmp_path) as world:
        yield world


def judged(world: World, scenario: Scenario) -> tuple[list[str], Verdict]:
    """By both, with the loss of the log where there is one; the onlooker has seen it before."""
    with recording(world) as tape, pytest.MonkeyPatch.context() as patch:

        def flush_what_was_seen(world: World) -> None:
            eventually(lambda: len(tape.told) == len(world.records()), "an onlooker")
            flush(world)

        patch.setattr(play, "flush", flush_what_was_seen)
        books = scenario(world)
    loses = scenario in (play.a_lost_log, play.a_lost_tail, play.a_flushed_log)
    steps = [Loss("redis-flush", 0, time.monotonic())] * loses + tape.steps
    return books, judge(lambda: iter(steps))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_sabotage_is_reported(recorded: World, monkeypatch: Patch, case: Case) -> None:
    case.sabotage(monkeypatch)
    books, verdict = judged(recorded, case.scenario)
    for sentence in case.books:
        assert sentence in "\n".join(books)
    assert (case.trace or "") in verdict.refused
    assert bool(case.trace) == bool(verdict.refused)


@pytest.mark.parametrize("how", [NEVER, TWICE], ids=["never", "twice"])
@pytest.mark.parametrize(("table", "column", "scenario", "books", "trace"), MISCOUNTED)
def test_what_is_not_counted_once_is_reported(
    recorded: World,
    table: str,
    column: str,
    scenario: Scenario,
    books: str | None,
    trace: str | None,
    how: str,
) -> None:
    recorded.connection.execute("INSERT INTO receipts_workers (name) VALUES ('worker')")
    recorded.connection.execute(MISCOUNT.format(table, column, how.format(column)), prepare=False)
    found, verdict = judged(recorded, scenario)
    assert (books or "") in "\n".join(found)
    assert bool(books) == bool(found)
    assert (trace or "") in verdict.refused
    assert bool(trace) == bool(verdict.refused)


@pytest.mark.parametrize(
    "scenario", dict.fromkeys([case.scenario for case in CASES] + [play.nonsense])
)
def test_the_same_without_sabotage_is_found_to_be_right(
    recorded: World, monkeypatch: Patch, scenario: Scenario
) -> None:
    monkeypatch.setattr(play, "LONGEST", PATIENCE)
    books, verdict = judged(recorded, scenario)
    assert books == []
    assert verdict.refused == ""
    assert bool(verdict.met["heals"]) == (scenario in (play.a_lost_log, play.a_lost_tail))


def test_totals_that_nobody_has_begun_are_missed(recorded: World) -> None:
    """Of an empty list, everything is true."""
    assert broken_in(recorded.connect(), [COUNTED]) == []
    assert broken_in(recorded.connect(), [ALL_TOTALS]) == ["there are 0 totals, not 3"]
