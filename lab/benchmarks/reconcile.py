"""The nightly job: a full run, nights after little and much history, the extract alone."""

import contextlib
import json
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import psutil
import psycopg

from analytics import extract
from analytics.prerequisites import require_java
from lab.benchmarks import rides
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.stand import Stand
from rocket_rides import database

MILLION = 1_000_000
ALL = 10 * MILLION
NIGHT = 100_000
NIGHTS = 3
EXTRACTS = 2
GIGABYTE = 1e9
POLL = 0.5  # seconds between samples of a run's memory, which cost time
SUM = "SELECT sum(distance) FROM rides"


def measure(stand: Stand) -> list[Figure]:
    """Nights after a million and after ten million rides, a full run, and the extract alone."""
    require_java()
    with database.connect(stand.postgres.url, "benchmark") as connection:
        stand.say("a million rides")
        rides.insert(connection, MILLION)
        run(stand)
        young = _nights(stand, connection, "1 million")
        stand.say("ten million rides")
        rides.insert(connection, ALL - MILLION - NIGHTS * NIGHT)
        full = Figure("Full run over 10 million rides", "s", goal=Goal("value", "<=", 60))
        memory = Figure("Its memory, driver and workers, PSS", "GB", goal=Goal("value", "<=", 2))
        shutil.rmtree(stand.folder / "warehouse")
        seconds, peak = run(stand)
        full.runs.append(seconds)
        memory.runs.append(peak / GIGABYTE)
        old = _nights(stand, connection, "10 million")
    stand.say("the extract")
    aged = Figure(
        "A night after 10 million, beside one after 1 million",
        "s",
        "the latter",
        Goal("ratio", "<=", 1.1),
        old.runs,
        [median(young.runs)] * len(old.runs),
    )
    return [full, memory, young, old, aged, _extract(stand)]


def _nights(stand: Stand, connection: psycopg.Connection, history: str) -> Figure:
    figure = Figure(f"A night of 100,000 new rides after {history}", "s")
    for _ in range(NIGHTS):
        rides.insert(connection, NIGHT)
        figure.runs.append(run(stand)[0])
    return figure


def run(stand: Stand, warehouse: Path | None = None) -> tuple[float, float]:
    """Run the job in a process; returns its seconds once Spark is up, and its memory in bytes."""
    result = stand.folder / "result.json"
    with stand.service(
        "analytics.reconcile",
        "--json",
        str(result),
        WAREHOUSE_DIR=str(warehouse or stand.folder / "warehouse"),
    ) as process:
        peak = 0.0
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            with contextlib.suppress(psutil.NoSuchProcess):
                family = [process, *process.children(recursive=True)]
                peak = max(peak, sum(member.memory_full_info().pss for member in family))
            time.sleep(POLL)
    seconds: float = json.loads(result.read_text())["seconds"]
    result.unlink()
    return seconds, peak


def _extract(stand: Stand) -> Figure:
    """The extract into Parquet, compared with one sum in Postgres."""
    from analytics.session import session

    figure = Figure("Extract into Parquet", "rides/s", "SELECT sum(distance)")
    url = stand.postgres.url
    with session() as spark, database.connect(url, "benchmark") as connection:
        last = _last(connection)
        ranges = extract.cut_into_ranges(connection, 0, last, spark.sparkContext.defaultParallelism)
        for round_ in range(1 + EXTRACTS):
            folder = stand.folder / f"extract{round_}"
            once = partial(extract.extract, spark.sparkContext, url, "rides", ranges, folder)
            extracted = last / _seconds(once)
            summed = last / _seconds(partial(connection.execute, SUM))
            if round_ > 0:  # Spark and Postgres have warmed up
                figure.runs.append(extracted)
                figure.limits.append(summed)
    return figure


def _last(connection: psycopg.Connection) -> int:
    last: int = database.one_row(connection.execute("SELECT max(id) FROM rides"))[0]
    return last


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
