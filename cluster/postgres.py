"""`python -m cluster.postgres ADDRESS NETWORK`: the embedded Postgres, which listens on ADDRESS.

It takes the job's two roles from the network, with their passwords, and everyone who can open its
socket. READY is there once it serves.
"""

import secrets
import sys
from collections.abc import Iterable
from pathlib import Path

import psycopg
from psycopg import sql

import migrations
from cluster import page
from cluster.boot import OWN
from cluster.machine import HOME, Machine
from cluster.network import NETWORK
from cluster.waiting import wait_until
from demo.embedded.servers import Postgres
from rocket_rides import database
from rocket_rides.database import one_row
from rocket_rides.settings import DATABASE_NAME, embedded_postgres_url

SOCKETS = "sockets"
READY = "ready"
JOB, EXECUTOR = "reconciler", "rides_reader"  # as docs/cluster.md calls them
ALLOWED = f"host {DATABASE_NAME} {JOB},{EXECUTOR} {{}} scram-sha-256\n"
PASSWORD = sql.SQL("ALTER ROLE {} PASSWORD {}")
SETTINGS = {"shared_buffers": "256MB", "max_wal_size": "4GB"}


def start(there: Machine, driver: Machine, workers: Iterable[Machine]) -> None:
    """Start it on a machine, for the job on the others: as docs/cluster.md says. Raises Failed."""
    server = there.run("python", "-m", __name__, there.host.address, NETWORK)
    wait_until((there.disk / READY).exists, "Postgres", needs=server)
    migrations.upgrade(url(there))
    with database.connect(url(there), "cluster") as connection:
        connection.execute(page.block(page.GRANTS).encode())
        _give_password(connection, JOB, [driver])
        _give_password(connection, EXECUTOR, workers)


def url(there: Machine) -> str:
    """Its own socket, for whoever is at its machine."""
    return embedded_postgres_url(there.disk / SOCKETS)


def _give_password(connection: psycopg.Connection, role: str, machines: Iterable[Machine]) -> None:
    """Each machine knows the password of its own role alone."""
    password = secrets.token_hex(16)
    connection.execute(PASSWORD.format(sql.Identifier(role), sql.Literal(password)))
    for machine in machines:
        file = machine.disk / HOME.name / ".pgpass"
        file.write_text(f"*:*:*:{role}:{password}\n")
        file.chmod(0o600)


def main() -> None:
    """Serve until the machine crashes."""
    address, network = sys.argv[1:]
    settings = SETTINGS | {"listen_addresses": address}
    server = Postgres(data=OWN / "data", sockets=OWN / SOCKETS, settings=settings)
    server.start()
    with database.connect(server.url, "cluster") as connection:
        rules = Path(one_row(connection.execute("SHOW hba_file"))[0])
        rules.write_text(ALLOWED.format(network) + rules.read_text())
        connection.execute("SELECT pg_reload_conf()")
    (OWN / READY).touch()
    server.process.wait()


if __name__ == "__main__":
    main()
