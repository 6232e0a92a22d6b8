"""A run by spark-submit that writes an event log, under a configuration of somebody's own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rocket_rides.settings import PROJECT
from tests.support.jobs import SPARK_PATIENCE
from tests.support.world import World, drain

SPARK_SUBMIT = (Path(sys.executable).with_name("spark-submit"), "--master", "local[2]")
LOOPBACK = "127.0.0.1"
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


@pytest.mark.usefixtures("java")
def test_the_event_log_tells_what_ran_under_which_settings(world: World) -> None:
    events = world.folder / "events"
    events.mkdir()
    world.take("1.5", "2.5")
    drain(world.streamer())
    logged = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
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
    [log] = events.iterdir()
    told = [json.loads(line) for line in log.read_text().splitlines()]

    def of(kind: str) -> list[dict[str, dict[str, str]]]:
        return [event for event in told if event["Event"] == f"SparkListener{kind}"]

    [settings] = (event["Spark Properties"] for event in of("EnvironmentUpdate"))
    expected = ASKED_FOR | MUST_BE | AND_SUITABLE
    assert settings["spark.app.name"] == "rocket-rides-reconciliation"
    assert {name: settings[name] for name in expected} == expected
    assert {event["Properties"]["spark.job.description"] for event in of("JobStart")} == {
        "Extracting new rides",
        "Adding up new rides",
        "Adding up minutes",
    }
    assert {event["Job Result"]["Result"] for event in of("JobEnd")} == {"JobSucceeded"}
    assert of("ApplicationEnd")
