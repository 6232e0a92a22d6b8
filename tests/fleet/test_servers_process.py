"""`python -m demo.embedded`, the process `servers`: it starts, supervises, and stops last."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from rocket_rides.settings import PROJECT, Settings
from tests.support.folders import short_folder
from tests.support.libpq import variables
from tests.support.prepared import put_into
from tests.support.world import PATIENCE, World, eventually

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs prctl(PR_SET_PDEATHSIG)")
NAMES = {"Redis": "redis.sock", "Postgres": ".s.PGSQL.5432"}  # of sockets
NOWHERE = "postgresql://nobody@/none?host=/nowhere"


class Servers:
    """`python -m demo.embedded` on a data folder of its own; its output goes to a file."""

    def __init__(self, data: Path) -> None:
        self.settings = Settings.model_construct(data_dir=data)
        self.output = data.parent / "output.log"
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, **environment: str) -> subprocess.Popen[bytes]:
        self.output.write_text("")
        given = {**os.environ, "DATA_DIR": str(self.settings.data_dir), **environment}
        for name in {"DATABASE_URL", "REDIS_URL"} - set(environment):
            given.pop(name, None)
        with self.output.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "demo.embedded"],
                cwd=PROJECT,
                env=given,
                stdout=output,
                stderr=output,
            )
        self.started.append(process)
        return process

    def says(self, text: str, times: int = 1) -> None:
        found = f"{text!r} in the output {times} times"
        eventually(lambda: self.output.read_text().count(text) >= times, found)

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.settings.postgres_url, autocommit=True)

    def redis_pid(self) -> int:
        """The server's process, 0 when there is none."""
        try:
            with redis.Redis.from_url(self.settings.log_url, retry=None) as client:
                return int(client.info("server")["process_id"])
        except redis.RedisError:
            return 0

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


@pytest.fixture
def servers() -> Iterator[Servers]:
    with short_folder() as place:
        servers = Servers(place / "data")
        yield servers
        for process in servers.started:
            process.terminate()
            process.wait(PATIENCE)


@pytest.fixture
def ready(servers: Servers, prepared: Path) -> Servers:
    """Servers that have data already."""
    put_into(servers.settings.data_dir, prepared)
    return servers


def another_major_version(data: Path) -> None:
    (data / "postgres/PG_VERSION").write_text("13\n")


def garbage_in_the_log(data: Path) -> None:
    (data / "redis").mkdir()
    (data / "redis/appendonly.aof").write_bytes(b"garbage")


@pytest.mark.parametrize(
    ("damage", "name", "reason"),
    [
        (another_major_version, "Postgres", "initialized by PostgreSQL version 13"),
        (garbage_in_the_log, "Redis", "Bad file format reading the append only file"),
    ],
)
def test_damaged_data_ends_it_with_one_line_that_says_why(
    ready: Servers, damage: Callable[[Path], None], name: str, reason: str
) -> None:
    data = ready.settings.data_dir
    damage(data)
    assert ready.start().wait(PATIENCE) == 1
    said = ready.output.read_text().splitlines()
    [line] = [line for line in said if not line.startswith("INFO")]
    assert line.startswith(f"{name} can't use its data in {data}")
    assert reason in line
    assert not ready.settings.socket_dir.exists()


def test_where_the_data_is_not_the_reason_nobody_is_told_to_move_it_away(ready: Servers) -> None:
    data = ready.settings.data_dir
    with (data / "postgres/postgresql.auto.conf").open("a") as settings:
        settings.write("shared_buffers = 'none'\n")
    assert ready.start().wait(PATIENCE) == 1
    *_, line = ready.output.read_text().splitlines()
    assert line.startswith("Postgres can't be started: ")
    assert line.endswith(f"Its data in {data}/postgres is left as it is")


def test_a_data_folder_of_any_name_is_used_whatever_libpq_is_told_of_other_servers(
    prepared: Path,
) -> None:
    """Also by a relative path. With every variable of libpq's set, no other server is asked."""
    with short_folder() as place, socket.create_server(("127.0.0.1", 0)) as theirs:
        theirs.setblocking(False)
        given = dict.fromkeys(variables(), "hostile")
        given |= {"PGHOSTADDR": "127.0.0.1", "PGPORT": str(theirs.getsockname()[1])}
        servers = Servers(place / 'a#b?%41, "c"\'')
        data = servers.settings.data_dir
        put_into(data, prepared)
        process = servers.start(**given, DATA_DIR=os.path.relpath(data, PROJECT))
        try:
            servers.says("up to date")
            servers.says(f"Postgres runs on the data in {data}/postgres")
            assert servers.postgres_pid()
            assert servers.redis_pid()
        finally:
            process.terminate()
            assert process.wait(PATIENCE) == 0
        with pytest.raises(BlockingIOError):
            theirs.accept()


def test_a_schema_that_cannot_be_upgraded_ends_it_with_one_line(
    servers: Servers, world: World
) -> None:
    world.connection.execute("UPDATE schema_versions SET revision = 9999, serves_from = 9999")
    assert servers.start(DATABASE_URL=world.postgres_url).wait(PATIENCE) == 1
    said = servers.output.read_text().splitlines()
    [line] = [line for line in said if not line.startswith("INFO")]
    assert line.startswith("not migrated: the database's schema is 9999, newer than this code")


def is_another(pid: Callable[[], int], killed: int) -> bool:
    return pid() not in (0, killed)


def replaced(sockets: Path) -> None:
    for name in NAMES.values():
        (sockets / name).rename(sockets / "theirs")
        (sockets / name).touch()


def removed(sockets: Path) -> None:
    shutil.rmtree(sockets)


def test_servers_that_are_out_of_reach_or_killed_serve_again_with_their_data(
    ready: Servers,
) -> None:
    ready.start()
    ready.says("up to date")
    sockets = ready.settings.socket_dir
    for times, remove in enumerate((replaced, removed), start=1):
        remove(sockets)
        for name, socket_name in NAMES.items():
            ready.says(f"{name} runs on", times + 1)
            ready.says(f"{name} is out of reach, its socket {sockets / socket_name} was", times)
        assert ready.redis_pid()
        assert ready.postgres_pid()
    assert "ended with status" not in ready.output.read_text()
    log = ready.settings.data_dir / "postgres.log"  # it was shut down in order
    assert "was not properly shut down" not in log.read_text()
    with redis.Redis.from_url(ready.settings.log_url) as client:
        client.set("kept", 1)
    os.kill(killed := ready.redis_pid(), signal.SIGKILL)
    eventually(partial(is_another, ready.redis_pid, killed))
    with redis.Redis.from_url(ready.settings.log_url, decode_responses=True) as client:
        assert client.get("kept") == "1"
    assert "Redis ended with status -9" in ready.output.read_text()
    control = ready.settings.data_dir / "postgres/global/pg_control"
    control.rename(away := ready.settings.data_dir / "pg_control")
    os.kill(ready.postgres_pid(), signal.SIGKILL)
    ready.says('pg_control": No such file or directory; trying again until it works')
    attempts = ready.settings.data_dir / "postgres.log"
    eventually(lambda: attempts.read_text().count("could not find the database system") > 2)
    away.rename(control)
    assert eventually(ready.postgres_pid)
    assert ready.output.read_text().count("No such file") <= 2


def migrating(servers: Servers) -> tuple[subprocess.Popen[bytes], psutil.Process]:
    """The process, and its migration, which waits for a database that is not there."""
    process = servers.start(DATABASE_URL=NOWHERE)
    servers.says("INFO    waiting: Postgres can't be reached")
    children = psutil.Process(process.pid).children()
    [migration] = [each for each in children if "migrations" in each.cmdline()]
    return process, migration


def test_a_database_that_is_named_is_not_started_but_waited_for(servers: Servers) -> None:
    """And a migration that hangs does not keep it from its end."""
    process, migration = migrating(servers)
    assert eventually(servers.redis_pid)
    assert not (servers.settings.data_dir / "postgres").exists()
    migration.suspend()
    process.terminate()
    assert process.wait(PATIENCE) == 0


def test_a_migration_that_is_killed_ends_it_with_one_line(servers: Servers) -> None:
    process, migration = migrating(servers)
    migration.kill()
    assert process.wait(PATIENCE) == 1
    assert servers.output.read_text().endswith("\nthe migration was killed by signal 9\n")


def test_it_stops_after_its_clients_and_tidies_up(ready: Servers) -> None:
    """And no second fleet comes in between."""
    process = ready.start()
    ready.says("up to date")
    assert ready.start().wait(PATIENCE) == 1
    refusal = f"another fleet (process {process.pid}) uses {ready.settings.data_dir}: "
    assert ready.output.read_text().startswith(refusal)
    assert ready.output.read_text().count("\n") == 1
    with closing(ready.connect()) as client:
        client.pgconn.send_query(b"SELECT pg_sleep(0.5)")
        process.terminate()
        # A fast shutdown would have cancelled it.
        result = client.pgconn.get_result()
        assert result is not None
        assert result.status == psycopg.pq.ExecStatus.TUPLES_OK
    assert process.wait(PATIENCE) == 0
    assert not ready.settings.socket_dir.exists()
    log = ready.settings.data_dir / "postgres.log"
    assert "database system is shut down" in log.read_text()


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
