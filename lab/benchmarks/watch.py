"""What it costs to look: the live page's process, its onlookers, and its page.

The process runs beside a whole fleet with default settings. What it costs with nobody looking is
its own processor time, that of its session with Postgres, and by how much Redis takes more than
without it: exact to the nanosecond, as the kernel's scheduler counts it. Linux only.
"""

import contextlib
import gzip
import re
import socket
import time
import urllib.request
from collections.abc import Iterator
from typing import NamedTuple

import psutil
import psycopg
import redis

from lab.benchmarks import fleet, load, page, rides
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.onlookers import onlookers
from lab.benchmarks.rollup import complete_to
from lab.benchmarks.stand import Stand, wait_until
from rocket_rides import database
from rocket_rides.settings import Settings
from watch.gathering import Gatherer

GATHERED = 200  # times in a round
ROUNDS = 5
RIDES = 100_000
ONLOOKERS = 100
IDLE_ROUNDS, IDLE_SECONDS = 3, 4
WATCHED_ROUNDS, WATCHED_SECONDS = 3, 4
WATCHED_RATE = 20  # rides per second, so that each look finds something new
# Short and many: a hundredth is less than what the rate differs by from one run to the next.
POST_ROUNDS, POST_SECONDS, POST_CLIENTS = 20, 0.8, 8
SETTLING = 0.2  # seconds after onlookers came or went
KILOBYTE = 1e3

CPUCLOCK_SCHED = 2  # of the kernel's clocks of a process, the one that counts nanoseconds
# Of long ago, too.
DELIVERED = "UPDATE receipts_state SET since = %s, complete_to = %s"
SESSIONS = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'watch%'"


class Watch(NamedTuple):
    """The process, and the port of its page."""

    port: int
    process: psutil.Process


def measure(stand: Stand) -> list[Figure]:
    """From a single look to a hundred onlookers."""
    with database.connect(stand.postgres.url, "benchmark") as connection:
        rides.insert(connection, RIDES)
        connection.execute(DELIVERED, [RIDES, RIDES])
        with fleet.fleet(stand) as running:
            wait_until(lambda: complete_to(connection) >= RIDES, "all minutes are complete")
            stand.say("asking Postgres and Redis")
            figures = [_gathering(stand, connection)]
            stand.say("nobody looking on")
            figures += _idle(stand, connection)
            return [*figures, *_watched(stand, running)]


@contextlib.contextmanager
def watching(stand: Stand) -> Iterator[Watch]:
    """Run the process until the block ends; it is ready once its page is there."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    with stand.service("watch", WATCH_PORT=str(port)) as process:
        wait_until(lambda: _is_there(port), "the live page is there")
        yield Watch(port, process)


def _is_there(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _gathering(stand: Stand, connection: psycopg.Connection) -> Figure:
    """One look at both servers, beside the least that asking them anything takes."""
    limit = "SELECT 1, then PING"
    figure = Figure("Gathering all facts", "ms", limit, Goal("value", "<=", 5))
    config = Settings(database_url=stand.postgres.url, redis_url=stand.redis.url)
    with (
        contextlib.closing(Gatherer(config)) as gatherer,
        contextlib.closing(redis.Redis.from_url(stand.redis.url)) as control,
    ):
        gatherer.gather()
        for _ in range(ROUNDS):
            began = time.perf_counter()
            for _ in range(GATHERED):
                facts = gatherer.gather()
            looked = time.perf_counter()
            assert facts.database is not None
            assert facts.log is not None
            for _ in range(GATHERED):
                connection.execute("SELECT 1")
                control.ping()
            ended = time.perf_counter()
            figure.runs.append(1000 * (looked - began) / GATHERED)
            figure.limits.append(1000 * (ended - looked) / GATHERED)
    return figure


def _idle(stand: Stand, connection: psycopg.Connection) -> list[Figure]:
    total = Figure(
        "Idle live page, nobody looking on, all it causes",
        "% of a core",
        goal=Goal("value", "<=", 0.5),
    )
    own = Figure("of that its own process", "% of a core")
    asked = Figure("of that its sessions with Postgres", "% of a core")
    for _ in range(IDLE_ROUNDS):
        without = _share([stand.redis.pid])
        with watching(stand) as watch:
            time.sleep(2)  # it has started, and nobody asks it any more
            sessions = [row[0] for row in connection.execute(SESSIONS)]
            assert sessions
            used = _shares([[watch.process.pid], sessions, [stand.redis.pid]])
        own.runs.append(used[0])
        asked.runs.append(used[1])
        total.runs.append(used[0] + used[1] + used[2] - without)
    return [total, own, asked]


def _watched(stand: Stand, running: fleet.RunningFleet) -> list[Figure]:
    api = running.port
    name = f"Live page, {ONLOOKERS} onlookers"
    figures = [
        cost := Figure(
            f"{name}, {WATCHED_RATE} rides/s", "% of a core", goal=Goal("value", "<=", 5)
        ),
        posts := Figure(
            f"POST /rides, {POST_CLIENTS} clients, {ONLOOKERS} onlookers",
            "requests/s",
            "nobody looking on",
            Goal("ratio", ">=", 0.99),
        ),
        packed := Figure("The page, compressed", "KB", "as it is", Goal("value", "<=", 40)),
    ]
    with watching(stand) as watch:
        stand.say(f"{ONLOOKERS} onlookers")
        with onlookers(watch.port, ONLOOKERS), load.steadily(api, WATCHED_RATE):
            for _ in range(WATCHED_ROUNDS):
                cost.runs.append(_share([watch.process.pid], WATCHED_SECONDS))
        stand.say("POST /rides beside them")
        with load.Clients(api, load.RIDES, POST_CLIENTS) as posting:
            for number in range(POST_ROUNDS):
                # The order changes, so that neither always comes first.
                for watched in (True, False) if number % 2 else (False, True):
                    with onlookers(watch.port, ONLOOKERS) if watched else contextlib.nullcontext():
                        posting.rate(SETTLING)
                        rate = posting.rate(POST_SECONDS)
                    (posts.runs if watched else posts.limits).append(rate)
        for encoding, sizes in (("gzip", packed.runs), ("identity", packed.limits)):
            sizes.append(len(_page(watch.port, encoding)) / KILOBYTE)
        return [*figures, *page.measure(stand, running, watch.port)]


def _page(port: int, encoding: str) -> bytes:
    """The page's bytes as they are sent, which must name nothing else that has to be fetched."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/", headers={"Accept-Encoding": encoding}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
        sent: bytes = answer.read()
    text = gzip.decompress(sent) if encoding == "gzip" else sent
    assert not re.search(rb"<(?:script|img)[^>]* src=|<link[^>]* rel=.?stylesheet", text)
    return sent


def _share(processes: list[int], seconds: float = IDLE_SECONDS) -> float:
    return _shares([processes], seconds)[0]


def _shares(groups: list[list[int]], seconds: float = IDLE_SECONDS) -> list[float]:
    """The share of a core that each group of processes takes, in percent."""
    before = [sum(map(_seconds_used, group)) for group in groups]
    began = time.perf_counter()
    time.sleep(seconds)
    passed = time.perf_counter() - began
    after = [sum(map(_seconds_used, group)) for group in groups]
    return [100 * (then - now) / passed for now, then in zip(before, after, strict=True)]


def _seconds_used(process: int) -> float:
    """By all threads that it ever had. Its clock is named as by clock_getcpuclockid(3)."""
    return time.clock_gettime(~process << 3 | CPUCLOCK_SCHED)
