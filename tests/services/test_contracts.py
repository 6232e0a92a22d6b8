"""The contracts in contracts/ are valid, and true of what is sent; a reader needs nothing else."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft202012Validator, FormatChecker

import tests.support
from consumers.ratings.stars import TYPE as RATING
from consumers.ratings.stars import rating
from consumers.receipts.receipt import Receipt
from consumers.rides import ride
from lab.contracts import FOLDER
from tests.support.entries import RATE, RIDE, named
from tests.support.npm import installed
from tests.support.ruby import RUBY, needs_ruby
from tests.support.world import World, drain
from unified_log.log import Invalid, Record

PROGRAM = Path(tests.support.__file__).with_name("log_reader.rb")
SPECIFICATIONS = "@asyncapi/specs@6.11.1"  # of the AsyncAPI Initiative

STREAM = json.loads((FOLDER / "log.asyncapi.json").read_text())
CONTRACTS = {
    path.stem: json.loads(path.read_text())
    for path in sorted(FOLDER.glob("*.json"))
    if "asyncapi" not in path.name
}


def validator(type_: str) -> Any:
    return Draft202012Validator(CONTRACTS[type_], format_checker=FormatChecker())


@pytest.mark.parametrize("type_", CONTRACTS)
def test_each_is_a_json_schema_with_an_example(type_: str) -> None:
    Draft202012Validator.check_schema(CONTRACTS[type_])
    [example] = CONTRACTS[type_].get("examples", ["each field needs one"])
    validator(type_).validate(example)


def test_the_stream_is_described_as_asyncapi_has_it() -> None:
    published = json.loads((installed(SPECIFICATIONS) / "schemas/3.0.0.json").read_text())
    Draft7Validator(published).validate(STREAM)
    assert not Draft7Validator(published).is_valid(STREAM | {"operations": {"follow": {}}})


RIDES = ["0.001", "1", "999999999.999", "1e3", "0", "-1", "1000000000", '"1"', "null", "true", "[]"]


@pytest.mark.parametrize(
    ("type_", "parse", "data"),
    [
        *(("ride.create", ride, f'{{"id": 5, "distance": {distance}}}') for distance in RIDES),
        ("ride.create", ride, '{"id": 5}'),
        ("ride.create", ride, '{"id": "5", "distance": 1}'),
        ("ride.create", ride, '{"id": 5, "distance": 1, "later": {}}'),
        *(
            ("rating.create", rating, f'{{"id": 5, "ride_id": 3, "stars": {stars}}}')
            for stars in ("1", "5", "0", "6", "2.5", '"5"')
        ),
        ("rating.create", rating, '{"id": 5, "stars": 1}'),
    ],
)
def test_the_function_that_parses_a_type_takes_what_its_contract_allows(
    type_: str, parse: Callable[[Record], object], data: str
) -> None:
    try:
        parse(Record(5, type_.encode(), data.encode(), 4))
        taken = True
    except Invalid:
        taken = False
    assert validator(type_).is_valid(json.loads(data)) == taken


def test_a_receipt_is_as_its_contract_has_it() -> None:
    taken = datetime(2026, 11, 22, 8, 30, tzinfo=UTC)
    for distance in "0.001", "539.837", "999999999.999":
        body = Receipt(521, Decimal(distance), taken, "msg_1").body()
        validator("ride.receipt").validate(json.loads(body))
    assert not validator("ride.receipt").is_valid(json.loads(body) | {"timestamp": "yesterday"})


def rated(world: World) -> None:
    world.connection.execute(RATE, [world.start + 1, 5])


def test_each_kind_of_the_log_has_a_contract_which_its_records_fit(world: World) -> None:
    world.take("539.837", 1)
    rated(world)
    kinds = {type_ for (type_,) in world.connection.execute("SELECT type FROM log_kinds")}
    assert STREAM["channels"]["log"]["messages"].keys() == kinds
    records = world.connection.execute("SELECT type, data::text FROM staged_log_records").fetchall()
    for type_, data in records:
        validator(type_).validate(json.loads(data))
    assert {type_ for type_, _ in records} == {RIDE, RATING}


@contextmanager
def reader_in_ruby(world: World) -> Iterator[Callable[[], tuple[int, Decimal, Any]]]:
    """Has it read to the end; returns where it stands, its total, and the gaps it has met."""
    log = world.log()
    socket = log.redis.connection_pool.connection_kwargs["path"]
    psql = str(world.postgres.programs / "psql")
    where = [world.stream, socket, psql, world.postgres_url, str(world.start)]
    command = [*RUBY, str(PROGRAM), str(FOLDER / "log.asyncapi.json"), *where, RIDE, "distance"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout

        def catch_up() -> tuple[int, Decimal, Any]:
            print("on", file=process.stdin, flush=True)
            said = json.loads(process.stdout.readline())  # type: ignore[union-attr]
            return said["position"], Decimal(said["total"]), said["gaps"]

        yield catch_up
        process.stdin.close()  # it ends by itself
        assert process.wait() == 0


@needs_ruby
def test_a_reader_in_ruby_that_knows_only_the_contracts_has_the_exact_total(world: World) -> None:
    redis, key = world.log().redis, world.stream
    with reader_in_ruby(world) as catch_up:
        first, *_ = world.take("539.837", "0.1", "0.2", "999999999.999")
        rated(world)
        redis.xadd(key, {"data": "nonsense", "prev": "1"})
        redis.xadd(key, {b"id": b"\xff", "type": RIDE, "data": "{}", "prev": "0"})
        ours = f'{{"id": {first}, "distance": 9.5}}'
        redis.xadd(key, named(first, ours, world.start, "0123456789abcdef"))
        streamer = world.streamer(batch_size=2)
        streamer.run_once(double_send=True)
        drain(streamer)
        assert catch_up() == (*world.truth, [])
        counted = world.truth
        [later] = world.take("0.3")
        sent = f'{{"id": {later}, "distance": 0.3}}'
        forged = f'{{"id": {later}, "distance": 9.5}}'
        for position, data, prev in (
            (later, forged, later + 1),
            (f"{later}\n1", forged, counted[0]),
            (later, forged.replace("id", "of"), counted[0]),
            (later, sent, counted[0]),
        ):
            redis.xadd(key, named(position, data, prev, streamer.term.name))
        assert catch_up() == (*counted, [])  # the streamer has not committed it
        drain(streamer)
        assert catch_up() == (*world.truth, [])
        lost, newest = world.send("0.4", "0.5")
        redis.xtrim(key, maxlen=1, approximate=False)
        assert catch_up() == (*world.truth, [[later, lost]])
        world.send("0.6")
        redis.delete(key)
        assert catch_up() == (*world.truth, [[newest, newest + 1]])
