"""`python -m demo.embedded.psql`: psql on the Postgres that the fleet uses.

That is the embedded one, or the one named by DATABASE_URL. Arguments are passed on:
`python -m demo.embedded.psql -c 'SELECT 1'`. This process becomes psql, so the exit status is
psql's, too. If the server can't be reached, one line says so.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import NoReturn

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from demo.embedded.failures import NeverStarts
from demo.embedded.programs import installed
from demo.embedded.servers import Postgres
from rocket_rides import fleet, settings
from unified_log import database
from unified_log.errors import Unavailable


def psql(config: settings.Settings, arguments: Sequence[str]) -> NoReturn:
    """Become psql. Raises Unavailable if there is no server, NeverStarts if there is no psql."""
    database.connect(config.postgres_url, "psql").close()
    given = conninfo_to_dict(config.postgres_url)
    # Every user of a machine can read all command lines, so the password goes into the environment.
    # No variable exists for the passphrase of a client key: psql prompts for it.
    given.pop("sslpassword", None)
    if password := given.pop("password", None):
        os.environ["PGPASSWORD"] = str(password)
    # The wheel's psql matches the embedded server's version, but has no TLS.
    own = None if config.embedded_postgres else shutil.which("psql")
    program = own or f"{installed(Postgres.distribution)}/psql"
    os.execv(program, [program, f"--dbname={make_conninfo('', **given)}", *arguments])  # noqa: S606


def main() -> None:
    """Become psql, or say in one line why not."""
    config = settings.load()
    try:
        psql(config, sys.argv[1:])
    except Unavailable as reason:
        nobody = fleet.not_started(config.data_dir) if config.embedded_postgres else ""
        raise SystemExit(nobody or str(reason)) from None
    except NeverStarts as reason:
        raise SystemExit(str(reason)) from None


if __name__ == "__main__":
    main()
