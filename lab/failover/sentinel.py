"""Three nodes of Redis, each with a Sentinel: they decide which one is the primary."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import redis

from lab.failover.node import Node

PORT, SENTINEL, NAME = 6379, 26379, "log"
QUORUM = 2
DOWN_AFTER, FAILOVER = 3000, 10_000  # milliseconds
PATIENCE = 1.0  # seconds for an answer
SERVER = """
bind {address}
port {port}
protected-mode no
dir {folder}
appendonly yes
appendfsync always
maxmemory-policy noeviction
repl-diskless-sync-delay 0
"""
FOLLOW = f"replicaof {{first}} {PORT}\n"
WATCH = f"""
bind {{address}}
port {SENTINEL}
protected-mode no
dir {{folder}}
sentinel monitor {NAME} {{first}} {PORT} {QUORUM}
sentinel down-after-milliseconds {NAME} {DOWN_AFTER}
sentinel failover-timeout {NAME} {FAILOVER}
"""
T = TypeVar("T")


class Redis:
    """The nodes, with their files in `folder`; the first one begins as the primary."""

    name = "Redis"

    def __init__(self, folder: Path) -> None:
        self.nodes = [Node(f"redis{n}", f"10.0.0.2{n}", folder) for n in range(3)]
        for node in self.nodes:
            first = self.nodes[0]
            names = {"address": node.address, "folder": node.folder, "first": first.address}
            server = SERVER if node is first else SERVER + FOLLOW
            node.programs = {
                "redis": [
                    "redis-server",
                    node.write("redis.conf", server.format(port=PORT, **names)),
                ],
                "sentinel": ["redis-sentinel", node.write("sentinel.conf", WATCH.format(**names))],
            }

    @property
    def url(self) -> str:
        sentinels = ",".join(f"{node.address}:{SENTINEL}" for node in self.nodes)
        return f"redis+sentinel://{sentinels}/{NAME}/0"

    def leads(self, node: Node) -> bool:
        """Whether a majority of the Sentinels names it, and it says so itself."""
        named = [
            _ask(each, SENTINEL, lambda it: it.sentinel_get_master_addr_by_name(NAME))
            for each in self.nodes
        ]
        role = _ask(node, PORT, lambda server: server.role())
        return named.count((node.address, PORT)) >= QUORUM and bool(role) and role[0] == "master"

    def is_whole(self, primary: Node) -> bool:
        """Whether all Sentinels agree, and both replicas follow this primary."""
        said = _ask(primary, PORT, lambda server: server.info("replication")) or {}
        known = [
            _ask(each, SENTINEL, lambda it: it.sentinel_master(NAME)) or {} for each in self.nodes
        ]
        return all(said.get(f"slave{n}", {}).get("state") == "online" for n in range(2)) and all(
            (each.get("ip"), each.get("flags"), each.get("num-slaves"))
            == (primary.address, "master", 2)
            for each in known
        )

    def switch_over(self, primary: Node) -> None:
        _ask(primary, SENTINEL, lambda sentinel: sentinel.sentinel_failover(NAME))

    def kill(self, primary: Node) -> None:
        primary.kill("redis-server")


def client(node: Node, port: int = PORT) -> redis.Redis:
    limits = {"socket_timeout": PATIENCE, "socket_connect_timeout": PATIENCE}
    return redis.Redis(node.address, port, **limits, retry=None, decode_responses=True)


def _ask(node: Node, port: int, question: Callable[[redis.Redis], T]) -> T | None:
    """What the server, or the Sentinel, answers; None where it does not."""
    with suppress(redis.RedisError), client(node, port) as asked:
        return question(asked)
    return None
