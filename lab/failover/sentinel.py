"""Three nodes of Redis, each with a Sentinel: they decide which one is the primary."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from string import Template
from typing import Any

import redis

from lab.failover.node import Node

PORT, SENTINEL, NAME, QUORUM = 6379, 26379, "log", 2
SERVER = Template("""
bind $address
protected-mode no
dir $folder
appendonly yes
appendfsync always
maxmemory-policy noeviction
repl-diskless-sync-delay 0
$follow
""")
WATCH = Template("""
bind $address
protected-mode no
dir $folder
port 26379
sentinel monitor log $first 6379 2
sentinel down-after-milliseconds log 3000
sentinel failover-timeout log 10000
""")
PATIENCE = 0.5  # seconds for an answer


class Redis:
    """The nodes, with their files in `folder`; the first one begins as the primary."""

    name, server = "Redis", "redis-server"

    def __init__(self, folder: Path) -> None:
        self.nodes = [Node(f"redis{n}", f"10.0.0.2{n}", folder) for n in range(3)]
        first = self.nodes[0].address
        for node in self.nodes:
            follow = f"replicaof {first} {PORT}" if node.address != first else ""
            server = SERVER.substitute(vars(node), follow=follow)
            sentinel = WATCH.substitute(vars(node), first=first)
            node.programs = {
                "redis": ["redis-server", node.write("redis.conf", server)],
                "sentinel": ["redis-sentinel", node.write("sentinel.conf", sentinel)],
            }

    @property
    def url(self) -> str:
        sentinels = ",".join(f"{node.address}:{SENTINEL}" for node in self.nodes)
        return f"redis+sentinel://{sentinels}/{NAME}/0"

    def leads(self, node: Node) -> bool:
        """Whether a majority of the Sentinels names it, and it says so itself."""
        named = self._sentinels(lambda asked: asked.sentinel_get_master_addr_by_name(NAME))
        role = _ask(node, PORT, lambda asked: asked.role())
        return named.count((node.address, PORT)) >= QUORUM and role is not None and "master" in role

    def is_whole(self, primary: Node) -> bool:
        """Whether all Sentinels agree, and both replicas follow this primary."""
        said = _ask(primary, PORT, lambda asked: asked.info("replication")) or {}
        replicas = [said.get(f"slave{n}", {}).get("state") for n in range(2)]
        known = self._sentinels(lambda asked: asked.sentinel_master(NAME))
        told = [each and (each["ip"], each["flags"], each["num-slaves"]) for each in known]
        return replicas == ["online"] * 2 and told == [(primary.address, "master", 2)] * 3

    def switch_over(self, primary: Node) -> None:
        _ask(primary, SENTINEL, lambda asked: asked.sentinel_failover(NAME))

    def _sentinels(self, question: Callable[[redis.Redis], Any]) -> list[Any]:
        return [_ask(node, SENTINEL, question) for node in self.nodes]


def client(node: Node, port: int = PORT) -> redis.Redis:
    url = f"redis://{node.address}:{port}"
    limits = {"socket_timeout": PATIENCE, "socket_connect_timeout": PATIENCE}
    return redis.Redis.from_url(url, **limits, retry=None, decode_responses=True)


def _ask(node: Node, port: int, question: Callable[[redis.Redis], Any]) -> Any:
    """What the server, or the Sentinel, answers; None where it does not."""
    with suppress(redis.RedisError), client(node, port) as asked:
        return question(asked)
    return None
