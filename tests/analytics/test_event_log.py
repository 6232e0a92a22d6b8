"""A run by spark-submit that writes an event log, under a configuration of somebody's own.

It is read back by whoever it is for: Spark's own history server.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from rocket_rides.settings import PROJECT
from tests.support.jobs import SPARK_PATIENCE
from tests.support.world import World, drain, eventually

HISTORY_SERVER = "org.apache.spark.deploy.history.HistoryServer"
SPARK_CLASS = Path(sys.executable).with_name("spark-class")
SPARK_SUBMIT = (Path(sys.executable).with_name("spark-submit"), "--master", "local[2]")
LOOPBACK = "127.0.0.1"
BOUND = re.compile(r"'HistoryServerUI' on port (\d+)")
# What exactness does not depend on is as it was asked for; what it depends on is as it must be.
ASKED_FOR = {
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.ansi.enabled": "false",
}
MUST_BE = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
AND_SUITABLE = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "8"}


@contextmanager
def history_server(events: Path, log: Path) -> Iterator[str]:
    """Spark's, on this folder; its URL."""
    settings = {
        "spark.history.fs.logDirectory": events.as_uri(),
        "spark.history.ui.port": "0",
        "spark.history.fs.update.interval": "1s",
    }
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [SPARK_CLASS, HISTORY_SERVER],
            env=os.environ
            | {
                "SPARK_HISTORY_OPTS": " ".join(f"-D{name}={settings[name]}" for name in settings),
                "SPARK_LOCAL_IP": LOOPBACK,
                "PYSPARK_PYTHON": sys.executable,  # it asks this Python where Spark is
            },
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as server,
    ):

        def bound() -> list[str]:
            assert server.poll() is None, log.read_text()
            return BOUND.findall(log.read_text())

        try:
            [port] = eventually(bound, "the history server", SPARK_PATIENCE)
            yield f"http://{LOOPBACK}:{port}/api/v1/applications"
        finally:
            server.kill()


def ask(url: str) -> Any:
    """The answer, once there is one: it listens before it is ready."""

    def answer() -> Any:
        try:
            return httpx.get(url, timeout=SPARK_PATIENCE).raise_for_status().json()
        except httpx.TransportError:
            return None

    return eventually(answer, url, SPARK_PATIENCE)


@pytest.mark.usefixtures("java")
def test_the_history_server_shows_what_ran_under_which_settings(world: World) -> None:
    events = world.folder / "spark" / "events"
    world.take("1.5", "2.5")
    drain(world.streamer())
    events.mkdir(parents=True)
    logged = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": events.as_uri()}
    given = (ASKED_FOR | logged).items()
    options = [word for name, value in given for word in ("--conf", f"{name}={value}")]
    subprocess.run(
        [*SPARK_SUBMIT, *options, "analytics/reconcile.py"],
        cwd=PROJECT,
        env=os.environ
        | {
            "DATABASE_URL": world.postgres_url,
            "WAREHOUSE_DIR": str(world.folder / "warehouse"),
            "SPARK_LOCAL_IP": LOOPBACK,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(PROJECT),
        },
        check=True,
        timeout=SPARK_PATIENCE,
    )
    with history_server(events, world.folder / "history.log") as url:
        [run] = ask(url)
        assert run["name"] == "rocket-rides-reconciliation"
        assert run["attempts"][0]["completed"]
        jobs = ask(f"{url}/{run['id']}/jobs")
        settings = dict(ask(f"{url}/{run['id']}/environment")["sparkProperties"])
    assert {job["status"] for job in jobs} == {"SUCCEEDED"}
    assert {job["description"] for job in jobs} == {
        "Extracting new rides",
        "Adding up new rides",
        "Adding up minutes",
    }
    expected = ASKED_FOR | MUST_BE | AND_SUITABLE
    assert {name: settings[name] for name in expected} == expected
