"""`python -m embedded`, the process `servers`: it starts, supervises, and stops last."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import psycopg
import pytest
import redis

from rocket_rides.settings import PROJECT, Settings
from tests.world import PATIENCE, eventually

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs prctl(PR_SET_PDEATHSIG)")


class Servers:
    """`python -m embedded` on a data folder of its own; its output goes to a file."""

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
                [sys.executable, "-m", "embedded"],
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
    place = Path(tempfile.mkdtemp(prefix="rr-", dir="/tmp"))
    place.chmod(0o755)
    servers = Servers(place / "data")
    yield servers
    for process in servers.started:
        process.terminate()
        process.wait(PATIENCE)
    shutil.rmtree(place)


def is_another(pid: Callable[[], int], killed: int) -> bool:
    return pid() not in (0, killed)


def test_a_killed_server_is_started_again_with_its_data(servers: Servers) -> None:
    servers.start()
    servers.says("up to date")
    with redis.Redis.from_url(servers.settings.log_url) as client:
        client.set("kept", 1)
    for pid in (servers.redis_pid, servers.postgres_pid):
        os.kill(killed := pid(), signal.SIGKILL)
        eventually(partial(is_another, pid, killed))
    with redis.Redis.from_url(servers.settings.log_url, decode_responses=True) as client:
        assert client.get("kept") == "1"
    assert "Redis ended with status -9" in servers.output.read_text()
    assert "Postgres ended with status -9" in servers.output.read_text()


def test_a_second_fleet_in_the_same_folder_is_refused_with_one_line(servers: Servers) -> None:
    first = servers.start()
    servers.says("up to date")
    assert servers.start().wait(PATIENCE) == 1
    said = servers.output.read_text()
    assert said.startswith(f"another fleet (process {first.pid}) uses ")
    assert said.count("\n") == 1
    assert servers.redis_pid()


def test_an_unusable_folder_is_refused_with_one_line(servers: Servers) -> None:
    servers.settings.data_dir.write_text("not a folder")
    assert servers.start().wait(PATIENCE) == 1
    assert servers.output.read_text().count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_after_its_clients_and_tidies_up(servers: Servers, number: signal.Signals) -> None:
    process = servers.start()
    servers.says("up to date")
    with closing(servers.connect()) as client:
        client.pgconn.send_query(b"SELECT pg_sleep(0.5)")
        process.send_signal(number)
        # A fast shutdown would have cancelled it.
        result = client.pgconn.get_result()
        assert result is not None
        assert result.status == psycopg.pq.ExecStatus.TUPLES_OK
    assert process.wait(PATIENCE) == 0
    assert not servers.settings.socket_dir.exists()
    assert (
        "database system is shut down"
        in servers.settings.data_dir.joinpath("postgres.log").read_text()
    )


def test_it_ends_in_good_order_when_nobody_reads_its_output(servers: Servers) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = servers.start(stdout=writer)
    os.close(writer)
    assert process.wait(PATIENCE) == 0
    assert not servers.settings.socket_dir.exists()
    assert servers.output.read_text() == ""


@on_linux
def test_its_own_crash_ends_both_servers_and_loses_nothing(servers: Servers) -> None:
    process = servers.start()
    servers.says("up to date")
    with servers.connect() as connection:
        connection.execute("CREATE TABLE kept ()")
    pids = servers.redis_pid(), servers.postgres_pid()
    process.kill()
    process.wait(PATIENCE)
    eventually(lambda: not any(Path(f"/proc/{pid}/cwd").exists() for pid in pids))
    servers.start()
    servers.says("up to date")
    with servers.connect() as connection:
        connection.execute("TABLE kept")


def test_a_database_that_is_named_is_not_started_but_waited_for_and_migrated(
    servers: Servers,
) -> None:
    servers.start(DATABASE_URL="postgresql://nobody@/none?host=/nowhere")
    servers.says("not migrated yet")
    assert eventually(servers.redis_pid)
    assert not (servers.settings.data_dir / "postgres").exists()
