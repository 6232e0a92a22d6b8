"""The proof can fail, for the counts: each one miscounted on purpose, by a trigger, and reported.

The same without a trigger is found to be right.
"""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from consumers import running
from consumers.report import Report
from consumers.totals.total import Total
from lab.chaos.accounts import account
from lab.chaos.counts import read_counts
from lab.chaos.counts_checker import CLAIMS
from lab.chaos.derived import read_receipts
from lab.chaos.evidence import Evidence, read_final_state
from rocket_rides import process
from rocket_rides.settings import Settings
from tests.support.counts import lose
from tests.support.receipts import Staff, sent
from tests.support.receiver import ACCEPT, refuse
from tests.support.world import World

BATCH_SIZE = 5
MISCOUNT = """
    CREATE FUNCTION miscount_{0}() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN {1}; RETURN NEW; END $$;
    CREATE TRIGGER miscount BEFORE UPDATE ON {0} FOR EACH ROW EXECUTE FUNCTION miscount_{0}()
"""
TWICE = "NEW.{0} := NEW.{0} + (NEW.{0} - OLD.{0})"
NEVER = "NEW.{0} := OLD.{0}"
OF_A_READER = {
    "gaps_healed": "gaps healed, and not 2 to 2",
    "rides_healed": "rides healed, and not 3 to 3",
    "distance_healed": "m healed, and not 8.100 to 8.100",
    "resends_skipped": "re-sends skipped, and not 37 to 37",
    "crashes_injected": "crashes injected, and not",
    "entries_set_aside": "entries set aside of 1",
}
OF_WORKERS = {"delivered": "receipts delivered of 7", "dead": "receipts dead of 2"}


@contextmanager
def written_to(file: Path) -> Iterator[None]:
    """What a consumer says, each line with its time, as chaos keeps it."""
    handler = logging.FileHandler(file)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S"))
    chatty = logging.getLogger()
    before = chatty.level
    chatty.addHandler(handler)
    chatty.setLevel(logging.INFO)
    try:
        yield
    finally:
        chatty.removeHandler(handler)
        chatty.setLevel(before)
        handler.close()


def consumed(world: World, log: Path) -> None:
    """Let a consumer count all rides, in the way of a process, with crashes."""
    config = Settings(
        database_url=world.postgres_url,
        redis_url=world.redis.url,
        stream_name=world.stream,
        batch_size=BATCH_SIZE,
        crash_rate=0.5,
    )
    last, stop = world.truth[0], process.Stop()
    idle = 0

    def until_all_is_read(done: Any, reader: Any) -> None:
        nonlocal idle
        idle = idle + 1 if reader.at.ride_id == last and not done.skipped and not done.dead else 0
        if idle:
            stop.ask()

    with written_to(log):
        running.run("consumer0", Total, [Report("consumer0"), until_all_is_read], config, stop)


def readers(world: World, log: Path) -> list[str]:
    """Re-sends, two gaps, nonsense and crashes."""
    world.take(*["2.7"] * 40)
    world.streamer().run_once(double_send=True)
    lose(world, 11, 12, 30)
    nonsense: dict[Any, Any] = {"data": "nonsense", "prev": "0"}
    world.log().redis.xadd(world.stream, nonsense)
    consumed(world, log)
    return judged(world, accounts={("total", "consumer0"): account([(log, [])])})


def workers(staff: Staff) -> list[str]:
    """Nine receipts, of which two are refused."""
    sent(staff.world, 9)
    staff.receiver.behaviour = lambda r: refuse(422) if r.ride_id in (3, 4) else ACCEPT
    staff.worker("one").until(lambda: staff.outcomes() + staff.outcomes("dead") == 9)
    with redis.Redis.from_url(staff.world.redis.url) as client:
        receipts = read_receipts(staff.world.connection, client, staff.world.stream)
    return judged(staff.world, receipts=receipts)


def judged(world: World, **others: Any) -> list[str]:
    evidence = Evidence(
        [],
        read_final_state(world.connection),
        [],
        counts=read_counts(world.connection),
        batch_size=BATCH_SIZE,
        **others,
    )
    return [finding for claim in CLAIMS for finding in claim(evidence)]


def miscount(world: World, table: str, how: str, columns: Iterable[str]) -> None:
    changes = "; ".join(how.format(column) for column in columns)
    world.connection.execute(MISCOUNT.format(table, changes), prepare=False)


@pytest.mark.parametrize("how", [NEVER, TWICE], ids=["never", "twice"])
def test_what_a_reader_does_not_count_once_is_reported(
    world: World, tmp_path: Path, how: str
) -> None:
    miscount(world, "checkpoints", how, OF_A_READER)
    miscounted = sorted(readers(world, tmp_path / "consumer0.log"))
    assert len(miscounted) == len(OF_A_READER)
    for expected in OF_A_READER.values():
        assert any(expected in finding for finding in miscounted)


@pytest.mark.parametrize("how", [NEVER, TWICE], ids=["never", "twice"])
def test_what_a_worker_or_the_streamer_does_not_count_once_is_reported(
    staff: Staff, how: str
) -> None:
    staff.world.connection.execute("INSERT INTO receipts_workers (name) VALUES ('one')")
    miscount(staff.world, "receipts_workers", how, OF_WORKERS)
    miscount(staff.world, "streamer_state", how, ["records_sent"])
    found = workers(staff)
    assert len(found) == 3
    for expected in (*OF_WORKERS.values(), "records sent of 9"):
        assert any(expected in finding for finding in found)


def test_the_same_without_sabotage_is_found_to_be_right(staff: Staff, tmp_path: Path) -> None:
    assert workers(staff) == []
    assert readers(staff.world, tmp_path / "consumer0.log") == []
