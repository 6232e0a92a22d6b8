"""What the author of a handler is told: types that no kind has, and records at which it fails."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from consumers.rides import TYPE, Ride, ride
from migrations import upgrade
from rocket_rides.settings import PROJECT
from tests.support.disasters import flush
from tests.support.entries import named
from tests.support.listing import Listing, hurry, listed, listing
from tests.support.refusing import held
from tests.support.roles import as_role
from tests.support.world import Service, World, drain, eventually
from unified_log.errors import Overtaken, RecordRefused
from unified_log.log import Invalid, Record
from unified_log.readers.reader import Reader

HANDLER = """
from unified_log.readers import running
from unified_log.readers.handler import Handler


class Mine(Handler):
    KIND = "mine"
    TYPES = {types}

    def take(self, records):
        {take}


running.main(Mine, None)
"""
RIGHTS = """
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role};
    GRANT SELECT ON SEQUENCE log_position TO {role};
    REVOKE ALL ON log_kinds FROM {role}
"""
RIDES = "{'ride.create': id}"
IN_LATIN1 = "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
UNKNOWN = "no kind of this log has the type"
END_SESSION = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ~ 'one'"
)


def started(world: World, types: str, take: str = "pass") -> Service:
    folder = Path(world.folder, "mine")
    folder.mkdir()
    Path(folder, "mine.py").write_text(HANDLER.format(types=types, take=take))
    return world.service("mine", "one", PYTHONPATH=f"{folder}:{PROJECT}")


@pytest.fixture
def limited(world: World) -> Iterator[World]:
    """The same world, for a role that may not read which kinds there are."""
    with as_role(world, RIGHTS) as limited:
        yield limited


def test_a_type_that_no_kind_has_is_told_once(world: World) -> None:
    process = started(world, "{'ride.create': id, 'ride.creat': id, 'a.b': id}")
    process.says("one stands at")
    world.connection.execute(END_SESSION)
    eventually(lambda: process.output.read_text().count("one stands at") == 2, "another session")
    said = process.output.read_text()
    assert said.count(UNKNOWN) == 1
    assert f"one: {UNKNOWN} 'a.b' or 'ride.creat': nothing comes of it until one is" in said


def test_types_that_kinds_have_are_not_mentioned(world: World) -> None:
    process = started(world, "{'ride.create': id, 'rating.create': id}").says("one stands at")
    assert UNKNOWN not in process.output.read_text()


def test_a_role_that_may_not_read_the_kinds_reads_the_log(world: World, limited: World) -> None:
    ids = world.send(1, 2)
    process = started(limited, "{'ride.create': id, 'a.b': id}").says("one stands at")
    eventually(lambda: world.value("SELECT position FROM checkpoints") == ids[-1])
    assert UNKNOWN not in process.output.read_text()
    process.kill()


def test_an_error_of_pythons_ends_the_process_and_names_the_records(world: World) -> None:
    ids = world.send(1, 2, 3)
    process = started(world, RIDES, take="1 / 0")
    assert process.ends() == 1
    note = f"while it took ride.create, positions {ids[0]} to {ids[-1]}\n"
    assert process.output.read_text().endswith(f"ZeroDivisionError: division by zero\n{note}")


@pytest.mark.parametrize("is_lost", [False, True])
def test_so_does_one_of_the_function_that_parses(world: World, is_lost: bool) -> None:
    ids = world.send(1)
    if is_lost:
        flush(world)
    process = started(world, "{'ride.create': lambda record: 1 / 0}")
    assert process.ends() == 1
    note = f"while it parsed ride.create, position {ids[0]}\n"
    assert process.output.read_text().endswith(f"ZeroDivisionError: division by zero\n{note}")


def notes_of(reader: Reader[Listing], error: type[Exception]) -> list[str]:
    with pytest.raises(error) as raised:
        hurry(reader)
    return getattr(raised.value, "__notes__", [])


def fails(error: Exception) -> Callable[[object, object], None]:
    def take(_handler: object, _records: object) -> None:
        raise error

    return take


def test_so_does_one_at_a_retry(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    [position] = world.send(1)
    reader = listing(world)
    monkeypatch.setattr(Listing, "take", fails(RecordRefused("no")))
    hurry(reader)
    world.connection.execute("UPDATE held_out_records SET retry = true")
    monkeypatch.setattr(Listing, "take", fails(KeyError("distance")))
    assert notes_of(reader, KeyError) == [f"while it took ride.create, position {position}"]


def test_an_outage_has_nothing_to_do_with_the_records(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.send(1)
    reader = listing(world)
    for error in (psycopg.OperationalError("gone"), Overtaken("gone")):
        monkeypatch.setattr(Listing, "take", fails(error))
        assert notes_of(reader, type(error)) == []


@pytest.mark.parametrize("quoted", ["a\0b", "a\ud800b"])
def test_a_reason_that_quotes_what_no_text_holds_stops_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, quoted: str
) -> None:
    """From an entry that somebody else has appended: Postgres takes neither."""

    def parse(record: Record) -> Ride:
        if record.data == b"colour":
            raise Invalid(f"there is no colour {quoted}")
        return ride(record)

    monkeypatch.setattr(Listing, "TYPES", {TYPE: parse})
    reader = listing(world)
    streamer = world.streamer()
    position, *_ = world.take(1, 2)
    world.log().redis.xadd(world.stream, named(position, "colour", 0, streamer.term.name))
    drain(streamer)
    hurry(reader)
    assert listed(world) == [position, position + 1]
    kept = world.connection.execute("SELECT reason FROM malformed_entries").fetchall()
    assert kept == [(f"there is no colour {ascii(quoted)[1:-1]}",)]


@pytest.fixture
def latin(world: World) -> Iterator[World]:
    """The same world in a database that has letters for few languages."""
    name = f"{world.stream}_latin"
    world.connection.execute(f"CREATE DATABASE {name} {IN_LATIN1}".encode())
    url = world.postgres_url.replace(f"/{world.stream}?", f"/{name}?")
    upgrade(url)
    with ExitStack() as exits:
        yield replace(world, postgres_url=url, own_connection=None, exits=exits)
    world.connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_a_reason_that_the_database_has_no_letters_for_is_told_in_ascii(
    latin: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(record: Record) -> Ride:
        if record.data == b"colour":
            raise Invalid("no \N{RIGHTWARDS ARROW}")
        return ride(record)

    monkeypatch.setattr(Listing, "TYPES", {TYPE: parse})
    reader = listing(latin)
    monkeypatch.setattr(Listing, "take", fails(RecordRefused("no \N{RIGHTWARDS ARROW}")))
    position = latin.start + 1
    streamer = latin.streamer()
    latin.take(1)
    latin.log().redis.xadd(latin.stream, named(position, "colour", 0, streamer.term.name))
    drain(streamer)
    hurry(reader)
    latin.connection.execute("UPDATE held_out_records SET retry = true")
    hurry(reader)
    assert [row[:4] for row in held(latin)] == [(position, None, "no \\u2192", 2)]
    kept = latin.connection.execute("SELECT reason FROM malformed_entries").fetchall()
    assert kept == [("no \\u2192",)]
