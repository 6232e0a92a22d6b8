"""`python -m migrations`: upgrades the database's schema to the newest revision.

Each revision is one transaction: a crash at any moment leaves the schema as it was, or upgraded.
Waits for the server, for locks, and for processes that the next revision does not serve.
"""

import logging

import psycopg
from alembic.util import CommandError
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from migrations import upgrade
from rocket_rides import service, settings
from rocket_rides.revisions import APPLICATION
from unified_log import database, errors, process, waiting

DAMAGED = (
    "somebody changed the schema by hand; restore it, or, in development only, start with an empty"
    " database"
)

logger = logging.getLogger("migrations")


def main() -> None:
    """Migrate the database that the settings name."""
    process.take_no_arguments("migrations", __doc__)
    config = settings.load()
    service.configure(config)
    stop = service.stop_on_signals()
    done = False

    def wait(seconds: float) -> None:
        if stop.wait(seconds):
            raise SystemExit("not migrated: stopped while waiting for others")

    def session(_progress: waiting.Progress) -> None:
        nonlocal done
        upgrade(config.postgres_url, config.cell, wait)
        here = APPLICATION.number(APPLICATION.revision)
        logger.info("the schema is up to date for this code, of %s", here)
        done = True
        stop.ask()

    try:
        process.keep_running(session, stop, psycopg.OperationalError, OperationalError)
    except (psycopg.Error, SQLAlchemyError, CommandError) as error:
        reason = getattr(error, "orig", None) or error  # without SQLAlchemy's words about it
        known = isinstance(reason, psycopg.Error)
        said = database.why(reason, DAMAGED) if known else errors.in_one_line(reason)
        raise SystemExit(f"not migrated: {said}") from None
    if not done:
        raise SystemExit("not migrated: stopped while waiting for the server")


if __name__ == "__main__":
    service.run(main)
