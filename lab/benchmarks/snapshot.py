"""`python -m lab.benchmarks.snapshot`: a whole fleet while somebody holds a snapshot.

As a pg_dump, or a session that somebody forgot, does: Postgres then keeps every dead version of the
rows that each batch updates. Prints a table: how long rides take until both totals have them, what
it takes to find the newest version of each of those rows, and the processors' time.
"""

import argparse
import contextlib
import signal
import sys
import time
from statistics import quantiles

import psutil
import psycopg

from lab.arguments import positive
from lab.benchmarks import fleet, latency
from lab.benchmarks.idle import seconds_used
from lab.benchmarks.stand import Stand, stand
from lab.blocks import table
from lab.progress import say
from unified_log import database, session_settings

POLL = 0.002  # seconds between looks at the checkpoints
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
    "receipts_workers": "WHERE name = 'receipts0'",
    "rollup_state": "",
}
NEWEST = "ORDER BY version DESC LIMIT 1"

Cells = list[list[str]]


def main() -> None:
    parser = argparse.ArgumentParser("python -m lab.benchmarks.snapshot", description=__doc__)
    parser.add_argument("--seconds", type=positive, default=600)
    parser.add_argument("--rate", type=positive, default=200, help="rides a second")
    given = parser.parse_args()
    if given.seconds * ENDS * given.rate < FEWEST:
        parser.error("that is too few rides to compare the first and the last of them")
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # ends the servers, too
    with stand() as servers, contextlib.ExitStack() as exits:
        port, processes = exits.enter_context(fleet.fleet(servers))
        processes += exits.enter_context(servers.services(RATINGS))
        rows = measure(servers, port, processes, given)
    print(f"{given.rate:g} rides a second for {given.seconds:g} s; a snapshot is held.\n")
    print(table(["", "at first", "at last"], rows))


def measure(
    servers: Stand, port: int, processes: list[psutil.Process], given: argparse.Namespace
) -> Cells:
    processes = [*processes, psutil.Process(servers.postgres.pid)]
    indexed = session_settings.INDEX_SCANS
    with (
        database.connect(servers.postgres.url, "benchmark", **indexed) as connection,
        servers.connect() as holder,
    ):
        holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT FROM rides LIMIT 1")
        time.sleep(1)  # the consumer of ratings begins
        before, cpu = buffers(connection), sum(map(seconds_used, processes))
        took = list(latency.steadily(port, connection, given.rate, given.seconds, POLL))
        cpu = sum(map(seconds_used, processes)) - cpu
        after = buffers(connection)
    say(f"{len(took)} rides")
    began, ended = given.seconds * ENDS, given.seconds * (1 - ENDS)
    first = quantiles([each for at, each in took if at < began], n=100)
    last = quantiles([each for at, each in took if at >= ended], n=100)
    return [
        ["ride to totals, p50, ms", f"{first[49]:.1f}", f"{last[49]:.1f}"],
        ["ride to totals, p99, ms", f"{first[98]:.1f}", f"{last[98]:.1f}"],
        *([f"`{name}`, buffers", str(before[name]), str(after[name])] for name in ROWS),
        ["processors' time for a ride, ms", "", f"{cpu / len(took) * 1000:.2f}"],
    ]


def buffers(connection: psycopg.Connection) -> dict[str, int]:
    """How many buffers the newest version of each row takes to be read."""
    found = {}
    for name, where in ROWS.items():
        explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM {name} {where} {NEWEST}"
        [[[told]]] = connection.execute(explain.encode()).fetchall()
        found[name] = told["Plan"]["Shared Hit Blocks"] + told["Plan"]["Shared Read Blocks"]
    return found


if __name__ == "__main__":
    main()
