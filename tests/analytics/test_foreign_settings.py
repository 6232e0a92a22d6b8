"""Whatever others have set for their Spark and their Java, and whoever we are, a run is exact."""

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark
import pytest

from analytics.foreign import is_javas, is_sparks, keep_out
from demo.embedded.servers import Redis
from lab.ports import free_ports
from rocket_rides.settings import PROJECT
from tests.support.deployed import deployed
from tests.support.folders import short_folder
from tests.support.java import short_lived_java
from tests.support.jobs import SPARK_PATIENCE
from tests.support.world import eventually

PYSPARK = Path(pyspark.__file__).parent
LAUNCHING = ("spark-submit", "spark-class", "find-spark-home", "load-spark-env.sh")
IN_SHELL = re.compile(r"\$\{?([A-Z][A-Z_0-9]+)\b")
SET_IN_SHELL = re.compile(r"\b([A-Z][A-Z_0-9]+)=|read .*-r (\w+)")
IN_PYTHON = re.compile(
    r'environ(?:\.get\(|\.pop\(|\[)\s*"([A-Z_0-9]+)"|"([A-Z_0-9]+)" (?:not )?in os\.environ'
)
# They are how one says which Java, which modules, which time.
HONOURED = {"JAVA_HOME", "PYTHONPATH", "PYTHONHASHSEED", "TZ", "OLD_PYTHONSTARTUP"}
NOWHERE = "/nowhere/nothing"
# What does more harm than a folder that is not there.
HOSTILE = {
    "JAVA_TOOL_OPTIONS": f"-javaagent:{NOWHERE}.jar",
    "_JAVA_OPTIONS": "-Xmx1k",
    "JDK_JAVA_OPTIONS": f"@{NOWHERE}",
    "CLASSPATH": NOWHERE,
    "MASTER": "spark://127.0.0.1:1",
    "DEPLOY_MODE": "cluster",
    "CONTAINER_ID": "container_1",
    "HADOOP_CONF_DIR": NOWHERE,
    "HADOOP_PROXY_USER": "nobody",
    "HADOOP_TOKEN_FILE_LOCATION": NOWHERE,
    "YARN_CONF_DIR": NOWHERE,
    "HIVE_HOME": NOWHERE,
    "ARROW_PRE_0_15_IPC_FORMAT": "1",
    "PYSPARK_SUBMIT_ARGS": "--master spark://127.0.0.1:1 pyspark-shell",
    "PYSPARK_GATEWAY_PORT": "1",
    "SPARK_REMOTE": "sc://127.0.0.1:1",
    "SPARK_LOCAL_IP": "192.0.2.1",
    "SPARK_DRIVER_MEMORY": "1k",
}
UNKNOWN = 12345  # a user id
TAMPER = "UPDATE consumer_states SET total_distance = total_distance + 1 WHERE name = 'consumer1'"


def read_by_spark() -> Iterator[str]:
    """Variables that PySpark's launching scripts and its Python read."""
    for name in LAUNCHING:
        script = (PYSPARK / "bin" / name).read_text()
        own = {one or other for one, other in SET_IN_SHELL.findall(script)}
        yield from {*IN_SHELL.findall(script)} - own
    for part in ("core", "errors", "logger", "sql", "."):
        for path in (PYSPARK / part).glob("*.py" if part == "." else "**/*.py"):
            for one, other in IN_PYTHON.findall(path.read_text()):
                yield one or other


def test_each_variable_that_spark_reads_is_kept_out_or_honoured_on_purpose() -> None:
    found = {*read_by_spark()}
    assert {"SPARK_HOME", "PYSPARK_PYTHON", "SPARK_REMOTE", "JAVA_HOME"} <= found
    assert {name for name in found if not (is_sparks(name) or is_javas(name))} <= HONOURED


@pytest.mark.parametrize(
    ("master", "file", "hold"),
    [
        ("", False, False),
        ("local[2]", False, False),
        ("spark://host:7077", False, True),
        ("local-cluster[2,1,1024]", False, True),
        ("", True, True),
        ("local[2]", True, True),
    ],
)
def test_on_a_cluster_they_hold(
    master: str, file: bool, hold: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = HOSTILE | {"SPARK_MASTER": master, "JAVA_HOME": "/java", "HOME": "/home"}
    monkeypatch.setattr(os, "environ", dict(given))
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None if file else pytest.__spec__)
    keep_out(master)
    ours = {name: given[name] for name in ("SPARK_MASTER", "JAVA_HOME", "HOME")}
    assert os.environ == (given if hold else ours)


def hostile() -> dict[str, str]:
    """What others have set for their Spark, a proxy, and a time zone that Java does not know."""
    nobody = f"http://127.0.0.1:{free_ports()}"
    proxies = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"), nobody)
    theirs = dict.fromkeys([name for name in read_by_spark() if is_sparks(name)], NOWHERE) | HOSTILE
    return proxies | theirs | {"TZ": "CET-1CEST,M3.5.0,M10.5.0/3", "SPARK_MASTER": ""}


def is_reachable(path: Path) -> bool:
    """Whether every user may enter the folders above this."""
    return path.exists() and all(above.stat().st_mode & 0o001 for above in path.parents)


def reachable_python() -> str | None:
    """An interpreter like ours that every user may start, where there is one, and our code."""
    if not (is_reachable(PROJECT / "analytics") and is_reachable(PYSPARK)):
        return None
    ours = Path(sys.executable).resolve()
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for place in (ours, Path("/usr/bin") / version, Path("/usr/local/bin") / version):
        if is_reachable(place):
            return str(place)
    return None


@pytest.mark.usefixtures("java")
def test_a_deployed_night_repairs_a_total_whatever_others_have_set_for_their_spark(
    redis_of_kind: Callable[[str], Redis], tmp_path: Path
) -> None:
    """As docker-compose.yml runs it: under a role of its own, with a password.

    Nor does it matter that the system does not know who we are, as only root can have it. So it is
    in a container that was started under some number, without a home.
    """
    python = reachable_python() if os.geteuid() == 0 else None
    user = UNKNOWN if python else None
    with deployed(redis_of_kind("valkey"), tmp_path) as (fleet, world, _), short_folder() as folder:
        for name in ("streamer", "consumer0", "consumer1"):
            fleet.start(world, name)
        world.take(1, 2, "0.001")
        totals = ("consumer0", "consumer1")
        eventually(lambda: {world.standing(name) for name in totals} == {world.truth})
        world.connection.execute(TAMPER)
        if user:
            os.chown(folder, user, user)
        given = {
            **hostile(),
            **fleet.environment("reconciler"),
            **short_lived_java(folder),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": sysconfig.get_path("purelib"),
            "TMPDIR": str(folder),
            "DATA_DIR": str(folder),
            "REDIS_URL": "",  # which another Python may have no client for
            "WAREHOUSE_DIR": str(folder / "warehouse"),
        }
        ended = subprocess.run(
            [python or sys.executable, "-m", "analytics.reconcile"],
            cwd=PROJECT,
            env=given,
            user=user,
            group=user,
            extra_groups=[] if user else None,
            capture_output=True,
            text=True,
            timeout=SPARK_PATIENCE,
        )
        assert ended.returncode == 1, ended.stderr
        assert re.search(r"^consumer0 .* agrees$", ended.stdout, re.MULTILINE)
        eventually(lambda: world.standing("consumer1") == world.truth, "the repaired total")
        assert world.value("SELECT count(*) FROM runs WHERE status = 'wrong'") == 1
        assert "permission denied" not in world.postgres.log.read_text()
