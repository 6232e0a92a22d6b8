"""A Postgres that freezes while Spark's tasks read from it: the run ends, with a sentence."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Event
from typing import TYPE_CHECKING

import psutil
import pytest

from analytics import extract
from analytics.from_postgres import RIDES_IN_RANGE
from analytics.steps import RunStep
from demo.embedded.servers import Postgres
from demo.embedded.spawn import running
from tests.support.attacks import (
    all_have_counted,
    alter_in_file,
    in_postgres,
    in_warehouse,
    settled,
)
from tests.support.books import Books
from tests.support.jobs import SPARK_PATIENCE, reconcile
from tests.support.world import PATIENCE, World, eventually
from unified_log import deadline
from unified_log.faults import listening

if TYPE_CHECKING:
    from pyspark import SparkContext

# Seconds that a run may take to end, on a busy machine: else it waits as long as the server does.
LONGEST = 2 * PATIENCE
# Each of these statements is still being carried out when its server freezes.
FOR_LONG = RIDES_IN_RANGE.replace("FROM {table}", "FROM {table}, pg_sleep(3600)")
READING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE application_name = 'reconciler' AND wait_event = 'PgSleep'
"""
END_THEM = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
RUNS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'reconciler'"


@contextmanager
def frozen(server: Postgres) -> Iterator[None]:
    """The postmaster and all of its processes."""
    try:
        eventually(lambda: signalled(server, signal.SIGSTOP) == {psutil.STATUS_STOPPED})
        yield
    finally:
        signalled(server, signal.SIGCONT)


def signalled(server: Postgres, number: signal.Signals) -> set[str]:
    """In which states its processes are once they were sent the signal."""
    states = set[str]()
    for process in running(server.folder):
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            os.kill(process.pid, number)
            states.add(process.status())
    return states


def test_a_run_does_not_wait_for_a_server_that_froze_while_tasks_read(
    own_world: World,
    spark: "SparkContext",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """New rides, and those that are read again. The next run finds nothing amiss."""
    monkeypatch.setattr(deadline, "EVERY", 0.1)
    books = Books(own_world, spark)
    settled(books)
    for when, ride in ((RunStep.AFTER_FREEZE, 100_004), (RunStep.BEFORE_PUBLISH, 4)):
        own_world.send(5)
        all_have_counted(books)
        alter_in_file(books, ride, 1)
        with ThreadPoolExecutor(1) as threads, slow_from(when):
            ended = Event()
            freezing = threads.submit(freeze, own_world, ended)
            run = reconcile(own_world)
            ended.set()
        assert freezing.result() < LONGEST, run.wrong
        assert (run.status, run.said) == (2, "")
        assert run.wrong.startswith("not reconciled: Postgres does not answer: ")
        assert len(run.wrong.splitlines()) == 1
        eventually(lambda: own_world.value(RUNS) == 0, "the end of the run's sessions")
        assert reconcile(own_world).status == 1
        assert in_warehouse(books) == in_postgres(books)
        assert reconcile(own_world).status == 0


@contextmanager
def slow_from(when: RunStep) -> Iterator[None]:
    """From that step on, tasks read for long."""
    with pytest.MonkeyPatch.context() as patch:

        def slowly(step: object) -> None:
            if step is when:
                patch.setattr(extract, "RIDES_IN_RANGE", FOR_LONG)

        with listening(slowly):
            yield


def freeze(world: World, ended: Event) -> float:
    """Seconds until the run had ended."""
    reads = "a task that reads"
    eventually(lambda: world.value(READING) or ended.is_set(), reads, SPARK_PATIENCE)
    time.sleep(1)  # asked ten times meanwhile, it answers, so the task is waited for
    with frozen(world.postgres):
        began = time.monotonic()
        ended.wait(LONGEST)
    world.connection.execute(END_THEM)
    return time.monotonic() - began
