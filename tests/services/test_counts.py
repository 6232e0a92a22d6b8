"""Readers count what they heal, skip and set aside in the transactions that do it: exactly."""

import random
from datetime import datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from consumers.checkpoint import Checkpoint
from consumers.crashes import Crashes
from consumers.rollup import marker
from consumers.round import Step
from rocket_rides.database import one_row
from rocket_rides.errors import Overtaken
from rocket_rides.faults import InjectedCrash, crash_at
from rocket_rides.log import Log
from rocket_rides.terms import RESTORE_STATE
from streamer.mend import mend
from tests.support.counts import Counts, counts, lose
from tests.support.disasters import flush, stranded
from tests.support.resets import ask
from tests.support.rollup import hurry, lead
from tests.support.world import World, catch_up, drain, eventually

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
    return Counts(2, 3, lost, skipped=3, set_aside=2)


@pytest.mark.parametrize("batch_size", [1, 4, 1000])
def test_what_a_reader_meets_is_counted_once_however_it_is_batched(
    world: World, batch_size: int
) -> None:
    expected = eventful(world)
    catch_up(world.consumer(batch_size=batch_size))
    assert counts(world) == expected
    assert world.value("SELECT count(*) FROM dead_letters") == 2


@pytest.mark.parametrize("step", Step)
def test_a_crash_before_the_commit_counts_nothing(world: World, step: Step) -> None:
    expected = eventful(world)
    with pytest.raises(InjectedCrash), crash_at(step):
        world.consumer().run_once()
    assert counts(world) == (expected if step is Step.AFTER_COMMIT else Counts())
    catch_up(world.consumer())
    assert counts(world) == expected


def test_of_two_processes_of_one_name_only_the_first_counts(world: World) -> None:
    expected = eventful(world)
    one, other = world.consumer(), world.consumer()
    one.run_once()
    with pytest.raises(Overtaken):
        other.run_once()
    assert counts(world) == expected


def test_a_missing_tail_and_a_log_that_was_wiped_are_healed_gaps(world: World) -> None:
    send(world, 1)
    consumer = world.consumer()
    catch_up(consumer)
    send(world, 2, 3)
    flush(world)
    catch_up(consumer)
    assert counts(world) == Counts(1, 2, Decimal(5))


def test_an_entry_that_is_read_again_was_set_aside_before(world: World) -> None:
    add_nonsense(world.log())
    catch_up(world.consumer())
    world.connection.execute("UPDATE checkpoints SET last_redis_id = '0-0'")
    add_nonsense(world.log())
    catch_up(world.consumer())
    assert counts(world).set_aside == world.value("SELECT count(*) FROM dead_letters") == 2


def test_counting_costs_no_statement(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A usual batch: its bounds, a reset, the checkpoint with all counts, and the total."""
    consumer = world.consumer()
    catch_up(consumer)
    sent: list[str] = []
    execute = psycopg.Connection.execute

    def noting(self: psycopg.Connection, query: Any, *arguments: Any, **options: Any) -> Any:
        if self is consumer._connection:
            sent.append(str(query))
        return execute(self, query, *arguments, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", noting)
    send(world, 1, 2, twice=True)
    assert consumer.run_once().skipped == 2
    assert [words.split()[:2] for words in sent] == [
        ["SELECT", "last_sent_id,"],
        ["SELECT", "EXISTS"],
        ["UPDATE", "checkpoints"],
        ["UPDATE", "consumer_states"],
    ]


def test_a_reader_tells_when_it_last_counted_a_ride(world: World) -> None:
    """Not when it skipped one, or set an entry aside."""

    def counted_at() -> datetime | None:
        found: datetime | None = one_row(world.connection.execute(COUNTED_AT))[0]
        return found

    consumer = world.consumer()
    assert counted_at() is None
    send(world, 1, twice=True)
    consumer.run_once()
    first = counted_at()
    assert first is not None
    assert abs(one_row(world.connection.execute("SELECT now()"))[0] - first).total_seconds() < 30
    add_nonsense(world.log())
    catch_up(consumer)
    assert counted_at() == first
    send(world, 2)
    catch_up(consumer)
    second = counted_at()
    assert second is not None
    assert second > first


@pytest.mark.parametrize("step", [Step.BEFORE_COMMIT, Step.AFTER_COMMIT])
def test_a_reset_is_counted_with_what_it_changes(world: World, step: Step) -> None:
    send(world, 1)
    catch_up(world.consumer())
    ask(world)
    with pytest.raises(InjectedCrash), crash_at(step):
        world.consumer().run_once()
    assert counts(world).resets == (step is Step.AFTER_COMMIT)
    catch_up(world.consumer())
    assert counts(world).resets == 1


@pytest.mark.proves("counted")
@pytest.mark.parametrize("piece", [1, 3, 100])
@pytest.mark.parametrize("batch_size", [4, 1000])
def test_the_rollup_counts_each_ride_of_a_gap_once_in_however_many_pieces(
    world: World, monkeypatch: pytest.MonkeyPatch, piece: int, batch_size: int
) -> None:
    """And no entry of a batch that a piece has cut off as a re-send, or twice."""
    monkeypatch.setattr(marker, "PIECE", piece)
    expected = eventful(world)
    hurry(lead(world, batch_size))
    assert counts(world, "rollup", "rollup") == expected


def test_what_a_new_lead_marks_again_is_healed_only_if_the_log_never_told_of_it(
    world: World,
) -> None:
    send(world, 1, 2)
    for _ in range(2):  # of which the second gets no further than the first
        before = lead(world)
        before.reader.run_once()
        before.connection.close()
    assert world.value("SELECT complete_to FROM rollup_state") == 0
    send(world, 4, 8)
    world.log().start_anew()
    hurry(lead(world))
    assert world.value("SELECT sum(rides) FROM ride_minutes") == 4
    assert counts(world, "rollup", "rollup") == Counts(1, 2, Decimal(12))


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
        assert dying.reader.at.ride_id == 0
        while dying.reader.at.ride_id < expected:
            dying.reader.run_once()
        dying.connection.close()
    hurry(lead(world))
    assert world.value("SELECT sum(rides) FROM ride_minutes") == 8
    assert counts(world, "rollup", "rollup") == Counts(1, 2, Decimal(2))


def test_of_a_gap_that_a_new_lead_meets_only_the_rides_that_none_has_marked_are_healed(
    world: World,
) -> None:
    send(world, 1, 2, 4)
    lead(world).reader.run_once()
    send(world, 8, 16)
    world.log().start_anew()
    send(world, 32)
    hurry(lead(world))
    assert world.value("SELECT sum(rides) FROM ride_minutes") == 6
    assert counts(world, "rollup", "rollup") == Counts(1, 2, Decimal(24))


class Crashing:
    """A process of which only the crashes count."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.crashes = Crashes()
        world.consumer()

    def crash(self) -> None:
        with pytest.raises(InjectedCrash), self.crashes.noted():
            raise InjectedCrash(Step.BEFORE_COMMIT)

    def settle(self, connection: psycopg.Connection) -> int:
        self.crashes.settle(connection, Checkpoint(connection, "total", "consumer0"))
        return counts(self.world).crashes


def test_a_crash_is_counted_once_by_the_next_session(world: World) -> None:
    process, connection = Crashing(world), world.connect()
    assert process.settle(connection) == 0
    for number in (1, 2):
        process.crash()
        assert process.settle(connection) == process.settle(connection) == number


@pytest.mark.parametrize("is_committed", [False, True])
def test_a_crash_is_counted_once_though_the_answer_was_lost(
    world: World, is_committed: bool
) -> None:
    """The commit's; and whether it was committed or not, nobody knows."""
    process = Crashing(world)
    process.crash()
    lost = world.connect()
    commit = lost._exec_command

    def close_around_it(command: Any, *arguments: Any, **options: Any) -> Any:
        if bytes(command).upper() != b"COMMIT":
            return (yield from commit(command, *arguments, **options))
        if is_committed:
            yield from commit(command, *arguments, **options)
        lost.close()
        raise psycopg.OperationalError("the connection is lost")

    lost._exec_command = close_around_it  # type: ignore[method-assign]
    with pytest.raises(psycopg.OperationalError):
        process.settle(lost)
    assert counts(world).crashes == is_committed
    assert process.settle(world.connect()) == 1


def test_processes_count_their_injected_crashes(world: World) -> None:
    """A total, and the rollup."""
    processes = [
        world.service("consumers", "consumer0", CRASH_RATE="0.5"),
        world.service("consumers.rollup", CRASH_RATE="0.5"),
    ]
    world.service("streamer").says("leading")
    for process, name, kind in zip(
        processes, ("consumer0", "rollup"), ("total", "rollup"), strict=True
    ):

        def crashes(name: str = name, kind: str = kind) -> int:
            world.take(1)
            return counts(world, name, kind).crashes

        eventually(lambda crashes=crashes: crashes() >= 3)  # type: ignore[misc]
        assert process.stop() == 0
        said = process.output.read_text().count("injected crash")
        assert said - 1 <= counts(world, name, kind).crashes <= said


def test_a_consumer_that_is_killed_again_and_again_counts_exactly(world: World) -> None:
    """By SIGKILL, wherever that hits it, and by injected crashes between."""
    rides, lost = 1500, list(range(7, 1500, 10))
    world.take(*[f"{n}.001" for n in range(rides)])
    streamer = world.streamer(batch_size=50)
    while streamer.run_once(double_send=True):
        pass
    metres = lose(world, *lost)
    add_nonsense(world.log())
    resent = len(world.records()) - (rides - len(lost))
    kills = 0
    dice = random.Random(2611)
    while world.standing()[0] < rides:
        consumer = world.service("consumers", "consumer0", BATCH_SIZE="5", CRASH_RATE="0.02")
        consumer.says("stands at")
        goal = world.standing()[0] + dice.randint(1, 450)
        eventually(lambda goal=goal: world.standing()[0] >= min(goal, rides))  # type: ignore[misc]
        consumer.kill()
        kills += 1
    assert kills >= 3
    catch_up(world.consumer())
    assert world.standing() == world.truth
    crashes = sum(p.output.read_text().count("injected crash") for p in world.processes)
    found = counts(world)
    assert found == Counts(len(lost), len(lost), metres, resent, 1, found.crashes)
    assert crashes - kills <= found.crashes <= crashes


def test_records_sent_and_staged_are_all_rides(world: World) -> None:
    """Be they sent twice, or mended, or be the row lost and restored."""

    def is_exact() -> bool:
        sent = world.value("SELECT records_sent FROM streamer_state")
        return sent + world.staged() == world.value("SELECT count(*) FROM rides")

    stranded(world)
    assert is_exact()
    mend(world.connect())
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
