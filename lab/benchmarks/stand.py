"""The stand for a measurement: its own servers and services, in a temporary folder.

They run as in the fleet, as durable, and with default settings, whatever the environment has.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
import redis

import migrations
from demo.embedded.servers import Postgres, Redis
from demo.embedded.welcome import answers
from lab.ports import free_ports
from lab.processes import clean_environment, start
from lab.progress import say
from lab.until import until
from rocket_rides.settings import PROJECT, Settings
from unified_log import database
from unified_log.log import Log

HOST = "127.0.0.1"
STREAM = Settings.model_fields["stream_name"].default
PATIENCE = 30.0  # seconds


@dataclass(frozen=True)
class Stand:
    folder: Path
    postgres: Postgres
    redis: Redis

    def connect(self) -> psycopg.Connection:
        return database.connect(self.postgres.url, "benchmark")

    def log(self) -> Log:
        return Log(self.redis.url, STREAM)

    def versions(self) -> list[str]:
        with self.connect() as connection:
            postgres = connection.info.parameter_status("server_version")
        with redis.Redis.from_url(self.redis.url) as client:
            about = client.info("server")
        kind = about.get("server_name", "redis")
        return [f"PostgreSQL {postgres}", f"{kind.capitalize()} {about[f'{kind}_version']}"]

    @contextlib.contextmanager
    def service(self, *arguments: str, **settings: str) -> Iterator[psutil.Process]:
        """Run `python -m ARGUMENTS` while the block lasts."""
        servers = {"DATABASE_URL": self.postgres.url, "REDIS_URL": self.redis.url}
        environment = clean_environment() | servers | settings
        log = self.folder / f"{arguments[0]}.log"
        command = [sys.executable, "-m", *arguments]
        with running(command, PROJECT, log, environment) as process:
            yield process

    @contextlib.contextmanager
    def services(self, *commands: Sequence[str], **settings: str) -> Iterator[list[psutil.Process]]:
        with contextlib.ExitStack() as exits:
            yield [exits.enter_context(self.service(*each, **settings)) for each in commands]

    @contextlib.contextmanager
    def api(self) -> Iterator[tuple[int, psutil.Process]]:
        """Run the API and wait until it is ready; yields its port and its process."""
        port = free_ports()
        with self.service("api", API_PORT=str(port)) as process:
            until(lambda: answers(f"{HOST}:{port}", "/readyz"), "the API does not get ready")
            yield port, process


@contextlib.contextmanager
def stand(cell: int = 0, parent: Path | None = None) -> Iterator[Stand]:
    """Servers with an empty database of that cell, while the block lasts; files are in `parent`."""
    with contextlib.ExitStack() as exits:
        temporary = tempfile.TemporaryDirectory(prefix="rides-", dir=parent)
        folder = Path(exits.enter_context(temporary))
        folder.chmod(0o755)  # the servers' user, not root, must reach its folder inside
        postgres = Postgres(data=folder / "data", sockets=folder / "sockets")
        stream = Redis(data=folder / "data", sockets=folder / "sockets")
        for server in (postgres, stream):
            exits.callback(server.stop)
            server.start()
        migrations.upgrade(postgres.url, cell)
        yield Stand(folder, postgres, stream)


@contextlib.contextmanager
def running(
    command: Sequence[str], folder: Path, log: Path, environment: Mapping[str, str]
) -> Iterator[psutil.Process]:
    """Run a command while the block lasts; print its output if that fails; then end its session."""
    with log.open("ab") as output:
        process = start(command, environment, output, folder)
    try:
        yield psutil.Process(process.pid)
    except BaseException:
        say(log.read_text())
        raise
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def value(connection: psycopg.Connection, query: str, *values: object) -> int:
    """The single number that a query returns; NULL is 0."""
    row = connection.execute(query, values).fetchone()
    return int(row[0] or 0) if row else 0
