"""Two servers that exchange roles when the primary fails.

There is no Sentinel and no Patroni: a fault does what such a program would do. Clients connect
through a proxy, which leads to the primary. The replica follows through another proxy, the link;
while the link is cut, the replica falls behind.
"""

import threading
from typing import Generic, TypeVar

from lab.chaos.hosts import PostgresHost, RedisHost
from lab.chaos.proxy import Proxy

H = TypeVar("H", bound=PostgresHost | RedisHost)


class Pair(Generic[H]):
    """A `primary` and a `replica`, of one kind."""

    def __init__(self, primary: H, replica: H) -> None:
        self.servers = (primary, replica)
        self.primary, self.replica = primary, replica
        self.proxy, self.link = Proxy(primary.socket), Proxy(primary.socket)
        self.proxies = (self.proxy, self.link)
        # Held by the one fault that changes who is the primary, or what data it has.
        self.busy = threading.Lock()

    def cut_off(self) -> None:
        """Cut the link: from now on the replica falls behind."""
        self.link.turn(None)
        self.link.cut()

    def fence(self) -> None:
        """Keep all clients from the primary from now on."""
        self.proxy.turn(None)
        self.proxy.cut()

    def exchange(self) -> None:
        """Make the replica the primary: new connections lead there, others stay as they are."""
        self.primary, self.replica = self.replica, self.primary
        for proxy in self.proxies:
            proxy.turn(self.primary.socket)

    def end(self) -> None:
        for server in (self.replica, self.primary):  # which would wait for it
            server.end()
        for proxy in self.proxies:
            proxy.stop()
