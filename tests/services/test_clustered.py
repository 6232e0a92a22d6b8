"""Redis Cluster: a server with all slots will do, and one that sends clients elsewhere is named."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from demo.embedded.servers import Postgres, Redis
from lab.ports import free_ports
from tests.support.clusters import fresh_world
from tests.support.folders import short_folder
from tests.support.receipts import SECRET
from tests.support.rollup import is_complete
from tests.support.world import eventually

PROCESSES: dict[str, list[str]] = {
    "streamer": [],
    "consumers.totals": ["consumer0"],
    "consumers.rollup": [],
    "consumers.receipts": ["receipts0"],
    "unified_log.log": [],
}
RECEIPTS = {"RECEIPT_URL": "http://127.0.0.1:1", "RECEIPT_SECRET": SECRET}


@pytest.fixture
def nodes() -> Iterator[tuple[Redis, Redis]]:
    """Two servers that know each other. No slot is anybody's yet."""
    with short_folder() as folder:
        one, two = _node(folder / "one"), _node(folder / "two")
        try:
            one.start()
            two.start()
            port = int(one.settings["port"])
            cluster(two, "MEET", "127.0.0.1", port, one.settings["cluster-port"])
            yield one, two
        finally:
            one.stop()
            two.stop()


def _node(folder: Path) -> Redis:
    folder.mkdir(0o755)
    port = free_ports(2)
    settings = {
        "bind": "127.0.0.1",
        "port": str(port),
        "cluster-enabled": "yes",
        "cluster-port": str(port + 1),
        "cluster-require-full-coverage": "no",
    }
    return Redis(folder / "data", folder / "run", settings)


def cluster(node: Redis, *words: object) -> Any:
    with redis.Redis.from_url(node.url, decode_responses=True) as control:
        return control.execute_command("CLUSTER", *words)


def test_a_server_with_all_slots_holds_the_log_and_others_are_refused_once(
    postgres: Postgres, nodes: tuple[Redis, Redis], tmp_path: Path
) -> None:
    """What passes, as a cluster that is being formed, is waited for."""
    one, two = nodes
    first = cluster(one, "MYID")
    with fresh_world(postgres, one, tmp_path) as world:
        streamer = world.service("streamer").says("CLUSTERDOWN")
        cluster(one, "ADDSLOTSRANGE", 0, 16383)
        world.take(1, 2, 3)
        readers = [
            world.service("consumers.totals", "consumer0"),
            world.service("consumers.rollup"),
        ]
        eventually(lambda: world.standing() == world.truth and is_complete(world))
        for process in [streamer, *readers]:  # one streamer at a time asks Redis
            assert process.stop() == 0
        eventually(lambda: first in cluster(two, "NODES"), "that they have met")
        cluster(two, "SETSLOT", cluster(two, "KEYSLOT", world.stream), "NODE", first)
        ending = {
            module: world.service(module, *arguments, REDIS_URL=two.url, **RECEIPTS)
            for module, arguments in PROCESSES.items()
        }
        for module, process in ending.items():
            assert process.ends() == 1
            *_, said = process.output.read_text().splitlines()
            assert "Redis: MOVED" in said, module
            assert "This is a Redis Cluster" in said, module
