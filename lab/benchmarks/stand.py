"""The stand for a measurement: its own servers and services, in a temporary folder.

Postgres and Redis are as durable as the fleet's: whatever they acknowledge is on disk. The services
run as in the fleet, with default settings: the environment's settings for a fleet are left out.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

import migrations
from demo.embedded.servers import Postgres, Redis
from lab.benchmarks import load
from rocket_rides import database
from rocket_rides.log import Log
from rocket_rides.settings import PROJECT, Settings

PATIENCE = 30.0  # seconds


@dataclass(frozen=True)
class Stand:
    """Running servers, and how to run services on them.

    A measurement may `say` what it does next.
    """

    folder: Path
    postgres: Postgres
    redis: Redis
    say: Callable[[str], None] = lambda _: None

    def versions(self) -> list[str]:
        """What the servers are."""
        with (
            database.connect(self.postgres.url, "benchmark") as connection,
            Log(self.redis.url, "benchmark") as log,
        ):
            [postgres] = database.one_row(connection.execute("SHOW server_version"))
            about = log.command("INFO", "server").decode()
        named = re.search(r"^(valkey)_version:(\S+)", about, re.M) or re.search(
            r"^(redis)_version:(\S+)", about, re.M
        )
        assert named
        return [f"PostgreSQL {postgres}", f"{named[1].capitalize()} {named[2]}"]

    @contextlib.contextmanager
    def service(self, *arguments: str, **settings: str) -> Iterator[psutil.Process]:
        """Run `python -m ARGUMENTS` while the block lasts."""
        environment = {
            name: value
            for name, value in os.environ.items()
            if name.lower() not in Settings.model_fields
        }
        log = self.folder / f"{'-'.join(arguments).replace(os.sep, '_')}.log"
        with log.open("ab") as output:
            service = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                cwd=PROJECT,
                env=environment
                | {"DATABASE_URL": self.postgres.url, "REDIS_URL": self.redis.url}
                | settings,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield psutil.Process(service.pid)
        except BaseException:
            print(log.read_text(), file=sys.stderr)
            raise
        finally:
            _end(service)

    @contextlib.contextmanager
    def api(self) -> Iterator[tuple[int, psutil.Process]]:
        """Run the API and wait until it is ready; yields its port and its process."""
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port: int = probe.getsockname()[1]
        with self.service("api", API_PORT=str(port)) as process:
            wait_until(lambda: load.is_ready(port), "the API is ready")
            yield port, process


@contextlib.contextmanager
def stand(say: Callable[[str], None] = lambda _: None) -> Iterator[Stand]:
    """Start servers with an empty, migrated database; stop them and remove their files."""
    with contextlib.ExitStack() as exits:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="rides-")))
        folder.chmod(0o755)  # the servers' user, which is not root, must reach its own folder in it
        postgres = Postgres(data=folder / "data", sockets=folder / "sockets")
        redis = Redis(data=folder / "data", sockets=folder / "sockets")
        for server in (postgres, redis):
            exits.callback(server.stop)
            server.start()
        migrations.upgrade(postgres.url)
        yield Stand(folder, postgres, redis, say)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Poll until `condition` holds. Raises TimeoutError."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {PATIENCE:.0f} s: {what}")
        time.sleep(0.02)


def seconds_used(root: psutil.Process) -> float:
    """Processor time of a process and its children, with those that have ended."""
    used = 0.0
    for child in root.children(recursive=True):
        # One that has ended meanwhile is among the ended children of its parent.
        with contextlib.suppress(psutil.NoSuchProcess):
            own = child.cpu_times()
            used += own.user + own.system
    own = root.cpu_times()
    return float(used + own.user + own.system + own.children_user + own.children_system)


def _end(service: subprocess.Popen[bytes]) -> None:
    """End the service and whatever it leaves behind in its session."""
    service.terminate()
    try:
        service.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        service.kill()
        service.wait()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(service.pid, signal.SIGKILL)
