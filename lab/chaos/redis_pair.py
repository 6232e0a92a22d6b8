"""A Redis and its replica."""

from pathlib import Path
from typing import Any

import redis

from demo.embedded.servers import Redis
from demo.embedded.stream_servers import StreamServer
from lab.chaos.hosts import Pair, RedisHost, keep
from lab.chaos.proxy import HOST
from lab.until import until

SETTINGS = {"repl-diskless-sync-delay": "0"}  # no other replica will come
ACKNOWLEDGED = 2000  # milliseconds


class RedisPair(Pair[RedisHost]):
    """Two servers in `folder`. Methods raise redis.RedisError unless they name another error."""

    def __init__(self, folder: Path, kind: StreamServer) -> None:
        super().__init__(
            RedisHost(folder / "log", folder / "run", SETTINGS, kind=kind),
            RedisHost(folder / "replica", folder / "run2", SETTINGS, kind=kind),
        )

    def start(self) -> None:
        """Start both, and return when the replica follows. Raises TimeoutError or ServerFailed."""
        keep(*self.servers)
        for proxy in self.proxies:
            proxy.start()
        self.join()

    def promote(self) -> None:
        with client(self.replica) as replica:
            replica.replicaof("NO", "ONE")
        self.exchange()

    def join(self) -> None:
        """Have the other server follow the primary; return when it has what the primary has.

        By then it has dropped any entries of its own: where it has some, it loads the primary's
        data anew, and its link counts as down until then. Raises TimeoutError.
        """
        until(self._follows, "the replica does not follow", away=(redis.RedisError,))

    def _follows(self) -> bool:
        with client(self.primary) as primary, client(self.replica) as replica:
            said: dict[str, Any] = replica.info("replication")
            if said["role"] == "master":  # before it is told, and after a restart
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
            # While its file is rewritten, it has entries that are not on its disk yet.
            return not (said["aof_rewrite_in_progress"] or said["aof_rewrite_scheduled"])


def client(server: Redis) -> redis.Redis:
    """A client without the proxy, for onlookers and the nemesis."""
    return redis.Redis.from_url(server.url, retry=None, socket_timeout=5)
