"""A whole private fleet: two pairs of servers, an API, streamers, consumers, and a receiver."""

from pathlib import Path

import psycopg
from redis import Redis as Client

import migrations
from demo.embedded.stream_servers import StreamServer
from demo.embedded.welcome import answers
from lab import newer
from lab.chaos.hosts import PostgresHost, RedisHost
from lab.chaos.machines import Clock, Disk, library
from lab.chaos.postgres_pair import PostgresPair, ask, connect
from lab.chaos.receiver import Receiver
from lab.chaos.redis_pair import RedisPair, client
from lab.chaos.service import Service, Services
from lab.ports import free_ports
from lab.until import until
from rocket_rides.settings import DATABASE_NAME

SERVERS = ("postgres", "redis")
CONSUMERS = ("consumer0", "consumer1", "consumer2")
STREAMERS = ("streamer0", "streamer1")
ROLLUPS = ("rollup0", "rollup1")  # one of them leads
RECEIPTS = ("receipts0", "receipts1")
RATINGS = ("ratings0",)
READERS = (*CONSUMERS, *ROLLUPS, *RECEIPTS, *RATINGS)
COMMANDS = {
    "api": ["api"],
    **{name: ["streamer"] for name in STREAMERS},
    **{name: ["consumers.totals", name] for name in CONSUMERS},
    **{name: ["consumers.rollup"] for name in ROLLUPS},
    **{name: ["consumers.receipts", name] for name in RECEIPTS},
    **{name: ["consumers.ratings", name] for name in RATINGS},
}
STREAM = "rocket-rides-log"
LONGEST_LOG = 1000  # entries
TOTALS = "SELECT count(*) FROM checkpoints WHERE kind = 'total'"
READY_LIMIT = 90.0

# The demo's fault rates, and tighter limits: batches are small; the log outgrows its cap while a
# consumer is stopped; within seconds, a stopped leader is replaced, and a stopped worker's leases
# run out. A receiver that is away for seconds, or workers that are killed, make no dead letters.
RATE = 60.0  # rides a second, for which these limits are chosen
SETTINGS = {
    "CRASH_RATE": "0.1",
    "DOUBLE_SEND_RATE": "0.1",
    "LEADER_TIMEOUT": "2",
    "BATCH_SIZE": "20",
    "STREAM_MAX_LENGTH": str(LONGEST_LOG),
    "STREAM_NAME": STREAM,
    "RECEIPT_CONCURRENCY": "16",
    "RECEIPT_TIMEOUT": "1",
    "RECEIPT_LEASE": "2",
    "RECEIPT_ATTEMPTS": "100",
    "CLAIM_AFTER": "2",
    "SWEEP_AFTER": "2",
}


class Fleet:
    """The fleet, in one folder, with a log file per process."""

    def __init__(self, folder: Path, stream_server: StreamServer, *, disks: bool) -> None:
        self.folder = folder
        self.postgreses = PostgresPair(self.folder)
        self.redises = RedisPair(self.folder, stream_server)
        pairs: tuple[PostgresPair | RedisPair, ...] = (self.postgreses, self.redises)
        self.pairs = dict(zip(SERVERS, pairs, strict=True))
        self.servers = [*self.postgreses.servers, *self.redises.servers]
        self.warehouse = Disk(self.folder / "runs")
        self.receiver = Receiver()
        self.api_port = 0
        self.services = Services()
        self.next_release = self.folder / "next"  # its code
        self._has_clocks = library(self.folder)
        self._has_disks = disks

    @property
    def postgres(self) -> PostgresHost:
        """The primary. Onlookers and the nemesis connect to it without the proxy."""
        return self.postgreses.primary

    @property
    def redis(self) -> RedisHost:
        return self.redises.primary

    @property
    def warehouse_dir(self) -> Path:
        return self.warehouse.folder / "warehouse"

    def start(self) -> None:
        """Start everything, and return when the API is ready and all consumers are known."""
        for server in self.servers:
            server.clock = self._new_clock(server.data.name)
            disk = Disk(server.data)
            server.disk = disk if self._has_disks and disk.mount() else None
        self.warehouse.folder.mkdir()
        if self._has_disks:
            self.warehouse.mount()
        self.postgreses.start()
        self.redises.start()
        self.postgres.wait_until_it_serves()
        migrations.upgrade(self.postgres.url)
        newer.next_release(self.next_release)
        self.receiver.start()
        self.api_port = free_ports()
        for name, command in COMMANDS.items():
            log, clock = self.folder / f"{name}.log", self._new_clock(name)
            self.services[name] = Service(command, self.environment, log, clock)
            self.services[name].start()
        until(self._is_ready, f"the fleet was not ready within {READY_LIMIT:.0f} s", READY_LIMIT)

    def _new_clock(self, name: str) -> Clock | None:
        return Clock(self.folder, name) if self._has_clocks else None

    @property
    def environment(self) -> dict[str, str]:
        port = self.postgreses.proxy.port
        return SETTINGS | {
            "API_PORT": str(self.api_port),
            "DATABASE_URL": f"postgresql://postgres@127.0.0.1:{port}/{DATABASE_NAME}",
            "REDIS_URL": f"redis://127.0.0.1:{self.redises.proxy.port}",
            "DATA_DIR": str(self.folder / "fleet"),
            "RECEIPT_URL": self.receiver.url,
            "RECEIPT_SECRET": self.receiver.secret,
            "WAREHOUSE_DIR": str(self.warehouse_dir),
            "SPARK_LOCAL_DIRS": str(self.warehouse.folder / "spark"),
        }

    def _is_ready(self) -> bool:
        is_ready = answers(f"127.0.0.1:{self.api_port}", "/readyz")
        return is_ready and ask(self.postgres, TOTALS) == len(CONSUMERS)

    def connect(self) -> psycopg.Connection:
        return connect(self.postgres)

    def redis_client(self) -> Client:
        return client(self.redis)

    def stop(self) -> None:
        self.services.kill()
        self.receiver.stop()
        self.postgreses.end()
        self.redises.end()
        for server in self.servers:
            if server.disk:
                server.disk.unmount()
        self.warehouse.unmount()
