"""The proof can fail: each promise broken on purpose, in the real code, and both judges look at it.

Each scenario is also played unbroken: then neither has anything to say. Where the judge of the
trace can't see a kind of sabotage, it has None here: it judges neither minutes nor receipts.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from demo.embedded.servers import Postgres, Redis
from lab.chaos.books.statements import ALL_TOTALS, COUNTED
from lab.chaos.books.tables import broken as broken_in
from lab.chaos.fleet import LONGEST_LOG
from lab.chaos.postgres_pair import SETTINGS
from lab.chaos.trace.judge import Verdict, judge
from lab.chaos.trace.recording import Loss
from tests.support import sabotage as broken
from tests.support import scenarios as play
from tests.support.clusters import fresh_world, migrated
from tests.support.disasters import flush
from tests.support.recorded import recording
from tests.support.sabotage import Patch, Sabotage
from tests.support.scenarios import Scenario
from tests.support.world import PATIENCE, World, eventually


class Case(NamedTuple):
    """What is played, what is broken, and what the judges of the books and of the trace say."""

    scenario: Scenario
    sabotage: Sabotage
    books: str
    trace: str | None

    def __str__(self) -> str:
        return f"{self.scenario.__name__}-{self.sabotage.__name__}"


LEADS_TO = "what it read leads to"
CASES = [
    Case(
        play.out_of_order,
        broken.skip_the_barrier,
        "1 was sent, and is still",
        "No record is staged at or below last_sent",
    ),
    Case(play.two_batches, broken.move_the_checkpoint_alone, "total is 0.000 m, not 3", LEADS_TO),
    Case(play.two_batches, broken.count_no_records, "counts 0 records sent of 2", None),
    Case(play.a_lost_log, broken.heal_nothing, "is 4.000 m, not 10.000 m", "the sum of its rides"),
    Case(play.another_fleet, broken.believe_in_every_term, "is 42.000 m, not 6.000 m", LEADS_TO),
    Case(play.a_batch_sent_again, broken.count_again, "is 6.000 m, not 3.000 m", LEADS_TO),
    Case(play.a_batch_sent_again, broken.count_no_resends, "", "is not what there was"),
    Case(play.minutes, broken.write_nothing, "ride 1 is not in the minute 12:00", None),
    Case(play.minutes, broken.leave_all_dirty, "1 minutes are left dirty", None),
    Case(play.a_receiver_at_work, broken.keep_the_lease, "is delivered, and still leased", None),
    Case(play.a_receiver_at_work, broken.acknowledge_nothing, "3 entries are left pending", None),
    Case(play.a_receiver_at_work, broken.send_nothing, "nobody has accepted its receipt", None),
    Case(play.a_receiver_at_work, broken.send_other_rides, "a receipt of ride 1 of 1.001 m", None),
    Case(
        play.a_receiver_that_fails,
        broken.name_each_attempt_anew,
        "came under two webhook-ids",
        None,
    ),
    Case(
        play.a_flushed_log,
        broken.prove_without_a_look,
        "ride 1 is not in the inbox, which is complete to ride 1",
        None,
    ),
]


@pytest.fixture(scope="module")
def server(prepared: Path) -> Iterator[Postgres]:
    """One that can be recorded."""
    with migrated(prepared, SETTINGS) as postgres:
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
    loses = scenario in (play.a_lost_log, play.a_flushed_log)
    steps = [Loss("redis-flush", 0, time.monotonic())] * loses + tape.steps
    return books, judge(lambda: iter(steps), LONGEST_LOG)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_sabotage_is_reported(recorded: World, monkeypatch: Patch, case: Case) -> None:
    case.sabotage(monkeypatch)
    books, verdict = judged(recorded, case.scenario)
    assert case.books in "\n".join(books)
    assert (case.trace or "") in verdict.refused
    assert bool(case.trace) == bool(verdict.refused)


@pytest.mark.parametrize("scenario", dict.fromkeys(case.scenario for case in CASES))
def test_the_same_without_sabotage_is_found_to_be_right(
    recorded: World, monkeypatch: Patch, scenario: Scenario
) -> None:
    monkeypatch.setattr(play, "LONGEST", PATIENCE)
    books, verdict = judged(recorded, scenario)
    assert books == []
    assert verdict.refused == ""


def test_totals_that_nobody_has_begun_are_missed(recorded: World) -> None:
    """Of an empty list, everything is true."""
    assert broken_in(recorded.connect(), [COUNTED]) == []
    assert broken_in(recorded.connect(), [ALL_TOTALS]) == ["there are 0 totals, not 3"]
