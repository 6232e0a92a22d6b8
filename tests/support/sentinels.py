"""Servers of Redis, and real Sentinels that decide which of them is the primary."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from demo.embedded.servers import Redis
from demo.embedded.stream_servers import VALKEY, StreamServer
from lab.chaos.redis_pair import client
from lab.ports import free_ports
from tests.support.folders import short_folder
from tests.support.world import eventually

NAME = "rides"
HOST = "127.0.0.1"
QUICK = {"bind": HOST, "repl-diskless-sync-delay": "0"}


class SentinelServer(Redis):
    """The server's program as a Sentinel; `told` begins its configuration, which it rewrites."""

    name = "Sentinel"

    def __init__(
        self, place: Path, port: int, told: str, kind: StreamServer, programs: Path | None
    ) -> None:
        place.mkdir(0o755)
        super().__init__(place / "data", place / "run", kind=kind)
        if programs:
            self.programs = programs
        self.port = port
        self._told = f"bind {HOST}\nunixsocket {self.socket}\n{told}\n"

    @property
    def _configuration(self) -> Path:
        return self.folder / "sentinel.conf"

    def _initialise(self) -> None:
        super()._initialise()
        if not self._configuration.exists():
            self._configuration.write_text(self._told)
            self._configuration.chmod(0o600)
            shutil.chown(self._configuration, self.account.uid, self.account.gid)

    def _command(self) -> list[str]:
        return [f"{self.programs}/{self.program}", str(self._configuration), "--sentinel"]


class Watched:
    """Servers and their Sentinels. With `tls`, which are settings, none listens without it."""

    def __init__(
        self,
        folder: Path,
        *,
        replicas: int = 1,
        sentinels: int = 3,
        down_after: int = 500,  # milliseconds
        tls: Mapping[str, str] | None = None,
        kind: StreamServer = VALKEY,
        programs: Path | None = None,
    ) -> None:
        self._scheme = "rediss" if tls else "redis"
        listens = "tls-port" if tls else "port"
        first = free_ports(1 + replicas + sentinels)
        self.ports = [*range(first, first + 1 + replicas)]
        self.servers: list[Redis] = []
        for port in self.ports:
            place = folder / str(port)
            place.mkdir(0o755)
            settings = {**QUICK, **(tls or {}), listens: str(port)}
            server = Redis(place / "data", place / "run", settings, kind=kind)
            if programs:
                server.programs = programs
            self.servers.append(server)
        self.sentinels = []
        for port in range(self.ports[-1] + 1, self.ports[-1] + 1 + sentinels):
            own = {"port": "0", **(tls or {}), listens: str(port)}
            told = [f"{setting} {value}" for setting, value in own.items()]
            told += [
                f"sentinel monitor {NAME} {HOST} {self.ports[0]} {sentinels // 2 + 1}",
                f"sentinel down-after-milliseconds {NAME} {down_after}",
                f"sentinel failover-timeout {NAME} 6000",
            ]
            place = folder / str(port)
            self.sentinels.append(SentinelServer(place, port, "\n".join(told), kind, programs))

    def url(self, login: str = "", name: str = NAME, options: str = "") -> str:
        """Of the primary."""
        places = ",".join(f"{HOST}:{each.port}" for each in self.sentinels)
        return f"{self._scheme}+sentinel://{login}{places}/{name}/0{options}"

    def start(self) -> None:
        """Start all, and return when each Sentinel knows all others, and the replicas."""
        for server in self.servers:
            server.start()
        for server in self.servers[1:]:
            with client(server) as replica:
                replica.replicaof(HOST, str(self.ports[0]))
        eventually(lambda: all(map(self.follows, self.servers[1:])), "the replicas")
        for sentinel in self.sentinels:
            sentinel.start()
        eventually(lambda: all(self._is_ready(each) for each in self.sentinels), "the Sentinels")

    def end(self) -> None:
        for server in (*self.sentinels, *self.servers):
            if server.running:
                server.kill()

    @property
    def primary(self) -> Redis:
        """By the first Sentinel."""
        return self._named_by(self.sentinels[0])

    @property
    def replicas(self) -> list[Redis]:
        return [server for server in self.servers if server != self.primary]

    def follows(self, server: Redis) -> bool:
        """Whether it is a replica that has what its primary has."""
        try:
            with client(server) as control:
                said: dict[str, Any] = control.info("replication")
        except redis.ConnectionError:  # a Sentinel has just made it one, and so ended its clients
            return False
        return bool(said["role"] == "slave" and said["master_link_status"] == "up")

    def fail_over(self) -> None:
        """By an operator's command."""
        with client(self.sentinels[0]) as sentinel:
            sentinel.execute_command("SENTINEL", "FAILOVER", NAME)

    def until_replaced(self, server: Redis) -> None:
        """Wait until every Sentinel names another one."""
        eventually(lambda: all(server != self._named_by(each) for each in self.sentinels))

    def _named_by(self, sentinel: SentinelServer) -> Redis:
        with client(sentinel) as control:
            _, port = control.sentinel_get_master_addr_by_name(NAME)
        return self.servers[self.ports.index(int(port))]

    def _is_ready(self, sentinel: SentinelServer) -> bool:
        with client(sentinel) as control:
            said: dict[str, Any] = control.sentinel_master(NAME)
        others = said["num-other-sentinels"], said["num-slaves"]
        return others == (len(self.sentinels) - 1, len(self.servers) - 1)


@contextmanager
def watched(**options: Any) -> Iterator[Watched]:
    with short_folder() as folder:
        servers = Watched(folder, **options)
        try:
            servers.start()
            yield servers
        finally:
            servers.end()
