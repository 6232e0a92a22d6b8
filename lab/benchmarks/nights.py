"""The nightly job: a full run, and nights after a short and after a long history."""

import contextlib
import json
import shutil
import time

import psutil
import psycopg

from analytics.prerequisites import require_java
from lab.benchmarks import outbox
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.stand import Stand

MILLION = 1_000_000
ALL = 10 * MILLION
NIGHT = 100_000
NIGHTS = 3
GIGABYTE = 1e9
POLL = 0.5  # seconds between samples of a run's memory, which cost time


def measure(stand: Stand) -> list[Figure]:
    require_java()
    full = Figure(f"Full run, {ALL // MILLION} million rides", "s", goal=Goal("value", "<=", 60))
    memory = Figure("Its memory, driver and workers, PSS", "GB", goal=Goal("value", "<=", 2))
    name, goal = "A night of 100,000 rides after 10 million", Goal("ratio", "<=", 1.1)
    aged = Figure(name, "s", "after 1 million", goal)
    with stand.connect() as connection:
        outbox.insert_as_sent(connection, MILLION)
        run(stand)
        aged.limits = _nights(stand, connection)
        outbox.insert_as_sent(connection, ALL - MILLION - NIGHTS * NIGHT)
        shutil.rmtree(stand.folder / "warehouse")
        seconds, peak = run(stand)
        full.runs.append(seconds)
        memory.runs.append(peak / GIGABYTE)
        aged.runs = _nights(stand, connection)
    return [full, memory, aged]


def _nights(stand: Stand, connection: psycopg.Connection) -> list[float]:
    seconds = []
    for _ in range(NIGHTS):
        outbox.insert_as_sent(connection, NIGHT)
        seconds.append(run(stand)[0])
    return seconds


def run(stand: Stand) -> tuple[float, float]:
    """Run the job in a process; returns its seconds once Spark is up, and its memory in bytes."""
    result, warehouse = stand.folder / "result.json", stand.folder / "warehouse"
    command = ("analytics.reconcile", "--json", str(result))
    with stand.service(*command, WAREHOUSE_DIR=str(warehouse)) as process:
        peak = 0.0
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            with contextlib.suppress(psutil.NoSuchProcess):
                family = [process, *process.children(recursive=True)]
                peak = max(peak, sum(member.memory_full_info().pss for member in family))
            time.sleep(POLL)
        seconds: float = json.loads(result.read_text())["seconds"]
    result.unlink()
    return seconds, peak
