"""Three nodes of Postgres, each with Patroni and a member of etcd: they decide who is the primary.

Each commit waits for a synchronous standby, also while there is none.
"""

import json
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import psycopg

from lab.failover.node import Node
from rocket_rides.settings import DATABASE_NAME
from unified_log import database
from unified_log.errors import Unavailable

PORT, API, CLIENTS, PEERS = 5432, 8008, 2379, 2380
# Seconds: a primary that has not renewed its lock for `ttl` is replaced.
TIMES = {"ttl": 20, "loop_wait": 5, "retry_timeout": 5}
SYNCHRONOUS = {"synchronous_mode": True, "synchronous_mode_strict": True}
PARAMETERS = {"max_connections": 100, "shared_buffers": "64MB", "wal_keep_size": "128MB"}
LOG_IN = [f"host {databases} all 10.0.0.0/24 trust" for databases in ("all", "replication")]
LEADS = "SELECT NOT pg_is_in_recovery()"
PATIENCE = 2.0  # seconds for an answer of Patroni's


class Postgres:
    """The nodes, with their files in `folder` and the server's programs in `programs`."""

    name = "Postgres"

    def __init__(self, folder: Path, programs: Path) -> None:
        self.nodes = [Node(f"postgres{n}", f"10.0.0.1{n}", folder) for n in range(3)]
        for node in self.nodes:
            configuration = json.dumps(self._configuration(node, programs))
            node.programs = {
                "etcd": self._etcd(node),
                "patroni": ["patroni", node.write("patroni.yml", configuration)],
            }

    @property
    def url(self) -> str:
        """It names all nodes: libpq takes the one that accepts writes."""
        return _url(*self.nodes) + "?target_session_attrs=read-write"

    def url_of(self, node: Node) -> str:
        return _url(node)

    def leads(self, node: Node) -> bool:
        """Whether the node answers, and accepts writes."""
        url = _url(node, database="postgres")
        with suppress(psycopg.Error, Unavailable), closing(database.connect(url, "drill")) as asked:
            return bool(database.one_row(asked.execute(LEADS))[0])
        return False

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

    def kill(self, primary: Node) -> None:
        """Patroni goes on, and may start it again."""
        primary.kill("postgres")

    def _etcd(self, node: Node) -> list[str]:
        clients, peers = (f"http://{node.address}:{port}" for port in (CLIENTS, PEERS))
        members = (f"{each.name}=http://{each.address}:{PEERS}" for each in self.nodes)
        return [
            "etcd",
            "--enable-v2",
            f"--name={node.name}",
            f"--data-dir={node.folder}/etcd",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster={','.join(members)}",
        ]

    def _configuration(self, node: Node, programs: Path) -> dict[str, Any]:
        server = {"use_pg_rewind": True, "parameters": PARAMETERS}
        return {
            "scope": "rides",
            "name": node.name,
            "restapi": _at(node, API),
            # By etcd's third interface, Patroni 3.0.2 takes a lost lock back after a freeze.
            "etcd": {"hosts": [f"{each.address}:{CLIENTS}" for each in self.nodes]},
            "watchdog": {"mode": "off"},
            "bootstrap": {
                "dcs": {**TIMES, **SYNCHRONOUS, "postgresql": server},
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "data-checksums"],
            },
            "postgresql": {
                **_at(node, PORT),
                "data_dir": f"{node.folder}/data",
                "bin_dir": str(programs),
                "authentication": {
                    "superuser": {"username": "postgres"},
                    "replication": {"username": "replica"},
                },
                "parameters": {"unix_socket_directories": str(node.folder)},
                "pg_hba": ["local all all trust", *LOG_IN],
            },
        }


def _url(*nodes: Node, database: str = DATABASE_NAME) -> str:
    return (
        f"postgresql://postgres@{','.join(f'{node.address}:{PORT}' for node in nodes)}/{database}"
    )


def _at(node: Node, port: int) -> dict[str, str]:
    return dict.fromkeys(("listen", "connect_address"), f"{node.address}:{port}")


def _ask(node: Node, path: str, body: dict[str, str] | None = None) -> Any:
    """What its Patroni answers; nothing where it does not."""
    with (
        suppress(OSError, HTTPException, ValueError),
        closing(HTTPConnection(node.address, API, timeout=PATIENCE)) as connection,
    ):
        connection.request("POST" if body else "GET", path, json.dumps(body))
        return json.load(connection.getresponse())
    return {}
