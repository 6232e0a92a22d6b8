"""`python -m watch.status`: what flows, on a terminal; a probe by its exit status."""

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

from rocket_rides.settings import PROJECT
from tests.support.known_facts import TOTAL, WELL, but
from tests.support.world import Service, World, catch_up, drain, eventually, free_port
from watch import status as command
from watch.facts import Facts, Server

ENDED = 30  # seconds, at most


def run(world: World, *options: str, **environment: str) -> tuple[int, str]:
    """The exit status, and what was said."""
    service = world.service("watch.status", *options, **environment)
    code = service.process.wait(ENDED)
    said = service.output.read_text()
    assert "Traceback" not in said
    return code, said


def looks(service: Service) -> int:
    return service.output.read_text().count("Rocket Rides ")


def test_it_says_that_all_is_well_or_what_is_not(world: World) -> None:
    consumer = world.consumer()
    code, said = run(world)
    assert code == 1  # nobody is at work
    assert "NOT WELL: the total consumer0 is not at work in any process" in said
    with world.connect() as session:
        session.execute("SET application_name = 'consumer consumer0'")
        world.take("539.837")
        drain(world.streamer())
        catch_up(consumer)
        code, said = run(world, "--json")
    told = json.loads(said)
    found = [(problem["kind"], problem["what"][:16]) for problem in told["problems"]]
    assert found == [
        ("dead", "no streamer lead"), ("dead", "no rollup leads,"), ("dead", "nobody delivers ")
    ]  # fmt: skip
    [total] = [each for each in told["database"]["readers"] if each["kind"] == "total"]
    assert total["total"] == 539.837
    assert (code, told["status"]) == (1, 1)


def test_a_probe_of_an_idle_fleet_succeeds(world: World) -> None:
    code, said = run(world)
    assert code == 0
    assert said.splitlines()[-2:] == ["All is well.", ""]


def test_what_can_not_be_told_is_told_apart_from_what_is_wrong(world: World) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    code, said = run(world, REDIS_URL=f"redis://{nobody}")
    assert code == 2
    assert "NOT WELL: Redis can't be used: " in said
    assert "the newest is ride 0" in said
    world.connection.execute("UPDATE alembic_version SET version_num = '0001'")
    code, said = run(world, "--json")
    assert (code, json.loads(said)["status"]) == (2, 2)
    assert "run python -m migrations" in said


class Flapping:
    """Finds somebody else missing at each look; or a server that was busy at the first one."""

    def __init__(self, *found: Facts) -> None:
        self._found, self.looks = cycle(found), 0

    def gather(self) -> Facts:
        self.looks += 1
        return next(self._found)


def test_a_probe_ends_though_always_somebody_else_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "SETTLED", 0.3)
    monkeypatch.setattr(command, "SOON", 0.05)
    one, other = (but(readers=(replace(TOTAL, name=name, processes=0),)) for name in "ab")
    gatherer = Flapping(one, other)
    [facts] = command.looks(gatherer, follow=False)  # type: ignore[arg-type]
    assert (command.status(facts), 3 <= gatherer.looks <= 7) == (0, True)


def test_a_server_that_is_busy_for_a_moment_is_asked_again() -> None:
    busy = replace(WELL, redis=Server(False, "it does not answer"), log=None)
    gatherer = Flapping(busy, WELL)
    [facts] = command.looks(gatherer, follow=False)  # type: ignore[arg-type]
    assert (facts, gatherer.looks) == (WELL, 2)
    gatherer = Flapping(busy)
    [facts] = command.looks(gatherer, follow=False)  # type: ignore[arg-type]
    assert (command.status(facts), gatherer.looks) == (2, 2)


def test_a_wrong_option_is_refused_in_one_line(world: World) -> None:
    code, said = run(world, "--folow")
    assert (code, len(said.splitlines())) == (2, 1)


def test_followed_into_a_file_it_is_appended_until_ctrl_c(world: World) -> None:
    service = world.service("watch.status", "--follow")
    eventually(lambda: looks(service) >= 2)
    assert "\x1b" not in service.output.read_text()
    service.process.send_signal(signal.SIGINT)
    assert service.process.wait(ENDED) == -signal.SIGINT
    assert "Traceback" not in service.output.read_text()


def test_followed_into_a_pipe_it_ends_with_whoever_reads_it(world: World) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "watch.status", "--follow", "--json"],
        cwd=PROJECT,
        env={
            **os.environ,
            "DATABASE_URL": world.postgres_url,
            "REDIS_URL": world.redis.url,
            "STREAM_NAME": world.stream,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout
        assert process.stderr
        assert json.loads(process.stdout.readline())["status"] == 0
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(ENDED) == 0


def test_on_a_terminal_it_is_refreshed_in_place_and_no_name_is_let_through(
    world: World, tmp_path: Path
) -> None:
    world.connection.execute(
        "INSERT INTO checkpoints (name) SELECT 'a' || chr(27) || '[2J' || chr(7)"
    )
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 9, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "watch.status", "--follow"],
        cwd=PROJECT,
        env={
            **os.environ,
            "DATABASE_URL": world.postgres_url,
            "REDIS_URL": world.redis.url,
            "STREAM_NAME": world.stream,
        },
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    said, deadline = b"", time.monotonic() + ENDED
    try:
        while said.count(b"\x1b[H") < 3:
            assert time.monotonic() < deadline
            said += os.read(controller, 4096)
    finally:
        process.kill()
        process.wait()
        os.close(controller)
    block = said.split(b"\x1b[H")[2]
    assert block.count(b"\n") == 8  # as much as there is room for
    assert block.splitlines()[1].startswith(b"NOT WELL") or b"All is well" in block.splitlines()[1]
    assert {part[:1] for part in block.split(b"\x1b[")[1:]} == {b"K", b"J"}
    assert b"\x07" not in said
