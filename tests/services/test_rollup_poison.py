"""A minute that can't be computed is set aside with its reason, and stops nothing else."""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

import psycopg
import pytest

from consumers.rollup import indexer, minutes
from consumers.rollup.lead import Lead
from consumers.rollup.set_aside import main
from consumers.rollup.step import RollupStep
from tests.support.api import Api
from tests.support.disasters import trigger
from tests.support.rollup import complete_to, hurry, is_complete, kept, lead, send_at, work
from tests.support.world import World, eventually, transaction
from unified_log.faults import listening

POISON = """
    ALTER TABLE ride_minutes ADD CONSTRAINT poison
    CHECK (minute <> '2026-03-01 10:01Z' OR rides < 2)
"""
FAST = "DROP TRIGGER slow ON ride_minutes"
CURE = "ALTER TABLE ride_minutes DROP CONSTRAINT poison"
RIDES = [(f"2026-03-01 10:{minute:02}:{second:02}Z", 1) for minute in range(5) for second in (0, 1)]
ASIDE = "SELECT minute::text, lowest_ride_id, attempts, reason FROM set_aside_minutes"


class Answer(NamedTuple):
    """What the command printed, and how it ended."""

    output: str
    status: object


Command = Callable[..., Answer]


@pytest.fixture
def aside(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """`python -m consumers.rollup.set_aside`, in this process."""

    def run(*arguments: str, database_url: str = world.postgres_url) -> Answer:
        monkeypatch.setenv("DATABASE_URL", database_url)
        monkeypatch.setattr("sys.argv", ["aside", *arguments])
        try:
            main()
        except SystemExit as end:
            return Answer(capsys.readouterr().out, end.code)
        return Answer(capsys.readouterr().out, 0)

    return run


def test_a_poisonous_minute_is_set_aside_seen_and_tried_again(
    world: World, api: Api, aside: Command
) -> None:
    assert aside("list").output == "no minute is set aside\n"
    world.connection.execute(POISON)
    send_rides = send_at(world, *RIDES)
    process = world.service("consumers.rollup").says("set aside minute 2026-03-01 10:01:00+00")
    lowest = send_rides[2]
    eventually(lambda: complete_to(world) == lowest - 1)
    world.send(5)
    eventually(lambda: len(kept(world)) == 5, "the other minutes, and the one of a new ride")
    assert complete_to(world) == lowest - 1

    [line] = aside("list").output.splitlines()
    assert line.startswith(f"2026-03-01T10:01:00Z  from ride {lowest} on, 3 attempts: ")
    assert 'violates check constraint "poison"' in line
    shown = api.client.get(
        "/hours", params={"from": "2026-03-01T10:00:00Z", "to": "2026-03-01T11:00:00Z"}
    ).json()
    assert shown["set_aside"] == ["2026-03-01T10:01:00Z"]
    assert shown["complete_to"] == lowest - 1
    assert shown["hours"][0]["rides"] == 8

    assert "3 attempts, to be tried again: " in aside("retry").output
    eventually(lambda: world.value("SELECT attempts FROM set_aside_minutes") == 4)
    world.connection.execute(CURE)
    assert aside("retry").status == 0
    eventually(lambda: is_complete(world))
    assert world.value("SELECT count(*) FROM set_aside_minutes") == 0
    assert process.stop() == 0


def test_another_ride_in_the_minute_has_it_tried_again(world: World) -> None:
    world.connection.execute(POISON)
    send_at(world, *RIDES)
    leading = lead(world)
    hurry(leading)
    [(minute, lowest, attempts, reason)] = world.connection.execute(ASIDE)
    third = world.start + 3
    assert (minute, lowest, attempts) == ("2026-03-01 10:01:00+00", third, 3)
    assert "poison" in reason
    send_at(world, ("2026-03-01 10:01:02Z", 1))
    hurry(leading)
    [(_, lowest, attempts, _)] = world.connection.execute(ASIDE)
    assert (lowest, attempts, complete_to(world)) == (third, 4, third - 1)
    world.connection.execute(CURE)
    send_at(world, ("2026-03-01 10:01:03Z", 1))
    hurry(leading)
    assert is_complete(world)


def test_a_minute_whose_row_is_locked_waits_alone_and_is_computed_afterwards(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is nobody's fault: it is not set aside, and the other minutes don't wait for it."""
    monkeypatch.setattr(minutes, "LONGEST_LOCK", "50ms")
    send_at(world, *RIDES)
    leading = lead(world)
    hurry(leading)
    with transaction(world) as holding:
        holding.execute("SELECT FROM ride_minutes WHERE minute = '2026-03-01 10:01Z' FOR UPDATE")
        send_at(world, *RIDES)
        rounds(leading, 12)
        assert [rides for _, rides, _ in kept(world)] == [4, 2, 4, 4, 4]
        assert complete_to(world) == world.start + 12
        assert world.value("SELECT count(*) FROM set_aside_minutes") == 0
    hurry(leading)
    assert is_complete(world)


def test_a_minute_that_takes_too_long_holds_up_the_others_for_a_bounded_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "SHORT", "300ms")
    monkeypatch.setattr(indexer, "LONG", "600ms")
    slowly = "IF new.minute = '2026-03-01 10:01Z' THEN PERFORM pg_sleep(5); END IF; RETURN new;"
    trigger(world, "slow", "BEFORE INSERT ON ride_minutes", slowly)
    send_at(world, *RIDES)
    leading = lead(world)
    tried: list[int] = []

    def count(step: Enum) -> None:
        if step is RollupStep.AFTER_COMPUTING:
            tried.append(len(kept(world)))

    with listening(count):
        hurry(leading)
    assert [rides for _, rides, _ in kept(world)] == [2, 2, 2, 2]
    assert tried[-2:] == [4, 4]  # the others are done before it is given a long time
    [(minute, lowest, attempts, reason)] = world.connection.execute(ASIDE)
    assert (minute, lowest, attempts) == ("2026-03-01 10:01:00+00", world.start + 3, 3)
    assert "statement timeout" in reason
    send_at(world, ("2026-03-01 10:01:02Z", 1), ("2026-03-01 10:09:00Z", 1))
    hurry(lead(world))  # which knows it, and tries it once
    assert world.value("SELECT attempts FROM set_aside_minutes") == 4
    assert len(kept(world)) == 5
    monkeypatch.undo()  # the only try there is has as long as it needs
    world.connection.execute(FAST)
    world.connection.execute("UPDATE set_aside_minutes SET retry = true")
    hurry(lead(world))
    assert is_complete(world)


def test_a_minute_that_is_locked_at_its_long_try_has_the_long_time_afterwards(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "SHORT", "100ms")
    monkeypatch.setattr(minutes, "LONGEST_LOCK", "50ms")
    send_at(world, *RIDES)
    leading = lead(world)
    hurry(leading)
    slowly = "IF new.minute = '2026-03-01 10:01Z' THEN PERFORM pg_sleep(0.3); END IF; RETURN new;"
    trigger(world, "slow", "BEFORE INSERT ON ride_minutes", slowly)
    with transaction(world) as holding:
        holding.execute("SELECT FROM ride_minutes WHERE minute = '2026-03-01 10:01Z' FOR UPDATE")
        send_at(world, ("2026-03-01 10:01:02Z", 1))
        rounds(leading, 12)
    hurry(leading)
    assert is_complete(world)


def test_many_bad_minutes_are_tried_one_in_each_round_but_without_a_pause(world: World) -> None:
    world.connection.execute("ALTER TABLE ride_minutes ADD CONSTRAINT poison CHECK (rides < 2)")
    send_at(world, *RIDES)
    leading = lead(world)
    leading.reader.run_once()
    upto, pauses = leading.reader.at.position, 0
    while world.value("SELECT count(*) FROM set_aside_minutes") < 5:
        pauses += not leading.indexer.run_once(upto)
    assert pauses <= indexer.ATTEMPTS
    world.connection.execute("UPDATE set_aside_minutes SET retry = true")
    for left in (4, 3, 2, 1, 0):
        assert leading.indexer.run_once(upto)
        assert world.value("SELECT count(*) FROM set_aside_minutes WHERE retry") == left


def rounds(leading: Lead, count: int) -> None:
    for _ in range(count):
        work(leading)


def test_a_ride_of_no_minute_is_set_aside(world: World) -> None:
    times = ("2026-03-01 10:00Z", "-infinity", "294276-12-31 23:59:59Z", "2026-03-01 10:01Z")
    send_at(world, *((time, 1) for time in times))
    hurry(lead(world))
    assert [rides for _, rides, _ in kept(world)] == [1, 1]
    assert complete_to(world) == world.start + 1
    assert world.value("SELECT count(*) FROM set_aside_minutes") == 2


def test_a_disk_that_is_full_is_no_minutes_fault(world: World) -> None:
    """Though a minute could still be set aside."""
    trigger(world, "full_disk", "BEFORE INSERT ON ride_minutes", "RAISE SQLSTATE '53100';")
    send_at(world, *RIDES)
    leading = lead(world)
    leading.reader.run_once()
    for _ in range(5):
        with pytest.raises(psycopg.errors.DiskFull):
            leading.indexer.run_once(leading.reader.at.position)
    assert world.value("SELECT count(*) FROM set_aside_minutes") == 0


def test_the_command_says_in_one_line_what_keeps_it_from_working(aside: Command) -> None:
    reason = str(aside("list", database_url="postgresql:///x?host=/nowhere").status)
    assert reason.startswith("Postgres can't be reached")
    assert len(reason.splitlines()) == 1
