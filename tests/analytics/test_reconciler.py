"""`python -m analytics.nightly`: it starts the runs when they are due, and never ends."""

import sys
import threading
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import psutil
import pytest

from analytics.nightly import schedule
from analytics.nightly.__main__ import Reconciler
from rocket_rides.revisions import REVISION
from tests.support.world import Service, World, eventually
from unified_log.process import Stop

HONCHOS_PATIENCE = 5  # seconds
RAN = """
    INSERT INTO runs (status, position, started_at, ended_at) VALUES (%s, 1, %s, now())
"""
# A run that lasts, with a child, as Spark's JVM is one. Neither heeds SIGTERM.
LASTING = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
child = subprocess.Popen(sleep, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print("running with", child.pid, flush=True)
child.wait()
"""


def test_a_night_was_missed_when_older_rides_were_not_reconciled_since(world: World) -> None:
    due = datetime(2026, 1, 2, 3, tzinfo=UTC)
    moment = timedelta(microseconds=1)
    assert not schedule.missed(world.connection, due)  # there is nothing to reconcile
    world.take(5)
    assert not schedule.missed(world.connection, due)  # nor was there at the time
    world.connection.execute("UPDATE rides SET created_at = %s", [due - moment])
    assert schedule.missed(world.connection, due)
    world.connection.execute(RAN, ["agreed", due - moment])  # that was the night before
    world.connection.execute(RAN, ["failed", due])
    assert schedule.missed(world.connection, due)
    world.connection.execute(RAN, ["held", due])
    assert not schedule.missed(world.connection, due)


OF_REVISION = """
    UPDATE schema_versions SET revision = %s, serves_from = %s WHERE component = 'rocket_rides'
"""


def miss_a_night(world: World) -> None:
    world.take(5)
    world.connection.execute("UPDATE rides SET created_at = now() - interval '2 days'")


def test_it_waits_for_the_schema_and_makes_up_for_the_night(world: World) -> None:
    miss_a_night(world)
    world.connection.execute(OF_REVISION, [REVISION - 1] * 2)
    reconciler = world.service("tests.support.night", "").says("schema is 0010")
    world.connection.execute(OF_REVISION, [REVISION] * 2)
    reconciler.says("was missed; starting it now").says("INFO    reconciled\n")
    assert reconciler.stop() == 0


@pytest.mark.parametrize(
    ("zone", "said"),
    [
        ("JST-9", "reconciling every day at 03:00 (local time, now JST, +0900)"),
        ("Foo/Bar", "TZ='Foo/Bar' names no time zone that is known here: it means UTC"),
    ],
)
def test_without_java_or_a_zone_that_has_a_name_it_says_so_and_lives_on(
    world: World, zone: str, said: str
) -> None:
    miss_a_night(world)
    given = {"JAVA_HOME": "/nonexistent", "TZ": zone, "RECONCILE_AT": "03:00"}
    reconciler = world.service("analytics.nightly", **given).says(said)
    reconciler.says("Java 17 or newer is needed")
    assert reconciler.stop() == 0
    assert reconciler.output.read_text().count("Java 17") == 1


def lasting(world: World) -> tuple[Service, list[psutil.Process]]:
    """A reconciler with a run under way, whose output stands among its own; and its processes."""
    miss_a_night(world)
    reconciler = world.service("tests.support.night", LASTING).says("running with")
    return reconciler, psutil.Process(reconciler.process.pid).children(recursive=True)


def gone(processes: list[psutil.Process]) -> bool:
    return not any(process.is_running() for process in processes)


def test_told_to_stop_it_ends_the_run_with_it(world: World) -> None:
    reconciler, run = lasting(world)
    assert len(run) == 2
    reconciler.process.terminate()
    assert reconciler.process.wait(HONCHOS_PATIENCE) == 0
    eventually(lambda: gone(run))
    assert "reconciliation" not in reconciler.output.read_text().partition("running")[2]


def test_killed_it_takes_the_run_with_it(world: World) -> None:
    reconciler, [run, child] = lasting(world)
    reconciler.process.kill()
    eventually(lambda: gone([run]))
    child.kill()  # a JVM notices by itself


@pytest.mark.usefixtures("java")
def test_every_night_the_rides_are_reconciled(
    world: World, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """And no night is made up for without need."""
    world.take(5)  # but nothing was there to reconcile last night
    began = datetime.now().astimezone()
    soon = began + timedelta(seconds=1)
    config = world.config().model_copy(update={"reconcile_at": f"{soon:%H:%M:%S.%f}"})
    looks = count()

    class BeginsInTime(Reconciler):
        """However long it takes to begin: else a busy machine would let the moment pass."""

        def now(self) -> datetime:
            return super().now() if next(looks) > 1 else began

    caplog.set_level("INFO")
    stop, runs = Stop(), tmp_path / "runs"
    command = [sys.executable, "-c", f"open({str(runs)!r}, 'a').write('x')"]
    thread = threading.Thread(target=BeginsInTime(config, stop, command).run)
    thread.start()
    try:
        eventually(lambda: "reconciled" in caplog.text)
    finally:
        stop.ask()
        thread.join()
    assert runs.read_text() == "x"
    assert "was missed" not in caplog.text
