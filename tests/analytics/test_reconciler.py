"""`python -m analytics.nightly`: it starts the runs, tells what they say, and never ends."""

import subprocess
import sys
import threading
from datetime import UTC, datetime, time, timedelta
from itertools import repeat
from pathlib import Path

import psutil
import pytest

from analytics.nightly import attempts
from analytics.nightly.__main__ import Reconciler
from analytics.nightly.child import LINGER
from analytics.nightly.nights import next_due
from demo import nightly
from demo.install import environment
from rocket_rides.database import REVISION
from rocket_rides.process import Stop
from rocket_rides.settings import PROJECT, load
from tests.support.world import PATIENCE, Service, World, eventually

NO_JAVA = {"JAVA_HOME": "/nonexistent"}
HONCHOS_PATIENCE = 5  # seconds
FAILING = (sys.executable, "-c", "import sys; sys.exit('no network')")
# A run that lasts, with a child, as Spark's JVM is one. Neither heeds SIGTERM.
LASTING = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
child = subprocess.Popen(sleep, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print("running with", child.pid)
child.wait()
"""


def miss_a_night(world: World) -> None:
    world.take(5)
    world.connection.execute("UPDATE rides SET created_at = now() - interval '2 days'")


def night(world: World, code: str, **environment: str) -> Service:
    """The reconciler, with a night to make up for, on a run that is `code`."""
    miss_a_night(world)
    return world.service("tests.support.night", code, **environment)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("", "INFO    reconciled\n"),
        ("raise SystemExit(1)", "WARNING reconciled: not everything agrees, see above\n"),
        (
            "import sys; print('on stdout'); sys.stderr.write('no server\\n'); sys.exit(2)",
            "no server\nWARNING the reconciliation could not run\n",
        ),
        ("raise SystemExit(3)", "ERROR   the reconciliation ended with 3\n"),
        (
            "import os; os.kill(os.getpid(), 9)",
            "ERROR   the reconciliation was killed by SIGKILL\n",
        ),
    ],
)
def test_it_tells_how_a_run_ended_and_lives_on(world: World, code: str, told: str) -> None:
    reconciler = night(world, code)
    reconciler.says("was missed; starting it now").says(told)
    assert reconciler.stop() == 0


def test_what_a_run_prints_stands_there_as_it_comes(world: World) -> None:
    reconciler = night(
        world, "import signal; print('WARNING as logged by it', flush=True); signal.pause()"
    )
    reconciler.says("\nWARNING as logged by it\n")


def test_a_run_that_could_not_run_is_tried_again_until_it_can(world: World, tmp_path: Path) -> None:
    times = tmp_path / "times"
    code = f"""
with open({str(times)!r}, "a+") as file:
    file.write("x")
    file.seek(0)
    raise SystemExit(2 if len(file.read()) < 3 else 0)
"""
    reconciler = night(world, code).says("trying again at").says("INFO    reconciled\n")
    assert times.read_text() == "xxx"
    assert "skipped" not in reconciler.output.read_text()


def far_away() -> str:
    """A time of day that no test lasts until."""
    return f"{datetime.now() - timedelta(hours=12):%H:%M}"  # noqa: DTZ005 (local, as the setting)


def test_a_night_is_not_made_up_for_without_need(world: World) -> None:
    world.take(5)  # but nothing was there to reconcile last night
    reconciler = world.service(
        "tests.support.night", "print('started')", LOG_LEVEL="DEBUG", RECONCILE_AT=far_away()
    )
    reconciler.says("no night was missed")
    assert reconciler.stop() == 0
    assert "started" not in reconciler.output.read_text()


def test_without_java_it_says_so_and_lives_on(world: World) -> None:
    miss_a_night(world)
    reconciler = world.service("analytics.nightly", **NO_JAVA)
    reconciler.says("Java 17 or newer is needed")
    assert reconciler.stop() == 0
    assert reconciler.output.read_text().count("Java 17") == 1


def test_a_night_is_reconciled_once_what_it_needs_is_there(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """That what it lacks is yet to be installed is no warning; each reason is told once."""
    none, started = "there is no Java", tmp_path / "started"
    lacks, installing = iter([none, none, ""]), iter([True, True, False, False, False])
    monkeypatch.setattr(attempts, "what_is_lacking", lambda: next(lacks))
    caplog.set_level("INFO")
    command = [sys.executable, "-c", f"open({str(started)!r}, 'w')"]
    until = datetime.now(UTC) + timedelta(hours=1)
    attempts.run_with_retries(command, until, Stop(), 0.01, lambda: next(installing))
    assert started.exists()
    told = [(each.levelname, each.getMessage()) for each in caplog.records]
    assert [each for each in told if "trying again at" not in each[1]] == [
        ("INFO", "can't reconcile the rides: what a run needs is yet to be installed"),
        ("WARNING", f"can't reconcile the rides: {none}"),
        ("INFO", "reconciled"),
    ]


def test_it_waits_for_the_database_and_for_the_schema(world: World) -> None:
    miss_a_night(world)
    world.connection.execute("UPDATE alembic_version SET version_num = '0009'")
    waiting = world.service("tests.support.night", "")
    waiting.says("schema is 0009")
    world.connection.execute(f"UPDATE alembic_version SET version_num = '{REVISION}'")
    waiting.says("INFO    reconciled\n")
    away = world.service("analytics.nightly", DATABASE_URL="postgresql:///x?host=/nowhere")
    away.says("Postgres can't be reached")
    assert away.stop() == 0


def lasting(world: World) -> tuple[Service, list[psutil.Process]]:
    """A reconciler with a run under way, and the run's processes."""
    reconciler = night(world, LASTING).says("running with")
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


@pytest.mark.parametrize(
    ("java", "wanted"),
    [
        (True, ["reconciled"]),
        (False, ["Java 17 or newer"]),
    ],
)
def test_every_night_the_rides_are_reconciled_or_it_says_that_java_is_missing(
    world: World,
    java: bool,
    wanted: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("DATABASE_URL", world.postgres_url)
    if not java:
        monkeypatch.setenv("JAVA_HOME", NO_JAVA["JAVA_HOME"])
    soon = datetime.now() + timedelta(seconds=1)  # noqa: DTZ005 (local, as the setting)
    config = load().model_copy(update={"reconcile_at": f"{soon:%H:%M:%S.%f}"})
    caplog.set_level("INFO")
    stop = Stop()
    started = tmp_path / "started"
    command = [sys.executable, "-c", f"open({str(started)!r}, 'w')"]
    thread = threading.Thread(target=Reconciler(config, stop, command).run)
    thread.start()
    try:
        eventually(lambda: all(text in caplog.text for text in wanted), str(wanted))
        assert started.exists() == java
    finally:
        stop.ask()
        thread.join()


def test_a_run_has_ended_before_the_next_night_is_due(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or that night would be left out."""
    ends: list[datetime] = []
    monkeypatch.setattr(attempts, "run_with_retries", lambda *given: ends.append(given[1]))
    monkeypatch.setenv("DATABASE_URL", world.postgres_url)
    reconciler = Reconciler(load(), Stop())
    reconciler.reconcile()
    due = next_due(reconciler.now(), time.fromisoformat(load().reconcile_at))
    assert timedelta(seconds=2 * LINGER) < due - ends[0] < timedelta(minutes=5)


HEAVY = {"pyspark", "py4j", "pyarrow", "adbc_driver_postgresql", "redis"}


def test_the_process_that_waits_imports_nothing_that_only_a_run_needs() -> None:
    code = "import sys, analytics.nightly.__main__; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True)
    assert not HEAVY & set(told.stdout.split())
    assert "analytics.nightly.__main__" in told.stdout


def test_what_a_run_needs_is_only_installed_where_make_has_set_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(environment, "VENV", tmp_path)
    assert not nightly.is_wanted()
    (tmp_path / ".fleet").touch()
    assert not nightly.is_wanted()  # this is another environment than ours


def test_what_is_missing_is_installed_in_the_background_and_a_failure_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / ".fleet").touch()
    monkeypatch.setattr(environment, "VENV", tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert nightly.is_wanted()
    caplog.set_level("INFO")
    stop, told = Stop(), ("installing what only a reconciliation needs", "could not be installed")
    thread = threading.Thread(target=nightly.install, args=[stop, repeat(0.05), FAILING])
    thread.start()
    try:  # it is tried again
        eventually(lambda: all(caplog.text.count(words) > 1 for words in told))
    finally:
        stop.ask()
        thread.join()


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ([True, False], "installed what a reconciliation needs"),
        ([True, True], ""),  # all but Java: each night tells that
        ([False], ""),  # `make reconcile` has installed it meanwhile
    ],
)
def test_what_was_installed_is_told_as_it_is(
    wanted: list[bool],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(nightly, "is_wanted", lambda: wanted.pop(0))
    caplog.set_level("INFO")
    nightly.install(Stop(), [0], [sys.executable, "-c", ""])
    assert not wanted
    assert [record.getMessage() for record in caplog.records[1:]] == [told] * bool(told)


ENDING = """
import threading
from analytics.nightly import __main__ as nightly

def install(stop):
    thread = threading.Thread(target=stop.wait, args=[600])
    thread.start()
    return thread.is_alive

def fail(reconciler):
    raise SystemExit("no more")

nightly.Reconciler.run = fail
nightly.main(install)
"""


def test_an_installation_ends_with_the_process_however_that_ends() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ENDING], cwd=PROJECT, capture_output=True, timeout=PATIENCE
    )
    assert b"no more" in ended.stderr


def test_the_demo_installs_some_minutes_after_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not during the first rides."""
    pauses: list[float] = []
    monkeypatch.setattr(nightly, "is_wanted", lambda: True)
    monkeypatch.setattr(nightly, "install", lambda _stop, given: pauses.append(next(given)))
    is_installing = nightly.install_in_the_background(Stop())
    eventually(lambda: pauses)
    assert pauses == [300]
    eventually(lambda: not is_installing())
    monkeypatch.setattr(nightly, "is_wanted", lambda: False)
    assert not nightly.install_in_the_background(Stop())()  # a run need not wait
