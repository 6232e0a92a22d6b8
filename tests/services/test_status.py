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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

from rocket_rides.settings import PROJECT
from tests.support.facts import absent
from tests.support.known_facts import TOTAL, WELL, but
from tests.support.world import Service, World, catch_up, drain, eventually, free_port
from watch import status as command
from watch.facts import Facts, Server

HONCHO = Path(sys.executable).with_name("honcho")
ENDED = 30  # seconds, at most


def run(world: World, *options: str, **environment: str) -> tuple[int, str]:
    """The exit status, and what was said."""
    service = world.service("watch.status", *options, **environment)
    code = service.process.wait(ENDED)
    said = service.output.read_text()
    assert "Traceback" not in said
    return code, said


@contextmanager
def at_work(world: World, name: str) -> Iterator[None]:
    """A session with Postgres that is called as a process calls its own."""
    with world.connect() as session:
        session.execute("SELECT set_config('application_name', %s, false)", [name])
        yield


def looks(service: Service) -> int:
    return service.output.read_text().count("Rocket Rides ")


def test_it_says_that_all_is_well_or_what_is_not(world: World) -> None:
    consumer = world.consumer()
    with at_work(world, "api"):
        code, said = run(world)
    assert code == 1  # nobody reads
    assert "NOT WELL: the total consumer0 is not at work in any process" in said
    with at_work(world, "consumer consumer0"):
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
    with at_work(world, "streamer (starting)"):
        code, said = run(world)
    assert code == 0
    assert said.splitlines()[-2:] == ["All is well.", ""]


def test_what_can_not_be_told_is_told_apart_from_what_is_wrong(world: World) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    code, said = run(world, REDIS_URL=f"redis://{nobody}")
    assert code == 2
    assert "NOT WELL: Redis can't be used: " in said
    assert "the newest is ride 0" in said
    world.connection.execute("UPDATE alembic_version SET version_num = '0009'")
    code, said = run(world, "--json")
    assert (code, json.loads(said)["status"]) == (2, 2)
    assert "start with an empty database" in said


def test_where_no_fleet_runs_one_line_says_so(world: World, tmp_path: Path) -> None:
    embedded = {"DATABASE_URL": "", "REDIS_URL": "", "DATA_DIR": str(tmp_path / "data")}
    sentence = f"no fleet runs on {tmp_path / 'data'}; `make fleet` starts it\n"
    assert run(world, **embedded) == (3, sentence)
    code, said = run(world, "--json", **embedded)
    assert (code, json.loads(said)["status"]) == (3, 3)
    nobody = "no fleet runs on these servers: none of its processes has a session with Postgres\n"
    assert run(world) == (3, nobody)
    assert run(world, REDIS_URL=f"redis://127.0.0.1:{free_port()}")[0] == 2


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
    one, other = (
        absent(but(readers=(replace(TOTAL, name=name, processes=0),)), 0) for name in "ab"
    )
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
    assert service.process.wait(ENDED) == 0
    assert "Traceback" not in service.output.read_text()


@pytest.mark.parametrize("status", [0, 1])
def test_followed_into_a_pipe_it_ends_with_whoever_reads_it(world: World, status: int) -> None:
    """And with the status of its last look."""
    if status:
        world.consumer()  # that is not at work
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
        assert any(json.loads(line)["status"] == status for line in process.stdout)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(ENDED) == status


@contextmanager
def on_a_terminal(
    world: World, rows: int, columns: int
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """`make status ARGS=--follow` as make runs it, on a terminal of that size, and its keyboard.

    The shell has exported another size, as before a window was resized.
    """
    keyboard, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        [HONCHO, "run", "exec", sys.executable, "-m", "watch.status", "--follow"],
        cwd=PROJECT,
        env={
            **os.environ,
            "COLUMNS": "20",
            "LINES": "3",
            "DATABASE_URL": world.postgres_url,
            "REDIS_URL": world.redis.url,
            "STREAM_NAME": world.stream,
        },
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C is a signal
    )
    os.close(terminal)
    try:
        yield process, keyboard
    finally:
        with suppress(ProcessLookupError):  # it has ended
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(keyboard)


def shown(terminal: int, blocks: int) -> bytes:
    """What is shown until so many screens have begun."""
    said, deadline = b"", time.monotonic() + ENDED
    while said.count(b"\x1b[H") < blocks:
        assert time.monotonic() < deadline, said
        said += os.read(terminal, 4096)
    return said


def test_on_a_terminal_it_is_refreshed_in_place_and_no_name_is_let_through(world: World) -> None:
    world.connection.execute(
        "INSERT INTO checkpoints (name) SELECT 'a' || chr(27) || '[2J' || chr(7)"
    )
    with on_a_terminal(world, 9, 80) as (_, terminal):
        said = shown(terminal, 3)
    block = said.split(b"\x1b[H")[2]
    assert block.count(b"\n") == 8  # as much as there is room for
    assert block.splitlines()[1].startswith(b"NOT WELL") or b"All is well" in block.splitlines()[1]
    assert {part[:1] for part in block.split(b"\x1b[")[1:]} == {b"K", b"J"}
    assert b"\x07" not in said


def test_a_terminal_that_does_not_know_its_size_has_the_usual_one(world: World) -> None:
    with on_a_terminal(world, 0, 0) as (_, terminal):
        assert b"All is well." in shown(terminal, 2)


def test_ctrl_c_is_how_one_ends_following(world: World) -> None:
    """So make, which starts this through honcho, is told of no error; and nothing more is said."""
    with on_a_terminal(world, 24, 80) as (process, terminal):
        shown(terminal, 2)
        os.write(terminal, b"\x03")
        rest = b""
        with suppress(OSError):  # the terminal's other end was closed
            while more := os.read(terminal, 4096):
                rest += more
        assert process.wait(ENDED) == 0
    assert rest.rpartition(b"\x1b[J")[2].strip() in (b"", b"^C")
