"""`python -m unified_log.log`: the log's entries, all or the latest, and new ones, for people."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from lab.ports import free_ports
from rocket_rides.settings import PROJECT
from tests.support.entries import named
from tests.support.world import PATIENCE, Service, World, drain, eventually
from unified_log.log import START, Log
from unified_log.log.lines import appended_at
from unified_log.terms import Term

# Python tries again, at the end of a process, to write what it keeps.
BUFFERED = {"PYTHONUNBUFFERED": ""}
TERM = Term("0123456789abcdef", 0)


def append(log: Log, *ids: str) -> None:
    for redis_id in ids:
        log.redis.xadd(log.name, {"n": 1}, id=redis_id)


def run(world: World, *options: str, **environment: str) -> tuple[int, list[str]]:
    """Run the command to its end: the exit status, and the lines that it printed."""
    service = world.service("unified_log.log", *options, **environment)
    return service.process.wait(PATIENCE), lines(service)


def lines(service: Service) -> list[str]:
    return service.output.read_text().splitlines()


def test_a_log_that_is_not_there_is_named(world: World) -> None:
    assert run(world) == (0, [f"there is no stream {world.stream}"])
    append(world.log(), "1-0")
    assert "no stream" not in run(world)[1][0]


def test_a_line_says_all_that_an_entry_does(world: World) -> None:
    one, two = world.take("539.837", "999999999.999")
    streamer = world.streamer()
    drain(streamer)
    log = world.log()
    log.redis.xadd(world.stream, {"x": b"\xff\n\x1b[31m"})
    log.redis.xadd(world.stream, named(4, b"\r\xfe", 3, b"\n\xff", "rating.create"))
    log.redis.xadd(world.stream, {"x": 1}, id=f"{2**64 - 1}-1")
    status, (first, second, third, fourth, last) = run(world)
    assert status == 0
    ids = [entry.redis_id for entry in log.read(START, 10)]
    term = streamer.term.name
    assert first.split()[:2] == [appended_at(ids[0]), ids[0]]
    ride = f'ride.create  after {world.start}  term {term}  {{"id": {one}, "distance": 539.837}}'
    assert first.endswith(f"  {one}  {ride}")
    assert second.endswith(f'  {{"id": {two}, "distance": 999999999.999}}')
    assert third.endswith("not a record: no field 'id'")
    assert fourth.endswith(r"  4  rating.create  after 3  term \n\ufffd  \r\ufffd")
    assert last.startswith("after the year 9999")


def test_a_tail_shows_what_is_appended_and_ends_with_ctrl_c(world: World) -> None:
    log = world.log()
    old, *new = (f"{9999999999990 + number}-0" for number in range(3))
    append(log, old)
    tail = world.service("unified_log.log", "--follow")
    eventually(lambda: b"\nblocked_clients:1" in log.command("INFO", "clients"))
    append(log, *new)
    eventually(lambda: [line.split()[1] for line in lines(tail)] == new)
    tail.interrupt()
    assert tail.process.wait(PATIENCE) == 0
    assert len(lines(tail)) == 2


def test_a_tail_goes_on_where_the_log_begins_anew_with_lower_ids(world: World) -> None:
    log = world.log()
    append(log, "9999999999990-0")
    tail = world.service("unified_log.log", "--follow", "--from=0-0")
    eventually(lambda: len(lines(tail)) == 1)
    log.start_anew()
    new = [log.command("XADD", log.name, "*", "n", 1).decode() for _ in range(2)]
    eventually(lambda: [line.split()[1] for line in lines(tail)[2:]] == new)
    assert lines(tail)[1] == "the log's ids are lower than before: it was wiped, or restored"


def test_a_tail_that_begins_in_the_future_waits_for_it(world: World) -> None:
    def reads() -> int:
        said = log.info("commandstats").get("cmdstat_xread", "calls=0,")
        return int(said.removeprefix("calls=").partition(",")[0])

    log = world.log()
    append(log, "5-0")
    before = reads()
    tail = world.service("unified_log.log", "--follow", "--from=9999999999990-0", "--count=1")
    eventually(lambda: reads() >= before + 2)  # the first found nothing
    append(log, "9999999999989-0", "9999999999990-0")
    assert tail.process.wait(PATIENCE) == 0
    assert [line.split()[1] for line in lines(tail)] == ["9999999999990-0"]


def test_its_options_say_which_entries_and_in_which_form(world: World) -> None:
    log = world.log()
    for position, kind in ((1, "ride.create"), (2, "rating.create"), (3, "ride.create")):
        log.redis.xadd(world.stream, named(position, '{"a": 1.50}', position - 1, TERM.name, kind))
    ids = [entry.redis_id for entry in log.read(START, 10)]

    def shown(*options: str) -> list[str]:
        status, found = run(world, *options)
        assert status == 0
        return [line.split()[1] for line in found]

    assert shown("--from=2") == shown("--from", ids[1]) == ids[1:]
    assert shown("--to=2", "--reverse") == [ids[1], ids[0]]
    assert shown("--reverse", "--count=1", "--type=ride.create") == [ids[2]]
    assert shown("--since=1h", "--to=0s", "--count=1") == [ids[0]]
    assert shown("--follow", "--from=2", "--count=2") == ids[1:]
    _, [line] = run(world, "--json", "--from=3")
    assert json.loads(line)["redis_id"] == ids[2]
    assert '"data":{"a":1.50}' in line
    log.command("XDEL", world.stream, ids[0])
    told = "the log begins at 2: earlier records are in Postgres, in log_records"
    for below in (["--from=1", "--to=1"], ["--to=1"], ["--to", ids[0]], [f"--from={ids[0]}"]):
        assert run(world, *below)[1][0] == told
    assert run(world, "--from=1", "--to=1") == (0, [told])
    assert len(shown("--from=2")) == len(shown("--to=3")) == 2
    assert run(world, "--pending") == (0, [f"{world.stream} has no consumer group"])
    status, [line] = run(world, "--from=1m", "--to=1h")
    assert status == 2
    assert line.endswith("--from has to be before --to; --help explains")


def test_it_ends_quietly_when_nobody_reads_it_any_more(world: World) -> None:
    """Also where what could not be written is so little that Python keeps it for later."""
    log = world.log()
    append(log, "9999999999990-0")
    with subprocess.Popen(
        [sys.executable, "-m", "unified_log.log", "--follow", "--from=0-0"],
        cwd=PROJECT,
        env=os.environ | BUFFERED | world.settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"9999999999990-0" in process.stdout.readline()
        process.stdout.close()
        append(log, "9999999999991-0")
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == b""


def test_a_full_disk_is_one_clear_line(world: World) -> None:
    append(world.log(), "5-0")
    for option in ("--json", "--pending"):
        with Path("/dev/full").open("w") as full:
            finished = subprocess.run(
                [sys.executable, "-m", "unified_log.log", option],
                cwd=PROJECT,
                env=os.environ | BUFFERED | world.settings,
                stdout=full,
                stderr=subprocess.PIPE,
                timeout=PATIENCE,
                check=False,
            )
        assert finished.returncode == 1
        assert finished.stderr == b"stdout can't be written: No space left on device\n"


def test_a_lost_redis_and_a_key_that_is_no_stream_are_one_clear_line(world: World) -> None:
    lost = f"redis://127.0.0.1:{free_ports()}"
    for options in ([], ["--follow"], ["--pending"]):
        status, [line] = run(world, *options, REDIS_URL=lost)
        assert status == 1
        assert line.startswith("Redis can't be reached: ")
    world.log().redis.set(world.stream, "no stream")
    for options in ([], ["--follow"], ["--pending"]):
        assert run(world, *options) == (1, [f"{world.stream} is no stream"])


def test_a_user_without_a_right_to_the_log_learns_which_log_that_is(world: World) -> None:
    """It may be another one than people think, since STREAM_NAME has a default."""
    server: Any = world.log().redis
    server.execute_command("ACL", "SETUSER", "narrow", "on", ">p", "~other", "+@all")
    url = world.settings["REDIS_URL"]
    try:
        as_narrow = f"{url}{'&' if '?' in url else '?'}username=narrow&password=p"
        status, [line] = run(world, REDIS_URL=as_narrow)
    finally:
        server.execute_command("ACL", "DELUSER", "narrow")
    assert (status, line.partition(": ")[0]) == (1, world.stream)
    assert "NOPERM" in line
