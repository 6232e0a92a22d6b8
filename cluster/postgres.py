"""`python -m cluster.postgres ADDRESS NETWORK`: the embedded Postgres, which listens on ADDRESS.

It takes the job's two roles from the network, with their passwords, and everyone who can open its
socket. READY is there once it serves.
"""

import sys
from pathlib import Path

import psycopg

from cluster.boot import OWN
from embedded.servers import Postgres
from rocket_rides.database import one_row
from rocket_rides.settings import DATABASE_NAME

SOCKETS = "sockets"
READY = "ready"
JOB, EXECUTOR = "reconciler", "rides_reader"  # as docs/cluster.md calls them
ALLOWED = f"host {DATABASE_NAME} {JOB},{EXECUTOR} {{}} scram-sha-256\n"


def main() -> None:
    """Serve until the machine crashes."""
    address, network = sys.argv[1:]
    server = Postgres(
        data=OWN / "data",
        sockets=OWN / SOCKETS,
        settings={"listen_addresses": address, "shared_buffers": "256MB", "max_wal_size": "4GB"},
    )
    server.start()
    with psycopg.connect(server.url, autocommit=True) as connection:
        rules = Path(one_row(connection.execute("SHOW hba_file"))[0])
        rules.write_text(ALLOWED.format(network) + rules.read_text())
        connection.execute("SELECT pg_reload_conf()")
    (OWN / READY).touch()
    server.process.wait()


if __name__ == "__main__":
    main()
