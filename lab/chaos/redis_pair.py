"""A Redis and its replica, which exchange their roles when the primary fails.

There is no Sentinel: whoever fails over does here what one would do. Clients connect through a
proxy, which leads to the primary. The replica follows through another one, the link: cut it, and
the replica falls behind.
"""

import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import redis

from demo.embedded.servers import Redis
from demo.embedded.stream_servers import StreamServer
from lab.chaos.hosts import RedisHost
from lab.chaos.kept_server import KeptServer
from lab.chaos.proxy import HOST, Proxy

SETTINGS = {"repl-diskless-sync-delay": "0"}  # no other replica is going to come
PATIENCE = 60.0  # seconds
POLL = 0.05
ACKNOWLEDGED = 2000  # milliseconds


class RedisPair:
    """Two servers in `folder`. Methods raise redis.RedisError where they say nothing else."""

    def __init__(self, folder: Path, kind: StreamServer) -> None:
        self.primary, self.replica = (
            KeptServer(RedisHost(folder / data, folder / sockets, SETTINGS, kind=kind))
            for data, sockets in (("log", "run"), ("replica", "run2"))
        )
        self.proxy = Proxy(self.primary.server.socket)
        self.link = Proxy(self.primary.server.socket)
        self.failing_over = threading.Lock()  # held during a fail-over

    @property
    def servers(self) -> tuple[KeptServer[RedisHost], KeptServer[RedisHost]]:
        return self.primary, self.replica

    def start(self) -> None:
        """Start both, and return when the replica follows. Raises TimeoutError or ServerFailed."""
        for server in self.servers:
            server.start()
        for server in self.servers:
            server.wait_until_it_serves()
        for proxy in (self.proxy, self.link):
            proxy.start()
        self.join()

    def cut_off(self) -> None:
        """From now on the replica gets nothing, and falls behind."""
        self.link.turn(None)
        self.link.cut()

    def fence(self) -> None:
        """From now on no client reaches the primary."""
        self.proxy.turn(None)
        self.proxy.cut()

    def promote(self) -> None:
        """The replica becomes the primary; new clients are led there, and others are left alone."""
        with client(self.replica) as replica:
            replica.replicaof("NO", "ONE")
        self.primary, self.replica = self.replica, self.primary
        for proxy in (self.proxy, self.link):
            proxy.turn(self.primary.server.socket)

    def join(self, without: Collection[bytes] = (), stream: str = "") -> None:
        """Have the other server follow the primary, and wait until it has all that the primary has.

        Then it must be rid of its own entries: those in `stream` that the primary is `without`.
        Raises TimeoutError.
        """
        deadline = time.monotonic() + PATIENCE
        while not self._follows(without, stream):
            if time.monotonic() > deadline:
                raise TimeoutError("the replica does not follow")
            time.sleep(POLL)

    def _follows(self, without: Collection[bytes], stream: str) -> bool:
        try:
            with client(self.primary) as primary, client(self.replica) as replica:
                said: dict[str, Any] = replica.info("replication")
                if said["role"] == "master":  # until it is told, or when it was restarted
                    replica.replicaof(HOST, self.link.port)
                    replica.client_kill_filter(_type="normal", skipme=True)  # its former clients
                    return False
                # After a first synchronisation, Redis 7.0 takes up to a second to acknowledge.
                primary.publish("joining", "")
                if primary.wait(1, ACKNOWLEDGED) < 1:
                    return False
                written = primary.info("replication")["master_repl_offset"]
                said = replica.info()
                if said["master_link_status"] != "up" or said["slave_repl_offset"] < written:
                    return False
                if said["aof_rewrite_in_progress"] or said["aof_rewrite_scheduled"]:
                    return False  # what it was sent is not on its disk yet
                return not any(replica.xrange(stream, id_, id_) for id_ in without)
        except redis.RedisError:
            return False

    def missing(self, stream: str) -> list[bytes]:
        """The ids of the entries that the primary has and the replica lacks."""
        with client(self.primary) as primary, client(self.replica) as replica:
            newest = replica.xrevrange(stream, count=1)
            after = f"({newest[0][0].decode()}" if newest else "-"
            return [id_ for id_, _ in primary.xrange(stream, after)]

    def end(self) -> None:
        for server in (self.replica, self.primary):  # which would wait for it
            server.end()
        for proxy in (self.proxy, self.link):
            proxy.stop()


def client(server: KeptServer[Redis]) -> redis.Redis:
    """To the server without a proxy, for onlookers and the nemesis."""
    return redis.Redis.from_url(server.server.url, retry=None, socket_timeout=5)
