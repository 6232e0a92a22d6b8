"""`python -m migrations [REVISION]`: migrate up to REVISION ("head"), or `--down` to it.

One transaction: a crash at any moment leaves the schema as it was. Waits for the server.
"""

import argparse
import logging

import psycopg
from sqlalchemy.exc import SQLAlchemyError

from migrations import downgrade, upgrade
from rocket_rides import process, settings

logger = logging.getLogger("migrations")


def main() -> None:
    """Migrate the database that the settings name."""
    parser = argparse.ArgumentParser(prog="python -m migrations", description=__doc__)
    parser.add_argument("revision", nargs="?", default="head")
    parser.add_argument("--down", action="store_true", help="go down to REVISION, or to base")
    arguments = parser.parse_args()
    config = settings.load()
    process.log_to_stdout(config.log_level)
    stop = process.Stop().on_signals()

    def session(_progress: object) -> None:
        psycopg.connect(config.postgres_url, connect_timeout=5).close()
        if arguments.down:
            revision = "base" if arguments.revision == "head" else arguments.revision
            downgrade(config.postgres_url, revision)
        else:
            revision = arguments.revision
            upgrade(config.postgres_url, revision)
        logger.info("the schema is at %s", revision)
        stop.ask()

    process.keep_running(session, stop, psycopg.Error, SQLAlchemyError)


if __name__ == "__main__":
    main()
