"""The simulator, run as a process against a small HTTP server that answers what the test says."""

import itertools
import os
import pty
import signal
import subprocess
import sys
import termios
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs

import psutil
import pytest

from rocket_rides.settings import PROJECT
from tests.support.world import eventually, free_port

DROP = 0  # instead of a status: hang up without an answer


class Api(ThreadingHTTPServer):
    """Answers POST /rides with `statuses` in turn, then 201; remembers what was posted.

    The rides are numbered from `first`.
    """

    daemon_threads = True

    def __init__(self, port: int, statuses: Iterable[int] = (), first: int = 1) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.first = first
        self.statuses = itertools.chain(statuses, itertools.repeat(201))
        self.posts: list[tuple[str, Decimal]] = []

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.posts]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # a whole answer in one packet: in two, it would wait for a delayed ACK
    server: Api

    def do_GET(self) -> None:
        self.answer(200 if self.path == "/readyz" else 404)

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.server.posts.append((self.headers["Idempotency-Key"], Decimal(form["distance"][0])))
        status = next(self.server.statuses)
        if status == DROP:
            self.close_connection = True
        else:
            ride_id = self.server.first + len(self.server.posts) - 1
            self.answer(status if self.path == "/rides" else 404, f"/rides/{ride_id}")

    def answer(self, status: int, location: str = "") -> None:
        body = f"this is\n{status}".encode()
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(port: int = 0, statuses: Iterable[int] = (), first: int = 1) -> Iterator[Api]:
    with Api(port, statuses, first) as api:
        Thread(target=api.serve_forever, args=(0.01,), daemon=True).start()
        yield api
        api.shutdown()


def start(port: int, *arguments: str, stderr: int = subprocess.STDOUT) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "simulator", "--no-receipts", *arguments],
        cwd=PROJECT,
        env=os.environ | {"API_URL": f"http://127.0.0.1:{port}/", "LOG_LEVEL": "INFO"},
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )


def run(port: int, *arguments: str) -> tuple[int, str]:
    """Return the exit status and all that was said."""
    process = start(port, *arguments)
    said, _ = process.communicate(timeout=30)
    return process.returncode, said


def first_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_it_posts_exactly_as_many_rides_as_asked_each_with_a_key_of_its_own() -> None:
    with serving() as api:
        status, said = run(api.server_port, "--rides", "40", "--rate", "0", "--concurrency", "7")
    assert (status, said) == (0, "INFO    40 rides posted, 0 retried\n")
    assert len(set(api.keys)) == len(api.posts) == 40
    assert all(uuid.UUID(key).version == 4 for key in api.keys)
    assert all(5 <= metres <= 1000 for _, metres in api.posts)
    assert len({metres for _, metres in api.posts}) > 30


def test_a_ride_is_repeated_with_its_key_until_it_is_answered() -> None:
    with serving(statuses=[503, DROP, 500, 201, 502]) as api:
        status, said = run(api.server_port, "--rides", "3", "--rate", "0")
    assert (status, said) == (0, "INFO    3 rides posted, 4 retried\n")
    assert sorted(Counter(api.posts).values()) == [1, 2, 4]
    assert len(set(api.keys)) == 3


def test_a_refused_ride_is_reported_counted_and_not_repeated() -> None:
    with serving(statuses=[201, 422]) as api:
        status, said = run(api.server_port, "--rides", "3", "--rate", "0")
    assert len(api.posts) == len(set(api.keys)) == 3
    assert said.splitlines() == [
        f"ERROR   a ride of {api.posts[1][1]} m got 422: this is 422",
        "INFO    2 rides posted, 0 retried, 1 refused",
    ]
    assert status == 1


def test_it_says_once_that_it_waits_for_an_api_that_comes_up_later() -> None:
    port = free_port()
    process = start(port, "--rides", "2", "--rate", "0")
    assert first_line(process).startswith("INFO    waiting for the API at ")
    time.sleep(0.5)
    assert process.poll() is None
    with serving(port) as api:
        said, _ = process.communicate(timeout=15)
        assert len(api.posts) == 2
    assert (process.returncode, said) == (0, "INFO    2 rides posted, 0 retried\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_within_a_second_with_one_line(number: signal.Signals) -> None:
    with serving() as api:
        process = start(api.server_port, "--rate", "50")
        eventually(lambda: len(api.posts) >= 3)
        assert process.poll() is None
        process.send_signal(number)
        said, _ = process.communicate(timeout=1)
    assert process.returncode == 0
    assert said.endswith(" rides posted, 0 retried\n")
    assert said.count("\n") == 1


def test_a_signal_ends_it_while_it_waits_for_the_api() -> None:
    process = start(free_port())
    first_line(process)
    process.terminate()
    said, _ = process.communicate(timeout=1)
    assert (process.returncode, said) == (0, "INFO    0 rides posted, 0 retried\n")


def test_a_signal_ends_it_while_every_ride_fails() -> None:
    with serving(statuses=itertools.repeat(503)) as api:
        process = start(api.server_port, "--rate", "0", "--concurrency", "3")
        eventually(lambda: len(api.posts) >= 9)
        process.terminate()
        said, _ = process.communicate(timeout=1)
    assert process.returncode == 0
    assert said.startswith("INFO    0 rides posted, ")
    assert len(set(api.keys)) == 3


def test_a_lasting_run_stays_small() -> None:
    with serving() as api:
        process = start(api.server_port, "--rate", "0", "--concurrency", "4")
        try:
            eventually(lambda: len(api.posts) >= 500)
            memory = psutil.Process(process.pid).memory_info().rss
        finally:
            process.terminate()
            process.communicate(timeout=5)
    assert memory < 80 * 2**20


def test_a_terminal_sees_a_progress_bar() -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    with serving() as api:
        process = start(api.server_port, "--rides", "5", "--rate", "0", stderr=theirs)
        os.close(theirs)
        assert process.wait(timeout=15) == 0
    seen = os.read(ours, 65536)
    os.close(ours)
    assert b"5/5" in seen
