"""Lets the benchmark's Postgres be reached over TCP, by one role with its own password."""

import secrets
from pathlib import Path

from demo.embedded.servers import Postgres
from rocket_rides import database
from rocket_rides.settings import DATABASE_NAME, EMBEDDED_PORT


def listen(postgres: Postgres, role: str, address: str, clients: str, privileges: str) -> str:
    """Restart it so that it listens on `address` for this role, from the network `clients`.

    `privileges` is what GRANT gives, such as `SELECT ON rides`. Returns the password.
    """
    password = secrets.token_hex(16)
    with database.connect(postgres.url, "benchmark") as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{password}'")
        connection.execute(f"GRANT {privileges} TO {role}")
        [hba_file] = database.one_row(connection.execute("SHOW hba_file"))
    rules = Path(hba_file)
    allowed = f"host {DATABASE_NAME} {role} {clients} scram-sha-256\n"
    rules.write_text(allowed + rules.read_text())
    postgres.stop()
    postgres.settings = {"listen_addresses": address}
    postgres.start()
    return password


def url(role: str, password: str, address: str) -> str:
    """For libpq."""
    return f"postgresql://{role}:{password}@{address}:{EMBEDDED_PORT}/{DATABASE_NAME}"
