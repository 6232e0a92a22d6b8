"""Three nodes of Postgres, each with Patroni and a member of etcd, which decide who leads."""

import json
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from string import Template
from subprocess import getoutput
from typing import Any

from lab.failover.node import Node
from rocket_rides.settings import DATABASE_NAME

# A primary that has not renewed its lock for `ttl` seconds is replaced. Each commit waits for a
# synchronous standby, also while there is none. By etcd's third interface (etcd3), Patroni 3.0.2
# takes a lost lock back after a freeze: so that is for an etcd that has no second one, as 3.6.
PATRONI = Template("""
scope: rides
name: $name
restapi: {listen: '$address:8008', connect_address: '$address:8008'}
$dcs: {hosts: '$members'}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 5
    retry_timeout: 5
    synchronous_mode: true
    synchronous_mode_strict: true
    postgresql: {use_pg_rewind: true, parameters: {max_connections: 100, wal_keep_size: 128MB}}
  initdb: [encoding: UTF8, locale: C, data-checksums]
postgresql:
  listen: $address:5432
  connect_address: $address:5432
  data_dir: $folder/data
  bin_dir: $programs
  authentication: {superuser: {username: postgres}, replication: {username: replica}}
  parameters: {unix_socket_directories: $folder}
  pg_hba:
  - local all all trust
  - host all all 10.0.0.0/24 trust
  - host replication all 10.0.0.0/24 trust
""")
ETCD = Template(
    "etcd $v2 --name=$name --data-dir=$folder/etcd --initial-cluster=$peers"
    " --listen-client-urls=http://$address:2379 --advertise-client-urls=http://$address:2379"
    " --listen-peer-urls=http://$address:2380 --initial-advertise-peer-urls=http://$address:2380"
)
PATIENCE = 1.0  # seconds for an answer of Patroni's


class Postgres:
    """The nodes, with their files in `folder` and the server's programs in `programs`."""

    name, server = "Postgres", "postgres"

    def __init__(self, folder: Path, programs: Path) -> None:
        self.nodes = [Node(f"postgres{n}", f"10.0.0.1{n}", folder) for n in range(3)]
        members = ",".join(f"{node.address}:2379" for node in self.nodes)
        peers = ",".join(f"{node.name}=http://{node.address}:2380" for node in self.nodes)
        options = getoutput("etcd --help")  # noqa: S605, S607
        dcs, v2 = ("etcd", "--enable-v2") if "--enable-v2" in options else ("etcd3", "")
        for node in self.nodes:
            values = vars(node) | {"members": members, "peers": peers, "programs": programs}
            values |= {"dcs": dcs, "v2": v2}
            configuration = node.write("patroni.yml", PATRONI.substitute(values))
            etcd = ETCD.substitute(values).split()
            node.programs = {"etcd": etcd, "patroni": ["patroni", configuration]}

    def url(self, *nodes: Node, name: str = DATABASE_NAME) -> str:
        """Of one node, or of the one of all that accepts writes."""
        hosts = ",".join(f"{node.address}:5432" for node in nodes or self.nodes)
        kind = "any" if nodes else "read-write"
        return f"postgresql://postgres@{hosts}/{name}?target_session_attrs={kind}"

    def leads(self, node: Node) -> bool:
        """Whether its server answers, and accepts writes; "primary" is Patroni 4's word."""
        said = _ask(node, "/patroni")
        return said.get("role") in ("master", "primary") and said.get("state") == "running"

    def is_whole(self, primary: Node) -> bool:
        """Whether the others follow this primary, one of them synchronously."""
        members = _ask(primary, "/cluster").get("members", [])
        return (
            sorted(each["role"] for each in members) == ["leader", "replica", "sync_standby"]
            and all(each["state"] in ("running", "streaming") for each in members)
            and len({each.get("timeline") for each in members}) == 1
        )

    def switch_over(self, primary: Node) -> None:
        _ask(primary, "/switchover", {"leader": primary.name})


def _ask(node: Node, path: str, body: dict[str, str] | None = None) -> Any:
    """What its Patroni answers; nothing where it does not."""
    with (
        suppress(OSError, HTTPException, ValueError),
        closing(HTTPConnection(node.address, 8008, timeout=PATIENCE)) as connection,
    ):
        connection.request("POST" if body else "GET", path, json.dumps(body))
        return json.load(connection.getresponse())
    return {}
