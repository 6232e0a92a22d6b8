"""`python -m lab.benchmarks.snapshot`: a whole fleet while somebody holds a snapshot.

As a pg_dump, or a session that somebody forgot, does: Postgres then keeps every dead version of the
rows that each batch updates. Prints a table: how long rides take until both totals have them, what
it takes to find the newest version of each of those rows, and the processors' time.

For a comparison in pairs, copy this file into a checkout of other code: it looks which columns
there are.
"""

import argparse
import contextlib
import random
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator
from statistics import quantiles
from typing import Any

import psutil
import psycopg

from lab.arguments import positive
from lab.benchmarks import fleet, load
from lab.benchmarks.stand import Stand, say, stand, value
from lab.blocks import table
from unified_log import database, session_settings

CLIENTS = 16  # each has one request under way at most
POLL = 0.002  # seconds between looks at the checkpoints
PATIENCE = 60.0  # seconds until a ride is taken to be lost
ENDS = 0.1  # the first and the last of the time, which are compared
FEWEST = 20  # rides in each of them
RATINGS = ["consumers.ratings", "ratings0"]
# The row of each table that a process reads in every batch.
ROWS = {
    "streamer_state": "",
    "checkpoints": "WHERE kind = 'total' AND name = 'consumer0'",
    "consumer_states": "WHERE name = 'consumer0'",
    "rating_sums": "WHERE name = 'ratings0'",
    "receipts_state": "",
    "rollup_state": "",
}
NEWEST = "ORDER BY version DESC LIMIT 1"
HAS_VERSION = """
    SELECT count(*) FROM pg_attribute WHERE attrelid = %s::regclass AND attname = 'version'
"""
COUNTED = "SELECT min(position) FROM checkpoints WHERE kind = 'total'"
COUNTED_BY_NEWEST = "SELECT min(position) FROM current_checkpoints WHERE kind = 'total'"

Cells = list[list[str]]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser("python -m lab.benchmarks.snapshot", description=__doc__)
    parser.add_argument("--seconds", type=positive, default=600)
    parser.add_argument("--rate", type=positive, default=200, help="rides a second")
    parser.add_argument("--no-snapshot", action="store_true", help="nobody holds one")
    given = parser.parse_args()
    if given.seconds * ENDS * given.rate < FEWEST:
        parser.error("that is too few rides to compare the first and the last of them")
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # ends the servers, too
    with stand() as servers, contextlib.ExitStack() as exits:
        port, processes = exits.enter_context(fleet.fleet(servers))
        processes += exits.enter_context(servers.services(RATINGS))
        rows = measure(servers, port, processes, given)
    held = "nobody holds a snapshot" if given.no_snapshot else "a snapshot is held"
    print(f"{given.rate:g} rides a second for {given.seconds:g} s; {held}.\n")
    print(table(["", "at first", "at last"], rows))


def measure(
    servers: Stand, port: int, processes: list[psutil.Process], given: argparse.Namespace
) -> Cells:
    """The cells of the table."""
    processes = [*processes, psutil.Process(servers.postgres.pid)]
    indexed = session_settings.INDEX_SCANS
    with (
        database.connect(servers.postgres.url, "benchmark", **indexed) as connection,
        servers.connect() as holder,
    ):
        if not given.no_snapshot:
            holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            holder.execute("SELECT FROM rides LIMIT 1")
        time.sleep(1)  # the consumer of ratings begins
        before, cpu = buffers(connection), cpu_seconds(processes)
        took = list(rides(port, connection, given.rate, given.seconds))
        cpu = cpu_seconds(processes) - cpu
        after = buffers(connection)
    say(f"{len(took)} rides")
    began, ended = given.seconds * ENDS, given.seconds * (1 - ENDS)
    first = quantiles([each for at, each in took if at < began], n=100)
    last = quantiles([each for at, each in took if at >= ended], n=100)
    return [
        *(
            [
                f"ride to totals, p{percent}, ms",
                f"{first[percent - 1]:.1f}",
                f"{last[percent - 1]:.1f}",
            ]
            for percent in (50, 99)
        ),
        *([f"`{name}`, buffers", str(before[name]), str(after[name])] for name in ROWS),
        ["processors' time for a ride, ms", "", f"{cpu / len(took) * 1000:.2f}"],
    ]


def rides(
    port: int, connection: psycopg.Connection, rate: float, seconds: float
) -> Iterator[tuple[float, float]]:
    """Post so many rides a second; when each was answered, and the milliseconds to both totals."""
    counted = COUNTED_BY_NEWEST if value(connection, HAS_VERSION, "checkpoints") else COUNTED
    under_way: deque[tuple[int, float]] = deque()
    asking: dict[int, load.KeepAlive] = {}  # by descriptor
    with contextlib.ExitStack() as exits:
        # In turn: a connection on which nothing is asked for long is closed.
        free = deque(
            exits.enter_context(contextlib.closing(load.KeepAlive(port))) for _ in range(CLIENTS)
        )
        start = due = look_at = time.perf_counter()
        until = start + seconds
        while due < until or asking or under_way:
            if free and due < min(until, time.perf_counter()):
                client = free.popleft()
                client.send(load.RIDE)
                asking[client.socket.fileno()] = client
                due += random.expovariate(rate)
            for descriptor in select.select([*asking], [], [], POLL / 4)[0]:
                if answer := asking[descriptor].receive():
                    under_way.append((load.ride_id(answer), time.perf_counter()))
                    free.append(asking.pop(descriptor))
            if under_way and time.perf_counter() >= look_at:
                upto, now = value(connection, counted), time.perf_counter()
                look_at = now + POLL
                for _ in range(len(under_way)):
                    ride, at = under_way.popleft()
                    if ride <= upto:
                        yield at - start, (now - at) * 1000
                    elif now - at > PATIENCE:
                        raise TimeoutError(f"ride {ride} is not counted")
                    else:
                        under_way.append((ride, at))


def buffers(connection: psycopg.Connection) -> dict[str, int]:
    """How many buffers the newest version of each row takes to be read."""
    found = {}
    for name, where in ROWS.items():
        newest = NEWEST if value(connection, HAS_VERSION, name) else ""
        explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM {name} {where} {newest}"
        [[[told]]] = connection.execute(explain.encode()).fetchall()
        found[name] = touched(told["Plan"])
    return found


def touched(plan: dict[str, Any]) -> int:
    """The buffers of a plan, in memory or not."""
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


def cpu_seconds(processes: list[psutil.Process]) -> float:
    """What these have used, and all that they have started."""
    total = 0.0
    for process in processes:
        total += sum(process.cpu_times()[:4])  # its own, and of its children that have ended
        for child in process.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                total += sum(child.cpu_times()[:2])
    return total


if __name__ == "__main__":
    main()
