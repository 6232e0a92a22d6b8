"""`python -m demo.embedded`, the process `servers`: it starts, supervises, and stops last."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import psycopg
import pytest
import redis

from demo.embedded import supervision
from demo.embedded.stream_servers import VALKEY, append_only_file
from rocket_rides.process import Stop
from rocket_rides.settings import PROJECT, Settings
from rocket_rides.waiting import FIRST_DELAY
from tests.support.folders import short_folder
from tests.support.world import PATIENCE, eventually

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs prctl(PR_SET_PDEATHSIG)")


class Servers:
    """`python -m demo.embedded` on a data folder of its own; its output goes to a file."""

    def __init__(self, data: Path) -> None:
        self.settings = Settings.model_construct(data_dir=data)
        self.output = data.parent / "output.log"
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, stdout: int | None = None, **environment: str) -> subprocess.Popen[bytes]:
        self.output.write_text("")
        given = {**os.environ, "DATA_DIR": str(self.settings.data_dir), **environment}
        for name in {"DATABASE_URL", "REDIS_URL"} - set(environment):
            given.pop(name, None)
        with self.output.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "demo.embedded"],
                cwd=PROJECT,
                env=given,
                stdout=stdout or output,
                stderr=output,
            )
        self.started.append(process)
        return process

    def says(self, text: str) -> None:
        eventually(lambda: text in self.output.read_text(), f"{text!r} in the output")

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.settings.postgres_url, autocommit=True)

    def redis_pid(self) -> int:
        """The server's process, 0 when there is none."""
        try:
            with redis.Redis.from_url(self.settings.log_url, retry=None) as client:
                return int(client.info("server")["process_id"])
        except redis.RedisError:
            return 0

    def redis_loads(self) -> bool:
        """Whether the server is there, and reads its file."""
        try:
            with redis.Redis.from_url(self.settings.log_url, retry=None) as client:
                client.ping()
        except redis.BusyLoadingError:
            return True
        except redis.RedisError:
            pass
        return False

    def postgres_pid(self) -> int:
        """The postmaster, 0 when it does not serve."""
        try:
            with self.connect() as connection:
                row = connection.execute(
                    "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int"
                ).fetchone()
                return int(row[0]) if row else 0
        except psycopg.OperationalError:
            return 0


@contextmanager
def in_a_place_of_their_own() -> Iterator[Servers]:
    with short_folder() as place:
        servers = Servers(place / "data")
        yield servers
        for process in servers.started:
            process.terminate()
            process.wait(PATIENCE)


@pytest.fixture
def servers() -> Iterator[Servers]:
    with in_a_place_of_their_own() as servers:
        yield servers


@pytest.fixture(scope="module")
def stopped() -> Iterator[Servers]:
    """Servers that were stopped in good order, and whose data tests copy."""
    with in_a_place_of_their_own() as servers:
        process = servers.start()
        servers.says("up to date")
        process.terminate()
        process.wait(PATIENCE)
        yield servers


def copy(stopped: Servers, data: Path) -> None:
    subprocess.run(["/bin/cp", "-a", stopped.settings.data_dir, data], check=True)


@pytest.fixture
def ready(servers: Servers, stopped: Servers) -> Servers:
    """Servers that have data already, and have not logged anything yet."""
    copy(stopped, servers.settings.data_dir)
    for log in servers.settings.data_dir.glob("*.log"):
        log.unlink()
    return servers


def no_version(data: Path) -> None:
    (data / "postgres/PG_VERSION").unlink()


def garbage_for_a_version(data: Path) -> None:
    (data / "postgres/PG_VERSION").write_text("garbage")


def another_major_version(data: Path) -> None:
    (data / "postgres/PG_VERSION").write_text("13\n")


def no_control_file(data: Path) -> None:
    (data / "postgres/global/pg_control").unlink()


def no_wal(data: Path) -> None:
    shutil.rmtree(data / "postgres/pg_wal")


def garbage_in_the_log(data: Path) -> None:
    append_only_file(data / "redis").write_bytes(b"garbage")


@pytest.mark.parametrize(
    ("damage", "name", "reason"),
    [
        (no_version, "Postgres", 'PG_VERSION" is missing'),
        (garbage_for_a_version, "Postgres", 'PG_VERSION" does not contain valid data'),
        (another_major_version, "Postgres", "initialized by PostgreSQL version 13"),
        (no_control_file, "Postgres", 'global/pg_control": No such file or directory'),
        (no_wal, "Postgres", 'required WAL directory "pg_wal" does not exist'),
        (garbage_in_the_log, "Redis", "Bad file format reading the append only file"),
    ],
)
def test_damaged_data_ends_it_with_one_line_that_says_why(
    servers: Servers, stopped: Servers, damage: Callable[[Path], None], name: str, reason: str
) -> None:
    data = servers.settings.data_dir
    copy(stopped, data)
    damage(data)
    assert servers.start().wait(PATIENCE) == 1
    said = servers.output.read_text().splitlines()
    [line] = [line for line in said if not line.startswith("INFO")]
    assert line.startswith(f"{name} can't use its data in {data}")
    assert reason in line


def test_a_schema_that_cannot_be_upgraded_ends_it_with_one_line(ready: Servers) -> None:
    process = ready.start()
    ready.says("up to date")
    with ready.connect() as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    process.terminate()
    process.wait(PATIENCE)
    assert ready.start().wait(PATIENCE) == 1
    said = ready.output.read_text().splitlines()
    [line] = [line for line in said if not line.startswith("INFO")]
    assert line.startswith("not migrated: the database's schema is 9999, newer than this code")


SET = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"


def test_a_server_that_is_killed_again_and_again_is_revived_for_ever(
    servers: Servers, stopped: Servers
) -> None:
    data = servers.settings.data_dir
    copy(stopped, data)
    append_only_file(data / "redis").write_bytes(SET * 2_000_000)  # takes a while to be loaded
    servers.start(DATABASE_URL="postgresql:///none?host=/nowhere")
    for _ in range(4):
        eventually(servers.redis_loads)
        found = psutil.process_iter(["name", "cwd"])
        redis_server = {"name": VALKEY.program, "cwd": str(data / "redis")}
        [process] = [process for process in found if process.info == redis_server]
        process.kill()
        eventually(lambda: not servers.redis_loads())
    servers.says("Redis runs on the data")
    assert servers.redis_pid()


def is_another(pid: Callable[[], int], killed: int) -> bool:
    return pid() not in (0, killed)


def test_a_killed_server_is_started_again_with_its_data(ready: Servers) -> None:
    ready.start()
    ready.says("up to date")
    with redis.Redis.from_url(ready.settings.log_url) as client:
        client.set("kept", 1)
    for pid in (ready.redis_pid, ready.postgres_pid):
        os.kill(killed := pid(), signal.SIGKILL)
        eventually(partial(is_another, pid, killed))
    with redis.Redis.from_url(ready.settings.log_url, decode_responses=True) as client:
        assert client.get("kept") == "1"
    assert "Redis ended with status -9" in ready.output.read_text()
    assert "Postgres ended with status -9" in ready.output.read_text()


def test_a_server_that_has_served_is_revived_for_ever(ready: Servers) -> None:
    ready.start()
    ready.says("up to date")
    control = ready.settings.data_dir / "postgres/global/pg_control"
    control.rename(away := ready.settings.data_dir / "pg_control")
    os.kill(ready.postgres_pid(), signal.SIGKILL)
    ready.says('pg_control": No such file or directory; trying again until it works')
    attempts = ready.settings.data_dir / "postgres.log"
    eventually(lambda: attempts.read_text().count("could not find the database system") > 5)
    away.rename(control)
    assert eventually(ready.postgres_pid)
    assert ready.output.read_text().count("No such file") <= 2


def test_a_server_that_ends_right_after_each_start_is_started_ever_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until it has run for a while."""
    now, starts = 0.0, list[float]()
    monkeypatch.setattr(supervision, "time", SimpleNamespace(monotonic=lambda: now))
    process = SimpleNamespace(poll=lambda: 1)
    server: Any = SimpleNamespace(name="Redis", folder="here", running=False, process=process)
    server.start = lambda _stop: starts.append(now)
    supervised = supervision.Supervised(server)
    while now < 20:
        supervised.revive(Stop())
        now += supervision.POLL
    assert 10 < len(starts) < 30
    now += 2 * supervision.STEADY  # for which it ran
    supervised.revive(Stop())
    now += 2 * FIRST_DELAY
    supervised.revive(Stop())
    assert starts[-1] - starts[-2] < 0.2


def migrating(servers: Servers) -> tuple[subprocess.Popen[bytes], psutil.Process]:
    """The process, and its migration, which waits for a database that is not there."""
    process = servers.start(DATABASE_URL="postgresql://nobody@/none?host=/nowhere")
    servers.says("INFO    waiting: Postgres can't be reached")
    children = psutil.Process(process.pid).children()
    [migration] = [each for each in children if "migrations" in each.cmdline()]
    return process, migration


def test_a_migration_that_hangs_does_not_keep_it_from_its_end(servers: Servers) -> None:
    process, migration = migrating(servers)
    migration.suspend()
    process.terminate()
    assert process.wait(PATIENCE) == 0


def test_a_migration_that_is_killed_ends_it_with_one_line(servers: Servers) -> None:
    process, migration = migrating(servers)
    migration.kill()
    assert process.wait(PATIENCE) == 1
    assert servers.output.read_text().endswith("\nthe migration was killed by signal 9\n")


def test_a_second_fleet_in_the_same_folder_is_refused_with_one_line(ready: Servers) -> None:
    first = ready.start()
    ready.says("up to date")
    assert ready.start().wait(PATIENCE) == 1
    said = ready.output.read_text()
    assert said.startswith(f"another fleet (process {first.pid}) uses ")
    assert said.count("\n") == 1
    assert ready.redis_pid()


def test_an_unusable_folder_is_refused_with_one_line(servers: Servers) -> None:
    servers.settings.data_dir.write_text("not a folder")
    assert servers.start().wait(PATIENCE) == 1
    assert servers.output.read_text().count("\n") == 1


@pytest.mark.parametrize("setting", ["POSTGRES_PROGRAMS", "REDIS_PROGRAMS"])
def test_a_folder_without_the_servers_programs_is_refused_before_anything_starts(
    servers: Servers, setting: str
) -> None:
    assert servers.start(None, **{setting: "/nowhere"}).wait(PATIENCE) == 1
    [line] = servers.output.read_text().splitlines()
    assert line.startswith(f"{setting}=/nowhere is refused: there is no ")
    assert not servers.settings.data_dir.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_after_its_clients_and_tidies_up(ready: Servers, number: signal.Signals) -> None:
    process = ready.start()
    ready.says("up to date")
    with closing(ready.connect()) as client:
        client.pgconn.send_query(b"SELECT pg_sleep(0.5)")
        process.send_signal(number)
        # A fast shutdown would have cancelled it.
        result = client.pgconn.get_result()
        assert result is not None
        assert result.status == psycopg.pq.ExecStatus.TUPLES_OK
    assert process.wait(PATIENCE) == 0
    assert not ready.settings.socket_dir.exists()
    assert (
        "database system is shut down"
        in ready.settings.data_dir.joinpath("postgres.log").read_text()
    )


def test_it_ends_in_good_order_when_nobody_reads_its_output(ready: Servers) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = ready.start(stdout=writer)
    os.close(writer)
    assert process.wait(PATIENCE) == 0
    log = ready.settings.data_dir / "redis.log"  # the first to start, and to be spoken of
    assert "Valkey is now ready to exit, bye bye" in log.read_text()
    assert ready.output.read_text() == ""


@on_linux
def test_its_own_crash_ends_both_servers_and_loses_nothing(ready: Servers) -> None:
    process = ready.start()
    ready.says("up to date")
    with ready.connect() as connection:
        connection.execute("CREATE TABLE kept ()")
    pids = ready.redis_pid(), ready.postgres_pid()
    process.kill()
    process.wait(PATIENCE)
    eventually(lambda: not any(Path(f"/proc/{pid}/cwd").exists() for pid in pids))
    ready.start()
    ready.says("up to date")
    with ready.connect() as connection:
        connection.execute("TABLE kept")


def test_a_database_that_is_named_is_not_started_but_waited_for_and_migrated(
    servers: Servers,
) -> None:
    servers.start(DATABASE_URL="postgresql://nobody@/none?host=/nowhere")
    servers.says("INFO    waiting: Postgres can't be reached")  # it may be just coming up
    assert "WARNING" not in servers.output.read_text()
    servers.says("WARNING Postgres can't be reached")
    assert eventually(servers.redis_pid)
    assert not (servers.settings.data_dir / "postgres").exists()
