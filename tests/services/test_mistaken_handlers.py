"""What the author of a handler is told: types that no kind has, and records at which it fails."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from rocket_rides.settings import PROJECT
from tests.support.disasters import flush
from tests.support.listing import Listing, hurry, listing
from tests.support.world import Service, World, eventually
from unified_log.errors import Overtaken, RecordRefused
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
    CREATE ROLE {role} LOGIN;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role};
    GRANT SELECT ON SEQUENCE log_position TO {role};
    REVOKE ALL ON log_kinds FROM {role}
"""
RIDES = "{'ride.create': id}"
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
    role = f"{world.stream}_role"
    world.connection.execute(RIGHTS.format(role=role).encode(), prepare=False)
    yield replace(world, postgres_url=world.postgres_url.replace("postgres@", f"{role}@"))
    world.connection.execute(f"DROP OWNED BY {role} CASCADE".encode())
    world.connection.execute(f"DROP ROLE {role}".encode())


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


@pytest.mark.parametrize("error", [psycopg.OperationalError("gone"), Overtaken("gone")])
def test_an_outage_has_nothing_to_do_with_the_records(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    world.send(1)
    reader = listing(world)
    monkeypatch.setattr(Listing, "take", fails(error))
    assert notes_of(reader, type(error)) == []
