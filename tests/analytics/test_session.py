"""The Spark session of a run: whose it is, who may speak to it, and what it says when it can't."""

import os
import re
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pyspark
import pytest
from deltalake import DeltaTable

from analytics.ledger import Broken
from analytics.store import Store
from analytics.table import Table
from rocket_rides.settings import PROJECT
from tests.support.jobs import SPARK_PATIENCE
from tests.support.world import PATIENCE, World

if TYPE_CHECKING:
    from pyspark import SparkContext

# Runs that can't have the Spark that they ask for, one after the other, with one Java.
RUNS = """
import os
import pyspark
from analytics import reconcile, session
session.WORKER_WITHIN = 3
for master, version in {asked_for}:
    os.environ["SPARK_MASTER"], pyspark.__version__ = master, version
    try:
        reconcile.main()
    except SystemExit as end:
        print(end.code)
"""
# A request to an endpoint of the driver, in Spark's own protocol. After its address there should be
# a serialized object: whoever tries to read one says so.
TO = b"HeartbeatReceiver"
BODY = b"\0\0" + len(TO).to_bytes(2, "big") + TO + b"no object"
REQUEST = b"\3" + (1).to_bytes(8, "big") + len(BODY).to_bytes(4, "big") + BODY
NO_OBJECT = (8 + len(REQUEST)).to_bytes(8, "big") + REQUEST
# What a table needs of whoever reads it.
PROTOCOL = (
    '{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,'
    ' "readerFeatures": ["\\u001b[2J"], "writerFeatures": ["\\u001b[2J"]}}'
)


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own, which has no session yet."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=PROJECT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=SPARK_PATIENCE,
    )


def test_a_session_that_is_there_is_used_and_left_running_by_any_thread(
    spark: "SparkContext",
) -> None:
    from analytics.session import session

    def count() -> int:
        with session() as used:
            return used.parallelize([1, 2, 3]).count()

    with ThreadPoolExecutor(1) as another:
        assert another.submit(count).result() == 3
    assert spark.parallelize([1, 2, 3]).count() == 3


def test_what_another_user_of_this_machine_sends_to_its_ports_is_not_read(
    spark: "SparkContext",
) -> None:
    """Spark would make an object of it, of whatever class it names."""
    open_to = {
        listener.laddr.ip.removeprefix("::ffff:")
        for process in psutil.Process().children(recursive=True)
        if process.name() == "java"
        for listener in process.net_connections("tcp")
        if listener.status == psutil.CONN_LISTEN
    }
    assert open_to == {"127.0.0.1"}
    port = int(spark.getConf().get("spark.driver.port") or 0)
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as driver:
        driver.sendall(NO_OBJECT)
        answer = driver.recv(4096)
    assert b"Expected SaslMessage" in answer
    assert b"ObjectInputStream" not in answer


def test_a_pyspark_that_is_too_old_is_status_2_and_one_line(tmp_path: Path) -> None:
    package = tmp_path / "pyspark" / "__init__.py"
    package.parent.mkdir()
    package.write_text('__version__ = "3.5.7"')
    given = {"PYTHONPATH": str(tmp_path), "DATABASE_URL": "postgresql:///none"}
    ended = python("-m", "analytics.reconcile", **given)
    assert (ended.returncode, ended.stdout) == (2, "")
    reason = f"PySpark 4.0 or newer is needed; {package.parent} is PySpark 3.5.7"
    assert ended.stderr == f"not reconciled: {reason}\n"


@pytest.mark.usefixtures("java")
def test_a_spark_that_a_run_can_not_have_is_status_2_and_one_line(world: World) -> None:
    nobody, ours = "local-cluster[0,1,1024]", pyspark.__version__
    reasons = {
        ("nonsense", ours): "can't start: .*Could not parse Master URL: 'nonsense'",
        (nobody, ours): f": no worker of {re.escape(nobody)} took a task within 3 s",
        ("", "4.99.0"): f"SPARK_HOME has Spark {ours}; Spark 4.99.0 is needed, as PySpark is here",
    }
    world.send(1)
    runs = RUNS.format(asked_for=[*reasons])
    ended = python("-c", runs, **world.settings, SPARK_LOCAL_IP="127.0.0.1")
    assert ended.stdout.split() == ["2"] * len(reasons)
    for line, reason in zip(ended.stderr.splitlines(), reasons.values(), strict=True):
        assert re.fullmatch(f"not reconciled: .*{reason}.*", line)


def test_no_reason_that_spark_gives_moves_a_cursor() -> None:
    from analytics.session import cause

    assert cause(ValueError("bad: \x1b[2J\n\tat one\nCaused by: it is \x1b[31mred")) == (
        r"it is \x1b[31mred"
    )


def test_the_reason_that_java_gives_is_found_without_its_output() -> None:
    from analytics.session import cause

    raised = "An error occurred while calling o1.\n: java.io.Exception: no disk\n\tat java.base/x"
    assert cause(ValueError(raised)) == "java.io.Exception: no disk"


def test_no_reason_that_delta_gives_moves_a_cursor(tmp_path: Path) -> None:
    import pyarrow as pa

    delta = DeltaTable.create(str(tmp_path), pa.schema([("id", pa.int64())]))
    (tmp_path / "_delta_log" / f"{delta.version() + 1:020}.json").write_text(PROTOCOL)
    with pytest.raises(Broken, match=r"Feature '\\x1b\[2J' is not supported"):
        _ = Table(Store(str(tmp_path)), retention_days=30).delta
