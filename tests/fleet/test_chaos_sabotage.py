"""The proof can fail: each promise is broken on purpose, in the real code, and a judge finds it.

Each scenario is also played unbroken: then neither judge has anything to say.
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
from lab.chaos.observer import LogReader, Told
from lab.chaos.postgres_pair import SETTINGS
from lab.chaos.trace.judge import Verdict, judge
from lab.chaos.trace.recorder import Recorder
from lab.chaos.trace.recording import Recording, Struck, read
from tests.support import sabotage as broken
from tests.support import scenarios as play
from tests.support.clusters import fresh_world, migrated
from tests.support.disasters import flush
from tests.support.sabotage import Patch, Sabotage
from tests.support.scenarios import Scenario
from tests.support.world import PATIENCE, World, eventually


class Case(NamedTuple):
    """What is played, what is broken, and what is found in the books, or in the trace."""

    scenario: Scenario
    sabotage: Sabotage
    books: str = ""
    trace: str = ""

    def __str__(self) -> str:
        return f"{self.scenario.__name__}-{self.sabotage.__name__}"


# A database with a slot can't be dropped.
FORGET = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
LEADS_TO = "what it read leads to"
CASES = [
    Case(
        play.out_of_order,
        broken.skip_the_barrier,
        trace="No record is staged at or below last_sent",
    ),
    Case(play.two_batches, broken.move_the_checkpoint_alone, trace=LEADS_TO),
    Case(play.two_batches, broken.count_no_records, "counts 0 records sent of 2"),
    Case(play.a_lost_log, broken.heal_nothing, trace="the sum of its rides"),
    Case(play.another_fleet, broken.take_every_term_as_ours, trace=LEADS_TO),
    Case(play.a_batch_sent_again, broken.count_again, trace=LEADS_TO),
    Case(play.a_batch_sent_again, broken.count_no_resends, trace="was counted, not"),
    Case(play.minutes, broken.write_nothing, "ride 1 is not in the minute 12:00"),
    Case(play.minutes, broken.leave_all_dirty, "1 minutes are left dirty"),
    Case(play.a_receiver_at_work, broken.keep_the_lease, "is delivered, and still leased"),
    Case(play.a_receiver_at_work, broken.acknowledge_nothing, "3 entries are left pending"),
    Case(play.a_receiver_at_work, broken.send_nothing, "nobody has accepted its receipt"),
    Case(play.a_receiver_at_work, broken.send_other_rides, "a receipt of ride 1 of 1.001 m"),
    Case(play.a_receiver_that_fails, broken.name_each_attempt_anew, "came under two webhook-ids"),
    Case(play.a_flushed_log, broken.prove_without_a_look, "ride 1 is not in the inbox"),
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
    file = world.folder / "recording"
    recording = Recording(file)
    seen: list[Told] = []

    def note(entry: Told) -> None:
        seen.append(entry)
        recording.write(entry)

    def flush_what_was_seen(world: World) -> None:
        eventually(lambda: len(seen) == len(world.records()), "an onlooker")
        flush(world)
        recording.write(Struck("redis-flush", 0, time.monotonic()))

    recorder = Recorder(lambda: world.postgres_url, recording)
    reader = LogReader(lambda: world.redis.url, world.stream, note)
    recorder.start()
    reader.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(play, "flush", flush_what_was_seen)
        books = scenario(world)
    recorder.end()
    reader.end()
    recording.close()
    world.connection.execute(FORGET)
    return books, judge(lambda: read(file), LONGEST_LOG)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_sabotage_is_reported(recorded: World, monkeypatch: Patch, case: Case) -> None:
    case.sabotage(monkeypatch)
    books, verdict = judged(recorded, case.scenario)
    assert case.books in "\n".join(books)
    assert case.trace in verdict.refused
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
