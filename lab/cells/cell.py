"""A cell on its host: Postgres, Redis, an API, a streamer, and the consumers that add up."""

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import psycopg

import migrations
from demo.embedded.welcome import answers
from lab.chaos.backup import Backup
from lab.chaos.books.tables import broken
from lab.chaos.evidence import FinalState, Restore, read_final_state
from lab.chaos.faults.postgres_server import PROMOTED
from lab.chaos.hosts import PostgresHost, RedisHost, keep
from lab.chaos.machines import Disk
from lab.chaos.postgres_pair import ask, connect
from lab.chaos.service import Service, Services
from lab.network import Host
from lab.until import until
from rocket_rides.settings import DATABASE_NAME, EMBEDDED_PORT
from unified_log.errors import Unavailable

PORT = 8000  # on a host of its own
COMMANDS = {
    "api": ["api"],
    "streamer": ["streamer"],
    "total": ["consumers.totals", "total"],
    "rollup": ["consumers.rollup"],
}
# Its own processes come by the socket in its folder; whoever moves slots, over the network.
MAY_LOG_IN = "local all,replication all trust\nhost all all 10.0.0.0/24 trust\n"
# What is not yet, or wrongly, added up. Each statement shares nothing with those of the services.
TOTALS = """
    SELECT format('%s has %s rides of %s m at position %s, not %s of %s m up to %s',
                  name, rides, total_distance, position, number, exact, newest)
    FROM consumer_states JOIN checkpoints USING (kind, name), (
        SELECT count(*) AS number, coalesce(sum(distance), 0) AS exact, max(id) AS newest FROM rides
    ) taken WHERE (rides, total_distance, position) IS DISTINCT FROM (number, exact, newest)
    UNION ALL SELECT 'there is no total' WHERE NOT EXISTS (SELECT FROM consumer_states)
"""
MINUTES = """
    SELECT format('the minutes have %s rides of %s m, not %s of %s m',
                  rolled_up, metres, number, exact)
    FROM (SELECT sum(rides) AS rolled_up, sum(distance) AS metres FROM ride_minutes) minutes,
         (SELECT count(*) AS number, sum(distance) AS exact FROM rides) taken
    WHERE (rolled_up, metres) IS DISTINCT FROM (number, exact)
"""


class Cell:
    """One cell. Methods raise ServerFailed or TimeoutError where it does not come up again."""

    def __init__(self, number: int, folder: Path, host: Host) -> None:
        self.number, self.host = number, host
        self.folder = folder / f"cell{number}"
        self.folder.mkdir()
        self.address = f"{host.address}:{PORT}"
        self.database_url = f"postgresql://postgres@{host.address}:{EMBEDDED_PORT}/{DATABASE_NAME}"
        login = self.folder / "pg_hba.conf"
        login.write_text(MAY_LOG_IN)
        settings = {"listen_addresses": host.address, "hba_file": str(login)}
        self.postgres = PostgresHost(self.folder / "data", self.folder / "run", settings)
        self.redis = RedisHost(self.folder / "log", self.folder / "run")
        self.servers = (self.postgres, self.redis)
        self.services = Services()
        self.restores: list[Restore] = []
        self._disks = [Disk(server.data) for server in self.servers]
        self._lives = 0

    def start(self) -> None:
        for disk in self._disks:
            disk.mount()
        with self.host.entered():
            keep(*self.servers)
        migrations.upgrade(self.postgres.url, self.number)
        self.start_services()

    def start_services(self, *names: str) -> None:
        """Start these, or all, and return when the API is ready."""
        self._lives += 1
        environment = {
            "CELL": str(self.number),
            "API_HOST": self.host.address,
            "API_PORT": str(PORT),
            "API_WORKERS": "1",
            "DATABASE_URL": self.postgres.url,
            "REDIS_URL": self.redis.url,
            "DATA_DIR": str(self.folder / "fleet"),
        }
        with self.host.entered():
            for name in names or COMMANDS:
                log = self.folder / f"{name}-{self._lives}.log"
                self.services[name] = Service(COMMANDS[name], environment, log)
                self.services[name].start()
        until(lambda: answers(self.address, "/readyz"), f"cell {self.number} is not ready")

    def lose(self, down_for: float) -> None:
        """SIGKILL all its processes and servers; start them again after so many seconds."""
        self.services.kill()
        with ThreadPoolExecutor() as at_once:
            for crash in [at_once.submit(server.crash, down_for) for server in self.servers]:
                crash.result()
        self.start_services()

    def restore(self, backup: Backup, recovery_signal: bool) -> None:
        """A crash, and a start from the backup, without the API."""
        self.services["api"].end(by=signal.SIGKILL)
        self.postgres.crash(0, partial(backup.restore, recovery_signal=recovery_signal))
        # A recovering server answers before it accepts writes.
        until(lambda: ask(self.postgres, PROMOTED), f"cell {self.number} accepts no writes")
        backup.remove()

    def left(self) -> list[str]:
        """What is not yet added up, or wrongly: a sentence each."""
        try:
            with closing(connect(self.postgres)) as connection:
                found = broken(connection, (TOTALS, MINUTES))
        except (psycopg.Error, Unavailable):
            found = ["its database is away"]
        return [f"cell {self.number}: {sentence}" for sentence in found]

    def final_state(self) -> FinalState:
        with closing(connect(self.postgres)) as connection:
            return read_final_state(connection)

    def stop(self) -> None:
        self.services.kill()
        for server in self.servers:
            server.end()
        for disk in self._disks:
            disk.unmount()
