"""Readers count what they heal, skip and find malformed in the transactions that do it: exactly."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import pytest

from consumers.rollup import marker
from tests.support.disasters import lose, stranded
from tests.support.facts import counts
from tests.support.looks import reader, seen
from tests.support.rollup import hurry, lead
from tests.support.world import World, catch_up, drain, eventually
from unified_log.database import one_row
from unified_log.log import Log
from unified_log.repair import repair
from unified_log.terms import RESTORE_STATE
from watch.facts import Counts

CRASHES = "SELECT coalesce(max(crashes_injected), 0) FROM checkpoints WHERE name = %s"
COUNTED_AT = "SELECT counted_at FROM checkpoints WHERE kind = 'total'"


def send(world: World, *distances: str | float, twice: bool = False) -> None:
    """Take rides and send them, all in one batch."""
    world.take(*distances)
    world.streamer().run_once(double_send=twice)


def add_nonsense(log: Log) -> None:
    log.redis.xadd(log.name, {"data": "nonsense", "prev": "0"})


def eventful(world: World) -> Counts:
    """A log with a re-send, two gaps and two entries that are no records; returns what it holds."""
    send(world, 1, 2, 3, twice=True)
    send(world, *[f"{n}.007" for n in range(4, 12)])
    lost = lose(world, 5, 6, 9)
    for _ in range(2):
        add_nonsense(world.log())
    return counts(
        gaps_healed=2,
        records_healed=3,
        distance_healed=lost,
        resends_skipped=3,
        entries_malformed=2,
    )


def test_what_a_reader_meets_is_counted_once_however_it_is_batched(world: World) -> None:
    expected = eventful(world)
    for name, batch_size in (("few", 4), ("all", 1000)):
        catch_up(world.consumer(name, batch_size=batch_size))
        assert reader(seen(world), name).counts == expected
    assert world.value("SELECT count(*) FROM malformed_entries") == 2 * 2


def test_a_reader_tells_when_it_last_counted_a_ride(world: World) -> None:
    """Not when it skipped one, or met a malformed one."""

    consumer = world.consumer()

    def counted_at() -> datetime | None:
        catch_up(consumer)
        found: datetime | None = one_row(world.connection.execute(COUNTED_AT))[0]
        return found

    assert counted_at() is None
    send(world, 1, twice=True)
    first = counted_at()
    assert first is not None
    add_nonsense(world.log())
    assert counted_at() == first
    send(world, 2)
    second = counted_at()
    assert second is not None
    assert second > first


@pytest.mark.proves("counted")
@pytest.mark.parametrize(("batch_size", "piece"), [(4, 1), (1000, 3)])
def test_the_rollup_counts_each_ride_of_a_gap_once_in_however_many_pieces(
    world: World, monkeypatch: pytest.MonkeyPatch, piece: int, batch_size: int
) -> None:
    """And no entry of a batch that a piece has cut off as a re-send, or twice."""
    monkeypatch.setattr(marker, "PIECE", piece)
    expected = replace(eventful(world), distance_healed=Decimal(0))  # only totals count metres
    hurry(lead(world, batch_size))
    assert reader(seen(world), "rollup").counts == expected


def test_what_a_new_lead_marks_again_is_healed_only_if_the_log_never_told_of_it(
    world: World,
) -> None:
    send(world, 1, 2)
    for _ in range(2):  # of which the second gets no further than the first
        before = lead(world)
        before.reader.run_once()
        before.connection.close()
    assert world.value("SELECT complete_to FROM rollup_state") == world.start
    send(world, 4, 8)
    world.log().start_anew()
    hurry(lead(world))
    assert world.value("SELECT sum(rides) FROM ride_minutes") == 4
    healed = counts(gaps_healed=1, records_healed=2)
    assert reader(seen(world), "rollup").counts == healed


def test_a_lead_that_dies_while_it_marks_again_heals_nothing_twice(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does the lead after it: how far it was ever marked is kept, not where that lead was."""
    send(world, *[1] * 8)
    lose(world, 3, 4)
    lead(world, 4).reader.run_once()
    monkeypatch.setattr(marker, "PIECE", 2)
    for expected in (2, 4):
        dying = lead(world)
        assert dying.reader.at.position == world.start
        while dying.reader.at.position < world.start + expected:
            dying.reader.run_once()
        dying.connection.close()
    hurry(lead(world))
    assert world.value("SELECT sum(rides) FROM ride_minutes") == 8
    healed = counts(gaps_healed=1, records_healed=2)
    assert reader(seen(world), "rollup").counts == healed


def test_a_process_counts_its_injected_crashes(world: World) -> None:
    world.service("streamer").says("leading")
    processes = {
        "consumer0": world.service("consumers.totals", "consumer0", CRASH_RATE="0.5"),
        "rollup": world.service("consumers.rollup", CRASH_RATE="0.5"),
    }

    def have_crashed() -> bool:
        world.take(1)
        # More than three, were they counted again and again.
        return all(world.value(CRASHES, name) >= 6 for name in processes)

    eventually(have_crashed)
    for name, process in processes.items():
        assert process.stop() == 0
        said = process.output.read_text().count("injected crash")
        assert said - 1 <= world.value(CRASHES, name) <= said


def test_records_sent_and_staged_are_all_rides(world: World) -> None:
    """Be they sent twice, or repaired, or be the row lost and restored."""

    def is_exact() -> bool:
        sent = world.value("SELECT records_sent FROM streamer_state")
        return sent + world.staged() == world.value("SELECT count(*) FROM rides")

    stranded(world)
    assert is_exact()
    repair(world.connect())
    assert world.staged() == 0
    assert is_exact()
    send(world, 1, 2, twice=True)
    world.take(3)
    assert is_exact()
    assert drain(world.streamer()) == 1
    assert is_exact()
    world.connection.execute("DELETE FROM streamer_state")
    world.connection.execute(RESTORE_STATE)
    assert is_exact()
