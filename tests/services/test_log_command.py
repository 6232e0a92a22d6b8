"""`python -m rocket_rides.log`: the entries of a range of time, and new ones, for people."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from demo.embedded.servers import Redis
from rocket_rides.log import LARGEST_ID, START, Log
from rocket_rides.log.__main__ import entries, parse_options
from rocket_rides.log.moments import shown
from rocket_rides.settings import PROJECT
from rocket_rides.terms import Term
from tests.support.folders import short_folder
from tests.support.forks import Process
from tests.support.world import PATIENCE, Service, World, drain, eventually, free_port

HOUR = 3_600_000  # milliseconds
TERM = Term("0123456789abcdef", 0)


def found(log: Log, *options: str) -> list[str]:
    """The ids of the entries that are asked for."""
    batches = entries(log, parse_options([*options]))
    return [entry.redis_id for batch in batches for entry in batch]


def append(log: Log, *ids: str) -> None:
    for redis_id in ids:
        log.redis.xadd(log.name, {"n": 1}, id=redis_id)


def run(world: World, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    settings = {
        **os.environ,
        "DATA_DIR": str(world.folder),
        "REDIS_URL": world.redis.url,
        "STREAM_NAME": world.stream,
        **environment,
    }
    stdout, stderr = world.folder / "stdout", world.folder / "stderr"
    with stdout.open("w") as said, stderr.open("w") as complained:
        process = Process("rocket_rides.log", options, settings, said.fileno(), complained.fileno())
    try:
        status = process.wait(PATIENCE)
    finally:
        process.kill()
    return subprocess.CompletedProcess(options, status, stdout.read_text(), stderr.read_text())


def lines(service: Service) -> list[str]:
    return service.output.read_text().splitlines()


@pytest.mark.stream_servers
def test_it_finds_the_entries_of_a_range_of_time(world: World) -> None:
    log = world.log()
    assert found(log) == found(log, "--since", "1h") == []
    now = log.clock()
    long_ago, older, old, new = now - 10**9, now - 2 * HOUR, now - HOUR // 2, now + HOUR
    ids = ["0-1", f"{long_ago}-0", f"{older}-0", f"{older}-7", f"{old}-0", f"{new}-0"]
    append(log, *ids)
    assert found(log) == ids
    assert found(log, "--since", "1h") == ids[4:]
    assert found(log, "--since", "3h", "--until", "1h") == ids[2:4]
    # From a moment on, and up to it without it.
    moment = shown(older)
    assert found(log, f"--since={moment}") == ids[2:]
    assert found(log, f"--until={moment}") == ids[:2]
    assert found(log, f"--since={moment}", f"--until={moment}") == []
    assert found(log, "--limit", "2") == ids[:2]
    assert found(log, "--since", "3h", "--limit", "3") == ids[2:5]
    # Redis' clock is behind this entry's time, and nothing is waited for.
    assert found(log, "--since", "0s") == ids[5:]


def test_it_ends_where_the_log_ended_when_it_began(world: World) -> None:
    """In batches of a thousand, while others go on appending."""
    log = world.log()
    log.append([(id_, f'{{"id": {id_}, "distance": 1}}') for id_ in range(1, 2501)], 0, TERM)
    batches = entries(log, parse_options([]))
    seen = len(next(batches))
    append(log, f"{log.clock() + 10}-0")
    assert seen + sum(map(len, batches)) == 2500


def test_it_follows_what_is_appended_until_the_time_has_come(world: World) -> None:
    log = world.log()
    append(log, f"{log.clock() - HOUR}-0")
    assert found(log, "--since", "2h", "--until", "0s", "--follow") != []
    assert found(log, "--follow", "--until", "0s") == []  # only what is new
    new = entries(log, parse_options(["--follow", "--limit", "2"]))
    first = next(new)
    append(log, "9999999999999-0", "9999999999999-1", "9999999999999-2")
    ids = [entry.redis_id for entry in first] + [e.redis_id for batch in new for e in batch]
    assert ids == ["9999999999999-0", "9999999999999-1"]


def test_a_person_reads_lines_and_a_program_json(world: World) -> None:
    world.take("539.837", "999999999.999")
    streamer = world.streamer()
    drain(streamer)
    log = world.log()
    log.redis.xadd(world.stream, {"x": b"\xff\n\x1b[31m"})
    log.redis.xadd(world.stream, {"x": 1}, id=f"{2**64 - 1}-1")
    for_people = run(world)
    assert (for_people.returncode, for_people.stderr) == (0, "")
    first, second, third, last = for_people.stdout.splitlines()
    ids = [entry.redis_id for entry in log.read(START, 10)]
    assert first.split() == [shown(int(ids[0].split("-")[0])), ids[0], "ride", "1", "539.837", "m"]
    assert second.endswith("ride 2  999999999.999 m")
    assert third.endswith("no record: no field 'data'")
    assert last.startswith("after the year 9999")

    def exact(text: str) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(text, parse_float=Decimal)
        return parsed

    as_json = [exact(line) for line in run(world, "--json").stdout.splitlines()]
    assert as_json[1] == {
        "redis_id": ids[1],
        "time": shown(int(ids[1].split("-")[0])),
        "id": 2,
        "prev": 1,
        "distance": Decimal("999999999.999"),
        "term": streamer.term.name,
    }
    assert as_json[2]["invalid"] == "no field 'data'"
    assert as_json[2]["fields"] == ["x", "\\xff\n\x1b[31m"]
    assert as_json[3]["time"] is None


def test_a_tail_ends_with_ctrl_c_and_says_nothing(world: World) -> None:
    tail = world.service("rocket_rides.log", "--follow", "--since", "1d")
    append(world.log(), f"{world.log().clock()}-0")
    eventually(lambda: len(lines(tail)) == 1)
    tail.process.send_signal(signal.SIGINT)
    assert tail.process.wait(PATIENCE) == 0
    assert len(lines(tail)) == 1


@pytest.mark.parametrize(("options", "rides"), [([], 3000), (["--follow", "--since=1d"], 1)])
def test_it_ends_quietly_when_nobody_reads_it_any_more(
    world: World, options: list[str], rides: int
) -> None:
    """Whether it has more to print, or waits for more."""
    data = [(id_, f'{{"id": {id_}, "distance": 1}}') for id_ in range(1, rides + 1)]
    world.log().append(data, 0, TERM)
    with subprocess.Popen(
        [sys.executable, "-m", "rocket_rides.log", *options],
        cwd=PROJECT,
        env={**os.environ, "REDIS_URL": world.redis.url, "STREAM_NAME": world.stream},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().endswith(b"ride 1  1 m\n")
        process.stdout.close()
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == b""


def test_a_lost_redis_and_a_bad_option_are_one_clear_line(world: World) -> None:
    lost = {"REDIS_URL": f"redis://127.0.0.1:{free_port()}"}
    for options in ([], ["--follow"]):
        refused = run(world, *options, **lost)
        assert (refused.returncode, refused.stdout) == (1, "")
        [line] = refused.stderr.splitlines()
        assert line.startswith("Redis can't be reached: ")
    unasked = run(world, "--since", "yesterday")
    assert unasked.returncode == 2
    assert len(unasked.stderr.splitlines()) == 1
    world.log().redis.set(world.stream, "no stream")
    refused = run(world)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "wrong kind of value" in refused.stderr


@pytest.fixture
def own_redis() -> Iterator[Redis]:
    """A server for this test alone."""
    with short_folder() as folder:
        server = Redis(folder / "data", folder / "run")
        server.start()
        yield server
        server.stop()


def test_a_tail_outlives_a_restart_of_redis_and_a_log_that_is_deleted(
    world: World, own_redis: Redis
) -> None:
    tail = world.service(
        "rocket_rides.log", "--follow", "--json", "--since", "1d", REDIS_URL=own_redis.url
    )

    def append_ride(number: int, redis_id: str = "*") -> None:
        with Log(own_redis.url, world.stream) as log:
            fields = {"data": f'{{"id": {number}, "distance": 1}}', "prev": "0"}
            log.redis.xadd(world.stream, fields, id=redis_id)  # type: ignore[arg-type]

    def shows(number: int) -> bool:
        return any(f'"id":{number},' in line for line in lines(tail))

    append_ride(1)
    eventually(lambda: shows(1))
    own_redis.stop()
    eventually(lambda: "going on when it is back" in tail.output.read_text())
    own_redis.start()
    append_ride(2)
    eventually(lambda: shows(2))
    with Log(own_redis.url, world.stream) as log:
        append_ride(3, f"{log.clock() + HOUR}-0")
        eventually(lambda: shows(3))
        log.start_anew()
    # With ids below those before, as after Redis' clock was set back.
    append_ride(LARGEST_ID)
    eventually(lambda: shows(LARGEST_ID))
    assert "the log was deleted" in tail.output.read_text()
    assert [shows(number) for number in (1, 2, 3)] == [True] * 3
    assert sum('"id":' in line for line in lines(tail)) == 4
